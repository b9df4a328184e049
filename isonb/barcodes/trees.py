"""Minimum spanning trees of batches of clouds: exact, for any offset and scale. No gradient passes here.

Equal distances go by the lower number ``low * n + high`` of the pair, so there is one tree, whichever way finds it
(:mod:`isonb.numerics.ways`):

- *differences*: Prim's algorithm, which subtracts points in float64 as it goes;
- *product*: Prim's algorithm on a matrix product, then mended. Each weight is known up to a bound. A pair that isn't an
  edge of the tree is in doubt where its least possible weight is not above the most that the path between its ends can
  weigh. The exact tree lies among the first one and the pairs in doubt: differences in float64 decide. Of a cloud with
  many pairs in doubt (tight clusters, copies) the product is taken anew in float64, then all pairs are subtracted;
- *neighbours*: Boruvka's algorithm on lists of exact nearest neighbours, in O(n) memory a row;
- *parallel*: few steps, each over all weights (:mod:`isonb.barcodes.parallel_trees`), because on an accelerator a step
  costs a launch. Weights there are those of a product in float64, which nothing mends: nothing is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from isonb.barcodes.compiled_prim import FAR, by_differences, grow, in_doubt
from isonb.barcodes.parallel_trees import by_boruvka, parallel_trees
from isonb.numerics.compiled import can_compile
from isonb.numerics.distances import exact_squares, localized, rough_distances, squared_distances
from isonb.numerics.nearest import Search, squared_gaps
from isonb.numerics.scale import largest, power_of_two, precise
from isonb.numerics.ways import way_of_tree

__all__ = ["spanning_tree", "tree_of_distances"]

DOUBTS = 4  # pairs in doubt a point from which finer weights are cheaper than differences
LISTED = 4  # neighbours on the list of each point


@torch.no_grad()
def spanning_tree(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Edges (..., n-1, 2) of a Euclidean minimum spanning tree of a checked cloud (..., n, d), the lower end first.

    Rows off the mask hang on by edges of their own, so the edges between real rows are the tree of the real cloud.
    """
    points = x.detach().reshape(-1, *x.shape[-2:])
    real = None if mask is None else mask.reshape(-1, mask.shape[-1])
    if points.dtype == torch.float64:  # squares of float32 fit float64 as they are
        points = points / power_of_two(largest(points, (-2, -1)))
    edges = WAYS[way_of_tree(points)](points, real)
    return edges.view(*x.shape[:-2], x.shape[-2] - 1, 2)


@torch.no_grad()
def tree_of_distances(matrix: Tensor, mask: Tensor | None = None) -> Tensor:
    """The same of checked distances (..., n, n)."""
    n = matrix.shape[-1]
    weights = matrix.detach().reshape(-1, n, n)
    real = None if mask is None else mask.reshape(-1, n)
    weights = _apart(weights / power_of_two(largest(weights, (-2, -1))), real)
    return _of_weights(weights, real).view(*matrix.shape[:-2], n - 1, 2)


def _apart(weights: Tensor, real: Tensor | None) -> Tensor:
    """The weights, in place, with those to masked rows at ``FAR``."""
    if real is not None:
        weights.masked_fill_(~(real.unsqueeze(-1) & real.unsqueeze(-2)), FAR)
    return weights


def _of_weights(weights: Tensor, real: Tensor | None) -> Tensor:
    """The trees of all weights (b, n, n), each alike in both directions or the lesser of the two."""
    weights = torch.minimum(weights, weights.mT).contiguous()
    if can_compile(weights):
        return _ordered(grow(weights, _first(weights, real))[0])
    return _ordered(by_boruvka(weights) if weights.device.type == "cpu" else parallel_trees(weights))


def _first(points: Tensor, real: Tensor | None) -> Tensor:
    """The first real row of each cloud."""
    return torch.zeros(len(points), dtype=torch.long) if real is None else real.to(torch.uint8).argmax(-1)


def _ordered(edges: Tensor) -> Tensor:
    return torch.stack(edges.aminmax(dim=-1), -1)


def _in_parallel(points: Tensor, real: Tensor | None) -> Tensor:
    """On the CPU by differences, elsewhere by a product."""
    b, n, _ = points.shape
    exact = precise(points)
    if points.device.type == "cpu":
        exact = exact / power_of_two(largest(exact, (-2, -1)))
        weights = squared_gaps(exact, torch.arange(n), torch.arange(n).expand(b, n, n))
    else:
        weights = squared_distances(localized(exact, real)).to(points.dtype)
    return _of_weights(_apart(weights, real), real)


def _by_product(points: Tensor, real: Tensor | None) -> Tensor:
    """By Prim on a product about the mean, mended; a finer way where it is too coarse for a cloud."""
    finer = by_differences if points.dtype == torch.float64 else lambda some, its: _by_product(precise(some), its)
    rough = rough_distances(_about_mean(points, real))
    if rough is None:
        return finer(points, real)
    weights, loss = rough
    edges, lengths = grow(_apart(weights, real), _first(points, real))
    pairs, count = in_doubt(weights, edges, lengths, loss, DOUBTS * points.shape[1])
    edges, many = _ordered(edges), count > DOUBTS * points.shape[1]
    for c in ((count > 0) & ~many).nonzero().flatten().tolist():
        edges[c] = _least(
            points[c], None if real is None else real[c], torch.cat([edges[c], pairs[pairs[:, 0] == c, 1:]])
        )
    if bool(many.any()):
        edges[many] = finer(points[many], None if real is None else real[many])
    return edges


