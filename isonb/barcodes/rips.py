"""Vietoris-Rips barcodes that a gradient passes through.

H0 is a minimum spanning tree and needs no persistence library. H1 and H2 take the pairing (which edge opens a bar,
which closes it) from giotto-ph or gudhi and recompute the lengths from the live points. A filtration value is a
distance, not half of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

import torch
from torch import Tensor

from isonb.barcodes.trees import spanning_tree, tree_of_distances
from isonb.checks import border
from isonb.errors import InputError, fail, missing
from isonb.numerics.distances import edge_lengths, localized, squared_distances
from isonb.numerics.given_distances import check_cloud, lengths_in
from isonb.numerics.scale import precise

__all__ = ["barcode_of", "h0_barcode", "rips_barcode", "tree_edges"]


@overload
def h0_barcode(
    x: Tensor, *, return_edges: Literal[False] = False, mask: Tensor | None = None, metric: str = "euclidean"
) -> Tensor: ...
@overload
def h0_barcode(
    x: Tensor, *, return_edges: Literal[True], mask: Tensor | None = None, metric: str = "euclidean"
) -> tuple[Tensor, Tensor]: ...
@border
def h0_barcode(
    x: Tensor, *, return_edges: bool = False, mask: Tensor | None = None, metric: str = "euclidean"
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Lengths of the H0 bars: the edges of a Euclidean minimum spanning tree, longest first.

    All n points are born at 0; each of the n - 1 finite deaths :math:`\|x_a - x_b\|` merges two components along the
    edge (a, b). The one infinite bar is left out. Bars of duplicates are 0 and stay in the list.

    Shapes: ``x`` (..., n, d), n >= 2, half precision raised to float32, ``mask`` (..., n) optional; returns (..., n-1)
    in the unit of ``x``, and with ``return_edges`` the int64 edges (..., n-1, 2), aligned with the bars. Under a mask
    only the first ``mask.sum(-1) - 1`` bars are real: the others are 0, their edges -1. With ``metric="precomputed"``
    ``x`` (..., n, n) holds the distances themselves, of any kind.

    The choice of the tree is a constant: gradients flow through the lengths, and the gradient of a zero length is 0.
    On the CPU the tree is that of exact distances, whatever the offset and the scale: see ``isonb.barcodes.trees``; on
    accelerators, that of a product in float64. Memory O(n^2) a cloud up to 8,192 points; beyond, one strip of distances
    at a time.

    Raises :class:`~isonb.errors.InputError` for non-finite values, wrong rank, fewer than two points, or a matrix that
    isn't one of distances. Points that look like distances, or transposed: :class:`~isonb.errors.CloudWarning`.

    Source: Shrink-the-longest (arXiv 2501.05502); Moor et al. 2020, Topological Autoencoders, for the gradient.

    >>> h0_barcode(torch.tensor([[0.0], [1.0], [4.0]]), return_edges=True)
    (tensor([3., 1.]), tensor([[1, 2],
            [0, 1]]))
    """
    x, mask = check_cloud(x, mask, metric)
    bars, edges = _h0(x, mask, metric)
    return (bars, edges) if return_edges else bars


def tree_edges(x: Tensor, mask: Tensor | None, metric: str = "euclidean") -> tuple[Tensor, Tensor | None]:
    """Edges (..., n-1, 2) of the spanning tree of a checked cloud, the lower end first; which join two real rows."""
    edges = (tree_of_distances if metric == "precomputed" else spanning_tree)(x, mask)
    edges = torch.stack(edges.aminmax(dim=-1), -1)
    return edges, None if mask is None else mask.gather(-1, edges.flatten(-2)).view(edges.shape).all(-1)


def _h0(x: Tensor, mask: Tensor | None, metric: str = "euclidean") -> tuple[Tensor, Tensor]:
    """Bars and edges of a checked cloud, longest first, equal ones by their edges, those of masked rows last."""
    edges, real = tree_edges(x, mask, metric)
    order = (edges[..., 0] * x.shape[-2] + edges[..., 1]).argsort(dim=-1)
    edges = edges.gather(-2, order.unsqueeze(-1).expand(edges.shape))
    real = None if real is None else real.gather(-1, order)
    lengths = lengths_in(x, edges) if metric == "precomputed" else edge_lengths(x, edges)
    if real is None:
        lengths, order = lengths.sort(dim=-1, descending=True, stable=True)
    else:
        edges = torch.where(real.unsqueeze(-1), edges, -1)
        order = torch.where(real, lengths.detach(), -1.0).argsort(dim=-1, descending=True, stable=True)
        lengths = torch.where(real, lengths, 0.0).gather(-1, order)
    return lengths, edges.gather(-2, order.unsqueeze(-1).expand(edges.shape))


