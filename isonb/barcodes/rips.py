"""Vietoris-Rips barcodes that a gradient passes through.

H0 is a minimum spanning tree and needs no persistence library. H1 and H2 take the pairing (which edge opens a bar,
which closes it) from giotto-ph or gudhi and recompute the lengths from the live points. A filtration value is a
distance, not half of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import torch
from torch import Tensor

from isonb.barcodes.inputs import Metric, MetricInput, metric_input
from isonb.barcodes.trees import longest_first
from isonb.checks import is_whole, validated
from isonb.errors import InputError, fail, missing
from isonb.numerics.compiled import np

Pair = tuple[Tensor, Tensor]
Generators = tuple[Tensor, Tensor]
"""Of one dimension: the birth and death edges (m, 4) of bars that end, the birth edges (k, 2) of those that don't."""


@overload
def h0_barcode(
    x: Tensor, *, return_edges: Literal[False] = False, mask: Tensor | None = None, metric: Metric = "euclidean"
) -> Tensor: ...
@overload
def h0_barcode(
    x: Tensor, *, return_edges: Literal[True], mask: Tensor | None = None, metric: Metric = "euclidean"
) -> Pair: ...
@validated
def h0_barcode(
    x: Tensor, *, return_edges: bool = False, mask: Tensor | None = None, metric: Metric = "euclidean"
) -> Tensor | Pair:
    r"""Lengths of the H0 bars: the edges of a minimum spanning tree, longest first.

    All n points are born at 0; each of the n - 1 finite deaths :math:`\|x_a - x_b\|` merges two components along the
    edge (a, b). The one infinite bar is left out. Bars of duplicates are 0 and stay in the list.

    Shapes: ``x`` (..., n, d), n >= 2, half precision raised to float32, ``mask`` (..., n) optional; returns (..., n-1)
    in the unit of ``x``, and with ``return_edges`` the int64 edges (..., n-1, 2), aligned with the bars. Under a mask
    only the first ``mask.sum(-1) - 1`` bars are real: the others are 0, their edges -1.

    ``metric``: ``"euclidean"``, ``"cosine"``, ``"correlation"``, ``"sqeuclidean"``, ``"cityblock"`` or
    ``"chebyshev"``, named as by scipy's ``pdist``. With ``"precomputed"`` ``x`` holds the distances themselves, of any
    kind: (..., n, n), or (n (n - 1) / 2) in the order of ``pdist``.

    The choice of the tree is a constant: gradients flow through the lengths, and the gradient of a zero length is 0.
    On the CPU the tree is that of exact distances, whatever the offset and the scale: see ``isonb.barcodes.trees``; on
    accelerators, that of a product in float64. Memory O(n d) and a strip of distances for the first four metrics;
    O(n^2) a cloud for the others, and on accelerators up to 8,192 points.

    Raises :class:`~isonb.errors.InputError` for non-finite values, wrong rank, fewer than two points, an unknown
    metric, rows without a direction where it needs one, or a matrix that isn't one of distances. Points that look like
    distances, or transposed: :class:`~isonb.errors.CloudWarning`.

    Source: Shrink-the-longest (arXiv 2501.05502); Moor et al. 2020, Topological Autoencoders, for the gradient.

    >>> h0_barcode(torch.tensor([[0.0], [1.0], [4.0]]), return_edges=True)
    (tensor([3., 1.]), tensor([[1, 2],
            [0, 1]]))
    >>> h0_barcode(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), metric="cityblock")
    tensor([7.])
    """
    bars, edges = _h0(metric_input(x, mask, metric))
    return (bars, edges) if return_edges else bars


def _h0(cloud: MetricInput) -> Pair:
    """Bars and edges, longest first, equal ones by their edges, those of masked rows last."""
    edges, real, constant_lengths = cloud.tree()
    lengths = cloud.lengths(edges, constant_lengths)
    if constant_lengths is None:
        edges, lengths = longest_first(edges, lengths, real, cloud.x.shape[-2])
    if cloud.mask is None:
        return lengths, edges
    real = torch.arange(lengths.shape[-1], device=lengths.device) < cloud.mask.sum(-1, keepdim=True) - 1
    return torch.where(real, lengths, 0.0), torch.where(real.unsqueeze(-1), edges, -1)


class Persistence(NamedTuple):
    """The bars of one dimension with what gives birth and death to each, under the names of torch_topological.

    ``pairing`` (m, 3) of H0: the vertex whose component ends, and the edge that ends it. Above, (m, 4): the edge that
    closes the loop, and the longest of the triangle that fills it. -1 stands for the death of an infinite bar.
    ``diagram`` (m, 2): births and deaths, differentiable. ``dimension``: that of the homology.

    >>> rips_barcode(torch.tensor([[0.0], [1.0], [4.0]]), 0, return_generators=True)[0].pairing.tolist()
    [[2, 1, 2], [1, 0, 1]]
    """

    pairing: Tensor
    diagram: Tensor
    dimension: int


