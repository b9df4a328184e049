"""Minimum spanning trees of batches of clouds: exact, for any offset and scale. No gradient passes here.

=================  ===========================  ==================================================================
points of a cloud  where                        the first tree, on rounded squared distances
=================  ===========================  ==================================================================
up to ``DENSE``    on the CPU                   Prim: n short steps, each one pass over a row of all n x n weights;
                                                compiled where numba is installed (:mod:`~isonb.barcodes.compiled_prim`)
up to ``DENSE``    on accelerators              :mod:`~isonb.barcodes.parallel_trees` in float64: few steps,
                                                each over all weights, because there a step costs a launch
more               anywhere                     :func:`~isonb.barcodes.tiled_trees.tiled_tree`: weights strip by strip
=================  ===========================  ==================================================================

But on accelerators, where nothing is looked at, a first tree is then mended. Each weight is known up to a bound. A pair
that isn't an edge of the tree is in doubt where its least possible weight is not above the most that the path between
its ends can weigh. The exact tree lies among the first one and the pairs in doubt: differences in float64 decide, equal
ones by the lower number ``low * n + high``. Of a cloud with many pairs in doubt (far from the origin, tight clusters)
the weights are computed anew, in float64 about a point of its own; of one that still has many (copies) equal rows are
taken together first. So the tree depends on the points alone, not on how the product was rounded.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import torch
from torch import Tensor

from isonb.barcodes.compiled_prim import FAR, compiled_prim
from isonb.barcodes.parallel_trees import parallel_trees
from isonb.barcodes.tiled_trees import tiled_tree
from isonb.numerics.distances import distances_from, exact_squares, localized, rough_distances, slack, squared_distances
from isonb.numerics.scale import largest, power_of_two, precise

__all__ = ["spanning_tree", "tree_of_distances"]

Tree = Callable[[Tensor, Tensor | None], Tensor]

DENSE = 8192  # points up to which all weights are held at once: 256 MiB of float32
DOUBTS = 4  # pairs in doubt a point from which finer weights are cheaper than differences
SLAB = 2**16  # weights searched for parents at a time: what the cache of the CPU holds
STRIP = 2**20  # weights searched for pairs in doubt at a time


@torch.no_grad()
def spanning_tree(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Edges (..., n-1, 2) of a Euclidean minimum spanning tree of a checked cloud (..., n, d).

    Rows off the mask hang on by edges of their own, so the edges between real rows are the tree of the real cloud.
    """
    points = x.detach().reshape(-1, *x.shape[-2:])
    real = None if mask is None else mask.reshape(-1, mask.shape[-1])
    if points.dtype == torch.float64:  # squares of float32 fit float64 as they are
        points = points / power_of_two(largest(points, (-2, -1)))
    if not len(points):
        edges = torch.empty(0, x.shape[-2] - 1, 2, dtype=torch.long, device=x.device)
    elif x.shape[-2] > DENSE:
        edges = _one_by_one(points, real, _of_strips)
    elif x.device.type == "cpu":
        edges = _by_prim(points, real, _about_mean(points, real), _finer)
    else:
        weights = squared_distances(localized(precise(points), real)).to(points.dtype)
        edges = parallel_trees(_apart(weights, real))
    return edges.view(*x.shape[:-2], x.shape[-2] - 1, 2)


@torch.no_grad()
def tree_of_distances(matrix: Tensor, mask: Tensor | None = None) -> Tensor:
    """The same of checked distances (..., n, n); where they are equal it is that of Prim's algorithm from the first."""
    n = matrix.shape[-1]
    weights = matrix.detach().reshape(-1, n, n)
    weights = weights / power_of_two(largest(weights, (-2, -1)))
    weights = torch.minimum(weights, weights.mT).contiguous()
    real = None if mask is None else mask.reshape(-1, n)
    if weights.device.type != "cpu":
        edges = parallel_trees(_apart(weights, real))
    else:
        loops = compiled_prim()
        edges = (loops.grow if loops else _prim)(_apart(weights, real), _first(weights, real))[0]
    return edges.view(*matrix.shape[:-2], n - 1, 2)