@border
def rips_barcode(x: Tensor, max_dim: int = 1, *, metric: str = "euclidean") -> list[tuple[Tensor, Tensor]]:
    r"""Vietoris-Rips barcode of one cloud: ``(birth, death)`` by dimension, 0 to ``max_dim``, most persistent first.

    H0 is :func:`h0_barcode` with births 0. In H1 a bar is born at the length of the edge that closes a loop and dies at
    the length of the longest edge of the triangle that fills it; H2 likewise. Both are recomputed as
    :math:`\|x_a - x_b\|` from the live points, so the gradient is that of two edge lengths; the pairing is a constant.

    Shapes: ``x`` (n, d), n >= 2, one cloud, half precision raised to float32, or distances (n, n) with
    ``metric="precomputed"``; ``max_dim`` 0, 1 or 2. Each tensor is (bars,), in the unit of ``x``.
    No bar is infinite: H0 drops its one, and the whole filtration leaves none above. Zero-length H0 bars stay (there
    are n - 1); above H0 a bar not longer than the rounding of its death is dropped.

    The pairing depends only on the order of the edges, so the back end is given their ranks, taken in float64: its own
    float32 arithmetic then splits no tie, and merges no two values unless there are more than 2^24 of them. giotto-ph
    is used where installed, else gudhi; above H0 the work is done on the CPU.

    Raises :class:`~isonb.errors.InputError` for a bad cloud or another ``max_dim``, and
    :class:`~isonb.errors.DependencyError` when ``max_dim > 0`` and neither library is installed; warns as
    :func:`h0_barcode`.

    Source: Shrink-the-longest (arXiv 2501.05502); Bauer 2021, Ripser.

    >>> _, (birth, death) = rips_barcode(torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0], [0.0, 4.0]]))
    >>> birth.tolist(), death.tolist()
    ([4.0], [5.0])
    """
    x, _ = check_cloud(x, None, metric, single=True)
    return barcode_of(x, max_dim, metric)


def barcode_of(x: Tensor, max_dim: int, metric: str = "euclidean") -> list[tuple[Tensor, Tensor]]:
    """The same of a checked cloud."""
    if isinstance(max_dim, bool) or max_dim not in (0, 1, 2):
        fail(InputError, "max_dim must be 0, 1 or 2", repr(max_dim), "Higher dimensions are out of reach of a cloud.")
    deaths, _ = _h0(x, None, metric)
    barcode = [(torch.zeros_like(deaths), deaths)]
    if max_dim > 0:
        barcode += [_bars(x, pairs, metric) for pairs in _pairing(_edge_ranks(x, metric), max_dim)]
    return barcode


def _bars(x: Tensor, pairs: Tensor, metric: str) -> tuple[Tensor, Tensor]:
    """Births and deaths (m,) of generators (m, 4), each a birth edge and a death edge."""
    pairs = pairs.to(x.device)
    lengths = lengths_in if metric == "precomputed" else edge_lengths
    birth, death = lengths(x, pairs[:, :2]), lengths(x, pairs[:, 2:])
    length = (death - birth).detach()
    kept = length > 4 * torch.finfo(x.dtype).eps * death.detach()
    order = length.argsort(dim=-1, descending=True, stable=True)
    order = order[kept[order]]
    return birth[order], death[order]


@torch.no_grad()
def _edge_ranks(x: Tensor, metric: str) -> Tensor:
    """The filtration as a CPU matrix (n, n) of dense ranks from 1, equal distances alike, 0 on the diagonal."""
    n = x.shape[0]
    weights = (x if metric == "precomputed" else squared_distances(localized(precise(x)))).cpu()
    above = torch.ones(n, n, dtype=torch.bool).triu(1)
    ranks = torch.zeros(n, n)
    ranks[above] = torch.unique(weights[above], return_inverse=True)[1].float() + 1
    return ranks + ranks.T


def _pairing(ranks: Tensor, max_dim: int) -> list[Tensor]:
    """Finite generators (m, 4) of H1..H``max_dim`` from whichever library is there."""
    for backend in (_giotto, _gudhi):
        try:
            pairings = backend()(ranks, max_dim)
        except ImportError:
            continue
        empty = torch.empty(0, 4, dtype=torch.long)
        pairings = [torch.as_tensor(pairs, dtype=torch.long).reshape(-1, 4) for pairs in pairings]
        return (pairings + [empty] * max_dim)[:max_dim]
    raise missing("rips_barcode above H0", "giotto-ph or gudhi", "topology")


def _giotto() -> Callable[[Tensor, int], list[Any]]:
    from gph import ripser_parallel

    def run(ranks: Tensor, max_dim: int) -> list[Any]:
        threads = torch.get_num_threads()
        out = ripser_parallel(
            ranks.numpy(), maxdim=max_dim, metric="precomputed", return_generators=True, n_threads=threads
        )
        return list(out["gens"][1])  # gens: H0, finite above, infinite H0, infinite above

    return run


def _gudhi() -> Callable[[Tensor, int], list[Any]]:
    import gudhi

    def run(ranks: Tensor, max_dim: int) -> list[Any]:
        tree = gudhi.RipsComplex(distance_matrix=ranks.numpy()).create_simplex_tree(max_dimension=max_dim + 1)
        tree.compute_persistence()
        return list(tree.flag_persistence_generators()[1])

    return run