class _Options(TypedDict, total=False):
    metric: Metric
    threshold: float
    keep_infinite: bool


@overload
def rips_barcode(
    x: Tensor, max_dim: int = 1, *, return_generators: Literal[False] = False, **options: Unpack[_Options]
) -> list[Pair]: ...
@overload
def rips_barcode(
    x: Tensor, max_dim: int = 1, *, return_generators: Literal[True], **options: Unpack[_Options]
) -> list[Persistence]: ...
@validated
def rips_barcode(
    x: Tensor,
    max_dim: int = 1,
    *,
    metric: Metric = "euclidean",
    threshold: float = math.inf,
    keep_infinite: bool = False,
    return_generators: bool = False,
) -> list[Pair] | list[Persistence]:
    r"""Vietoris-Rips barcode of one cloud: ``(birth, death)`` by dimension, 0 to ``max_dim``, most persistent first.

    H0 is :func:`h0_barcode` with births 0. In H1 a bar is born at the length of the edge that closes a loop and dies at
    the length of the longest edge of the triangle that fills it; above likewise. Both are recomputed as
    :math:`\|x_a - x_b\|` from the live points, so the gradient is that of two edge lengths; the pairing is a constant.

    Shapes: ``x`` (n, d), n >= 2, half precision raised to float32; each tensor is (bars,), in the unit of ``x``.
    Zero-length H0 bars stay; above H0 a bar not longer than the rounding of its death is dropped.

    The pairing depends only on the order of the edges, so the back end is given their ranks, taken in float64: its own
    float32 arithmetic then splits no tie, and merges no two values unless there are more than 2^24 of them. giotto-ph
    is used where installed, else gudhi; above H0 the work is done on the CPU, and grows fast with ``max_dim``.

    Args:
        x: points (n, d), or with ``metric="precomputed"`` distances as in :func:`h0_barcode`, of which some may be
            infinite: those pairs are never joined.
        max_dim: the highest dimension, at least 0.
        metric: as in :func:`h0_barcode`.
        threshold: length above which no edge is taken; features that are left then are infinite.
        keep_infinite: give infinite bars too, before the others; H0 has at least one.
        return_generators: give a :class:`Persistence` for each dimension in the place of ``(birth, death)``.

    Raises :class:`~isonb.errors.InputError` for a bad cloud, dimension or threshold, and
    :class:`~isonb.errors.DependencyError` when ``max_dim > 0`` and neither library is installed; warns as
    :func:`h0_barcode`.

    Source: Shrink-the-longest (arXiv 2501.05502); Bauer 2021, Ripser.

    >>> square = torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0]])
    >>> _, (birth, death) = rips_barcode(square)
    >>> birth.tolist(), death.tolist()
    ([4.0], [5.0])
    >>> square[3, 1] = 4.5
    >>> rips_barcode(square, threshold=4.8, keep_infinite=True, return_generators=True)[1]
    Persistence(pairing=tensor([[ 0,  3, -1, -1]]), diagram=tensor([[4.5000, inf]]), dimension=1)
    """
    cloud = metric_input(x, None, metric, threshold=threshold, single=True)
    if not is_whole(max_dim) or max_dim < 0:
        fail(InputError, "max_dim must be a dimension, 0 or more", repr(max_dim), "1 gives components and loops.")
    result = _barcode(cloud, int(max_dim), keep_infinite, return_generators)
    if return_generators:
        return [Persistence(pairing, torch.stack(bars, -1), k) for k, (bars, pairing) in enumerate(result)]
    return [bars for bars, _ in result]


def barcode_of(x: Tensor, max_dim: int) -> list[Pair]:
    """The same of checked points."""
    return [bars for bars, _ in _barcode(MetricInput(x, None, x.dtype), max_dim)]


def _barcode(
    cloud: MetricInput, max_dim: int, infinite: bool = False, vertices: bool = True
) -> list[tuple[Pair, Tensor]]:
    """Births and deaths (m,) of each dimension with their pairing (m, 3 or 4), in H0 only if ``vertices`` are asked."""
    deaths, edges = _h0(cloud)
    n_cut = int((deaths.detach() > cloud.most).sum()) if cloud.most < math.inf else 0
    deaths, edges = deaths[n_cut:], edges[n_cut:]
    pairing = edges
    if vertices:
        dying, survivors = _elders(edges.flip(0), len(cloud.x))
        pairing = torch.cat([dying.flip(0).unsqueeze(1), edges], 1)
        if infinite:
            pairing = torch.cat([torch.nn.functional.pad(survivors.unsqueeze(1), (0, 2), value=-1), pairing])
    if infinite:
        deaths = torch.cat([deaths.new_full((n_cut + 1,), math.inf), deaths])
    barcode = [((torch.zeros_like(deaths), deaths), pairing)]
    if max_dim > 0:
        barcode += [_bars(cloud, *result, infinite) for result in _generators(cloud, max_dim)]
    return barcode