def _apart(weights: Tensor, real: Tensor | None) -> Tensor:
    """The weights, in place, with those to masked rows at ``FAR``."""
    if real is not None:
        weights.masked_fill_(~(real.unsqueeze(-1) & real.unsqueeze(-2)), FAR)
    return weights


def _by_prim(points: Tensor, real: Tensor | None, copy: Tensor, finer: Tree | None) -> Tensor:
    """The trees of ``points`` on weights of their ``copy``; by ``finer``, if any, where those are too coarse."""
    rough = rough_distances(copy)
    if rough is None:
        assert finer is not None
        return finer(points, real)
    weights, loss = rough
    loops = compiled_prim()
    edges, lengths = (loops.grow if loops else _prim)(_apart(weights, real), _first(points, real))
    if loops and finer:
        pairs, loose, many = loops.doubt(weights, edges, lengths, loss, DOUBTS * points.shape[1])
    else:
        rows = lambda some: weights.gather(1, some.unsqueeze(-1).expand(*some.shape, weights.shape[-1]))  # noqa: E731
        pairs, loose, many = _doubt(rows, edges, lengths, loss, DOUBTS * points.shape[1] if finer else None)
    return _mended(points, real, edges, loose, pairs, many, finer)


def _about_mean(points: Tensor, real: Tensor | None) -> Tensor:
    """The cloud about its mean, masked rows at zero: so an offset costs few digits."""
    if real is None:
        return points - points.mean(1, keepdim=True)
    mean = points.sum(1, keepdim=True) / real.sum(1).clamp_min(1)[:, None, None]
    return (points - mean).masked_fill_(~real.unsqueeze(-1), 0.0)


def _mended(
    points: Tensor,
    real: Tensor | None,
    edges: Tensor,
    loose: Tensor,
    pairs: Tensor,
    many: Tensor,
    finer: Tree | None,
) -> Tensor:
    """The edges, of which those that are ``loose`` are exchanged for pairs in doubt that are shorter."""
    if len(pairs):
        clouds, place = torch.unique(pairs[:, 0], return_inverse=True)
        theirs = None if real is None else real[clouds]
        edges[clouds] = _settled(points[clouds], theirs, edges[clouds], loose[clouds], place, pairs[:, 1:])
    if finer and bool(many.any()):
        edges[many] = finer(points[many], None if real is None else real[many])
    return edges


def _finer(points: Tensor, real: Tensor | None) -> Tensor:
    """The trees by weights in float64, about a point of the cloud."""
    return _by_prim(points, real, localized(precise(points), real), lambda few, its: _one_by_one(few, its, _of_copies))


def _of_copies(points: Tensor) -> Tensor:
    """The tree of one cloud (n, d) with equal rows: each copy hangs on the first of its like."""
    rows, like = torch.unique(points + 0.0, dim=0, return_inverse=True)  # -0.0 is 0.0
    node = torch.arange(len(points), device=points.device)
    first = torch.full_like(node[: len(rows)], len(points)).scatter_reduce(0, like, node, "amin")
    copies, own = node[first[like] != node], first.sort().values
    edges = torch.stack((first[like[copies]], copies), -1)
    if len(own) < 2:
        return edges
    alone = points[own].unsqueeze(0)
    if len(own) > DENSE:
        return torch.cat([own[_of_strips(alone[0], True)], edges])
    return torch.cat([own[_by_prim(alone, None, localized(precise(alone)), None)[0]], edges])


def _one_by_one(points: Tensor, real: Tensor | None, tree: Callable[[Tensor], Tensor]) -> Tensor:
    """The trees of the real rows of each cloud; a row off the mask hangs on the first real row."""
    if real is None:
        return torch.stack([tree(one) for one in points])
    made = []
    for one, its in zip(points, real, strict=True):
        inside, outside = its.nonzero().squeeze(-1), (~its).nonzero().squeeze(-1)
        inner = inside[tree(one[inside])] if len(inside) > 1 else inside.new_empty(0, 2)
        made.append(torch.cat([inner, torch.stack((inside[:1].expand_as(outside), outside), -1)]))
    return torch.stack(made)