def _about_mean(points: Tensor, real: Tensor | None) -> Tensor:
    """The cloud about its mean, masked rows at zero: so an offset costs few digits."""
    if real is None:
        return points - points.mean(1, keepdim=True)
    mean = points.sum(1, keepdim=True) / real.sum(1).clamp_min(1)[:, None, None]
    return (points - mean).masked_fill_(~real.unsqueeze(-1), 0.0)


def _least(points: Tensor, real: Tensor | None, pairs: Tensor) -> Tensor:
    """The least spanning tree (n-1, 2) of a cloud (n, d) among pairs (m, 2) that hold it: Boruvka's algorithm."""
    n, ends = len(points), _ordered(pairs)
    square = exact_squares(points, ends)
    if real is not None:
        square = torch.where(real[ends].all(-1), square, math.inf)
    order = (ends[:, 0] * n + ends[:, 1]).argsort()
    ends = ends[order[square[order].argsort(stable=True)]]
    component, kept = torch.arange(n), torch.zeros(len(ends), dtype=torch.bool)
    while len(out := (component[ends[:, 0]] != component[ends[:, 1]]).nonzero().squeeze(-1)):
        sides = component[ends[out]]
        best = torch.full_like(component, len(ends)).scatter_reduce(0, sides.T.flatten(), out.repeat(2), "amin")
        joining = (best < len(ends)).nonzero().squeeze(-1)
        kept[best[joining]] = True
        component = _joined(component, joining, component[ends[best[joining]]])
    return ends[kept]


def _joined(component: Tensor, joining: Tensor, sides: Tensor) -> Tensor:
    """Components (n,) after those in ``joining`` (m,) hooked onto the other of their two ``sides`` (m, 2).

    All hooks agree on one order of the edges, so they close no circle, except that two components may take one edge.
    """
    node = torch.arange(len(component), device=component.device)
    onto = node.scatter(0, joining, sides.sum(1) - joining)
    onto = torch.where((onto[onto] == node) & (node < onto), node, onto)
    while not torch.equal(onto[onto], onto):
        onto = onto[onto]
    return onto[component]


def _by_neighbours(points: Tensor, real: Tensor | None) -> Tensor:
    """Boruvka on lists, a cloud at a time; a row off the mask hangs on the first real row."""
    if real is None:
        return torch.stack([_of_lists(one) for one in points])
    made = []
    for one, its in zip(points, real, strict=True):
        inside, outside = its.nonzero().squeeze(-1), (~its).nonzero().squeeze(-1)
        inner = inside[_of_lists(one[inside])] if len(inside) > 1 else inside.new_empty(0, 2)
        made.append(torch.cat([inner, _ordered(torch.stack((inside[:1].expand_as(outside), outside), -1))]))
    return torch.stack(made)


def _of_lists(points: Tensor) -> Tensor:
    """The least tree (n-1, 2) of one cloud (n, d).

    Each point keeps its nearest others. As long as one of them lies outside the point's own component, the first such
    is the nearest point outside. When none does, the last of the list is a bound, and the point is looked up again,
    outside its component, only if what its component has isn't below that bound. The largest component needs no way
    out of its own: all others hook onto something.
    """
    n, search = len(points), Search(points[None], None)
    node = component = torch.arange(n, device=points.device)
    index, square = (found[0] for found in search(min(LISTED, n - 1)))
    kept: list[Tensor] = []
    while sum(map(len, kept)) < n - 1:
        outside = (component[index] != component.unsqueeze(1)) & (index >= 0)
        has, first = outside.max(1)
        least = torch.where(has, square.gather(1, first.unsqueeze(1)).squeeze(1), math.inf)
        best = least.new_full((n,), math.inf).scatter_reduce(0, component, least, "amin")
        small = component != torch.bincount(component).argmax()
        again = (~has & small & (square[:, -1] <= best[component])).nonzero().squeeze(-1)
        if len(again):
            index[again], square[again] = (found[0] for found in search(index.shape[1], again, component))
            continue
        mate = index.gather(1, first.unsqueeze(1)).squeeze(1)
        number = torch.minimum(node, mate) * n + torch.maximum(node, mate)
        number = torch.where(small & has & (least == best[component]), number, n * n)
        number = torch.full_like(node, n * n).scatter_reduce(0, component, number, "amin")
        joining = (number < n * n).nonzero().squeeze(-1)
        ends = torch.stack((number[joining] // n, number[joining] % n), -1)
        kept.append(torch.unique(ends, dim=0))
        component = _joined(component, joining, component[ends])
    return torch.cat(kept)


Way = Callable[[Tensor, Tensor | None], Tensor]
WAYS: dict[str, Way] = {
    "parallel": _in_parallel,
    "differences": by_differences,
    "product": _by_product,
    "neighbours": _by_neighbours,
}