def _elders(edges: Tensor, n: int) -> Pair:
    """The vertex (m,) whose component each edge (m, 2) ends, shortest edge first, and those (k,) that stay.

    All are born at 0: of two components that of the lower first vertex is the elder.
    """
    root = list(range(n))

    def first(vertex: int) -> int:
        while root[vertex] != vertex:
            root[vertex] = vertex = root[root[vertex]]
        return vertex

    dying = []
    for a, b in edges.tolist():
        elder, younger = sorted((first(a), first(b)))
        root[younger] = elder
        dying.append(younger)
    stay = [vertex for vertex in range(n) if root[vertex] == vertex]
    return edges.new_tensor(dying), edges.new_tensor(stay)


def _bars(cloud: MetricInput, finite: Tensor, endless: Tensor, infinite: bool) -> tuple[Pair, Tensor]:
    """Births and deaths of generators, longest first, and the pairing (m, 4)."""
    finite = finite.to(cloud.x.device)
    birth, death = cloud.lengths(finite[:, :2]), cloud.lengths(finite[:, 2:])
    length = (death - birth).detach()
    kept = length > 4 * torch.finfo(death.dtype).eps * death.detach()
    order = length.argsort(dim=-1, descending=True, stable=True)
    order = order[kept[order]]
    birth, death, pairing = birth[order], death[order], finite[order]
    if infinite and len(endless):
        endless = endless.to(cloud.x.device)
        early, order = cloud.lengths(endless).sort()
        birth, death = torch.cat([early, birth]), torch.cat([torch.full_like(early, math.inf), death])
        pairing = torch.cat([torch.nn.functional.pad(endless[order], (0, 2), value=-1), pairing])
    return (birth, death), pairing


@torch.no_grad()
def _edge_ranks(cloud: MetricInput) -> tuple[Tensor, float]:
    """The filtration as a CPU matrix (n, n) of dense ranks from 1, equal distances alike, 0 on the diagonal.

    With it the rank up to which pairs are joined; infinite where those farther would change nothing.
    """
    n = len(cloud.x)
    above = torch.triu_indices(n, n, 1, device=cloud.x.device)
    weights = cloud.weights()[above[0], above[1]].cpu()
    order = torch.from_numpy(np.unique(weights.numpy(), return_inverse=True)[1]).float() + 1
    ranks, low, high = order.new_zeros(n, n), *above.cpu()
    ranks[low, high] = order
    ranks[high, low] = order
    if cloud.most == math.inf:
        return ranks, math.inf
    joined = (cloud.lengths(above.T) <= cloud.most).cpu()
    most = float(order[joined].max()) if bool(joined.any()) else 0.0
    return ranks, math.inf if most >= float(ranks.amax(1).min()) else most


def _generators(cloud: MetricInput, max_dim: int) -> list[Generators]:
    """Generators of H1..H``max_dim`` from whichever library is there."""
    for backend in (_giotto, _gudhi):
        try:
            run = backend()
        except ImportError:
            continue
        pairs = zip(*([*some, *[[]] * max_dim][:max_dim] for some in run(*_edge_ranks(cloud), max_dim)), strict=True)
        return [(_edges(finite, 4), _edges(endless, 2)) for finite, endless in pairs]
    raise missing("rips_barcode above H0", "giotto-ph or gudhi", "topology")


def _edges(result: Any, width: int) -> Tensor:
    """Found edges as (m, width) vertices, the lower end of each first."""
    return torch.as_tensor(result, dtype=torch.long).reshape(-1, width // 2, 2).sort(-1).values.flatten(1)


Backend = Callable[[Tensor, float, int], tuple[list[Any], list[Any]]]


def _giotto() -> Backend:
    from gph import ripser_parallel

    def run(ranks: Tensor, most: float, max_dim: int) -> tuple[list[Any], list[Any]]:
        options = {"metric": "precomputed", "return_generators": True, "n_threads": torch.get_num_threads()}
        result = ripser_parallel(ranks.numpy(), maxdim=max_dim, thresh=most, **options)
        _, finite, _, endless = result["gens"]
        return list(finite), list(endless)

    return run


def _gudhi() -> Backend:
    import gudhi

    def run(ranks: Tensor, most: float, max_dim: int) -> tuple[list[Any], list[Any]]:
        complex_ = gudhi.RipsComplex(distance_matrix=ranks.numpy(), max_edge_length=most)
        tree = complex_.create_simplex_tree(max_dimension=max_dim + 1)
        # where no triangle is left gudhi would leave out the loops
        tree.compute_persistence(persistence_dim_max=tree.dimension() <= max_dim)
        _, finite, _, endless = tree.flag_persistence_generators()
        return list(finite), list(endless)

    return run