def _of_strips(points: Tensor, wide: bool = False) -> Tensor:
    """The tree of one cloud (n, d) too large for all weights; off the CPU in float64, which TF32 doesn't touch."""
    wide = wide or points.device.type != "cpu"
    copy = localized(precise(points) if wide else points)
    edges, lengths = _joining(*tiled_tree(copy))
    loss = slack(copy, copy.square().sum(-1))
    rows = lambda some: distances_from(copy, some[0]).unsqueeze(0)  # noqa: E731
    most = None if wide else DOUBTS * len(points)
    pairs, loose, many = _doubt(rows, edges[None], lengths[None], loss[None], most)
    return _mended(points[None], None, edges[None], loose, pairs, many, lambda few, _: _of_copies(few[0])[None])[0]


def _joining(edges: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The edges (n-1, 2) of a tree in the order in which Prim's algorithm takes them, the joining node last."""
    near: list[list[tuple[float, int, int]]] = [[] for _ in range(len(edges) + 1)]
    for (a, b), length in zip(edges.tolist(), lengths.tolist(), strict=True):
        near[a].append((length, a, b))
        near[b].append((length, b, a))
    heap, joined, order = list(near[0]), {0}, []
    heapq.heapify(heap)
    while heap:
        length, a, b = heapq.heappop(heap)
        if b not in joined:
            joined.add(b)
            order.append((length, a, b))
            for edge in near[b]:
                heapq.heappush(heap, edge)
    return edges.new_tensor([edge[1:] for edge in order]), lengths.new_tensor([edge[0] for edge in order])


def _doubt(
    rows: Callable[[Tensor], Tensor], edges: Tensor, lengths: Tensor, loss: Tensor, most: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs (m, 3) in doubt as (cloud, node, node), edges (b, n-1) they may replace, clouds (b,) with too many.

    In Prim's order the heaviest edge between two nodes is the heaviest that joined after the first, up to the second.
    ``rows`` gives weights (b, m, n) of nodes (b, m).
    """
    b, n = loss.shape
    ceiling = (lengths + 2 * loss.amax(1, keepdim=True)).masked_fill(lengths >= FAR, -math.inf)
    order = torch.cat([edges[:, :1, 0], edges[..., 1]], 1)
    room, high, step = loss.gather(1, order), torch.full_like(loss, -math.inf), max(1, STRIP // n)
    pieces, count = [], torch.zeros(b, dtype=torch.long, device=loss.device)
    for low in range(0, n - 1, step):
        nodes, rise = edges[:, low : low + step], ceiling[:, low : low + step]
        m = rise.shape[1]
        above = torch.ones(m, m, dtype=torch.bool, device=loss.device).tril()
        own = torch.where(above, rise.unsqueeze(1), -math.inf).flip(-1).cummax(-1).values.flip(-1)
        top = torch.maximum(high[:, None, :low], rise.cummax(1).values.unsqueeze(-1))
        top = torch.cat([top, own.masked_fill(~above, -math.inf)], -1)
        high[:, : low + m] = top[:, -1]
        among = order[:, None, : low + m]
        least = rows(nodes[..., 1]).gather(2, among.expand(b, m, low + m)) - room[:, None, : low + m]
        doubtful = (least - top <= loss.gather(1, nodes[..., 1]).unsqueeze(-1)) & (among != nodes[..., :1])
        cloud, line, other = doubtful.nonzero(as_tuple=True)
        pieces.append(torch.stack((cloud, nodes[cloud, line, 1], order[cloud, other]), -1))
        count += doubtful.sum((1, 2))
        if most is not None and bool((count > most).all()):
            break
    many = count > (n * n if most is None else most)
    pairs = torch.cat(pieces)
    return pairs[~many[pairs[:, 0]]], torch.ones_like(lengths, dtype=torch.bool), many


def _settled(points: Tensor, real: Tensor | None, edges: Tensor, loose: Tensor, cloud: Tensor, pairs: Tensor) -> Tensor:
    """The least trees (b, n-1, 2) among edges (b, n-1, 2), which stay but for the loose ones, and pairs (m, 2)."""
    b, n, d = points.shape
    start = torch.arange(b, device=edges.device).view(-1, 1, 1) * n
    ends = torch.cat([(edges + start).flatten(0, 1), pairs + cloud.unsqueeze(1) * n])
    ends = torch.stack(ends.aminmax(dim=-1), -1)
    free = torch.cat([loose.flatten(), loose.new_ones(len(pairs))])
    length = torch.full((len(ends),), -math.inf, dtype=precise(points[:0]).dtype, device=ends.device)
    length[free] = exact_squares(points.reshape(-1, d), ends[free])
    if real is not None:
        length = torch.where(real.flatten()[ends].all(-1), length, math.inf)
    order = (ends[:, 0] * (b * n) + ends[:, 1]).argsort()
    ends = ends[order[length[order].argsort(stable=True)]]
    kept = ends[_least_forest(ends, b * n)]
    return kept[(kept[:, 0] // n).argsort(stable=True)].view(b, n - 1, 2) - start


def _least_forest(ends: Tensor, nodes: int) -> Tensor:
    """Which edges (m,) of some (m, 2) in ascending order are those of the least forest: Boruvka's algorithm."""
    node = torch.arange(nodes, device=ends.device)
    component, kept = node, torch.zeros(len(ends), dtype=torch.bool, device=ends.device)
    while len(out := (component[ends[:, 0]] != component[ends[:, 1]]).nonzero().squeeze(-1)):
        sides = component[ends[out]]
        best = torch.full_like(node, len(ends)).scatter_reduce(0, sides.T.flatten(), out.repeat(2), "amin")
        alive = (best < len(ends)).nonzero().squeeze(-1)
        both = component[ends[best[alive]]]
        onto = node.scatter(0, alive, both.sum(1) - alive)
        onto = torch.where((onto[onto] == node) & (node < onto), node, onto)
        while not torch.equal(onto[onto], onto):
            onto = onto[onto]
        kept[best[alive]] = True
        component = onto[component]
    return kept


def _first(points: Tensor, real: Tensor | None) -> Tensor:
    """The first real row of each cloud."""
    if real is None:
        return torch.zeros(len(points), dtype=torch.long, device=points.device)
    return real.to(torch.uint8).argmax(-1)


def _prim(weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Prim's algorithm on a batch (b, n, n) of weights below ``FAR`` or equal to it, from node ``first`` (b,).

    Returns edges (b, n-1, 2), the joining node last, and their weights (b, n-1); the diagonal is overwritten.

    The loop only finds the order in which nodes join. The diagonal is NaN: once a node has joined, its own row makes
    its key NaN and keeps it so, and a NaN is not among the free.
    """
    b, n, _ = weights.shape
    weights.diagonal(dim1=1, dim2=2).fill_(math.nan)
    table, start = weights.view(b * n, n), torch.arange(b) * n
    lines = table.unbind(0) if b == 1 else ()  # of a single cloud a row is looked at, not copied
    key, free, order = weights.new_full((b, n), math.inf), weights.new_empty(b, n), first.new_empty(n, b)
    order[0] = first
    for node, following in zip(order[:-1].unbind(0), order[1:].unbind(0), strict=True):
        row = lines[int(node)] if lines else table.index_select(0, start + node)
        torch.minimum(key, row, out=key)
        torch.nan_to_num(key, nan=math.inf, posinf=math.inf, out=free)
        torch.argmin(free, 1, out=following)
    return _parents(weights, order.T)


def _parents(weights: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """Each node after the first, joined to the nearest of those before it in ``order`` (b, n).

    Those after it get a weight beyond all others, those before it one below zero, by one subtraction of places: on the
    CPU that is several times faster than to compare and fill.
    """
    b, n, _ = weights.shape
    weights.diagonal(dim1=1, dim2=2).fill_(math.inf)
    places = torch.arange(n, dtype=weights.dtype).mul_(10 * FAR).expand(b, n)
    place = torch.empty_like(places).scatter_(1, order, places)
    step = max(1, SLAB // max(1, b * n))
    pieces = []
    for low in range(0, n, step):
        late = place.unsqueeze(1) - place[:, low : low + step, None]
        pieces.append(torch.maximum(late, weights[:, low : low + step], out=late).min(2))
    weight, parent = (torch.cat(halves, 1) for halves in zip(*pieces, strict=True))
    child = order[:, 1:]
    return torch.stack((parent.gather(1, child), child), -1), weight.gather(1, child)
