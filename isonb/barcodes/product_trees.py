"""Trees of clouds with few points of many dimensions on the CPU: Prim's algorithm on a matrix product, then mended.

Each weight is known up to a bound. A pair that isn't an edge of the tree is in doubt where its least possible weight is
not above the most that the path between its ends can weigh. The exact tree lies among the first one and the pairs in
doubt: differences in float64 decide. Of a cloud with many pairs in doubt (tight clusters, copies) the product is taken
anew in float64, then all pairs are subtracted.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isonb.barcodes.compiled_prim import prim
from isonb.barcodes.parallel_trees import FAR, apart, joined
from isonb.numerics.compiled import IN_ORDER, run
from isonb.numerics.distances import rough_distances
from isonb.numerics.scale import precise

DOUBTS = 4  # pairs in doubt a point from which finer weights are cheaper than differences


def by_product(points: Tensor, real: Tensor | None) -> tuple[Tensor, None]:
    """Edges (b, n-1, 2) of the least trees of clouds (b, n, d); ties by the edge number."""
    wide = points.dtype == torch.float64
    finer = prim if wide else lambda some, its: by_product(precise(some), its)
    rough = rough_distances(_about_mean(points, real))
    if rough is None:
        return finer(points, real)[0], None
    weights, loss = rough
    weights = apart(weights, real)
    first = torch.zeros(len(points), dtype=torch.long) if real is None else real.to(torch.uint8).argmax(-1)
    edges, lengths = _grown(weights, first)
    pairs, count = _in_doubt(weights, edges, lengths, loss, DOUBTS * points.shape[1])
    edges, many = torch.stack(edges.aminmax(dim=-1), -1), count > DOUBTS * points.shape[1]
    for c in ((count > 0) & ~many).nonzero().flatten().tolist():
        its = None if real is None else real[c]
        edges[c] = _least(points[c], its, torch.cat([edges[c], pairs[pairs[:, 0] == c, 1:]]))
    if bool(many.any()):
        edges[many] = finer(points[many], None if real is None else real[many])[0]
    return edges, None


def _about_mean(points: Tensor, real: Tensor | None) -> Tensor:
    """The cloud about its mean, masked rows at zero: so an offset costs few digits."""
    if real is None:
        return points - points.mean(1, keepdim=True)
    mean = points.sum(1, keepdim=True) / real.sum(1).clamp_min(1)[:, None, None]
    return (points - mean).masked_fill_(~real.unsqueeze(-1), 0.0)


def _least(points: Tensor, real: Tensor | None, pairs: Tensor) -> Tensor:
    """The least spanning tree (n-1, 2) of a cloud (n, d) among pairs (m, 2) that hold it: Boruvka's algorithm."""
    n, ends, wide = len(points), torch.stack(pairs.aminmax(dim=-1), -1), precise(points)
    gaps = wide[ends[:, 0]] - wide[ends[:, 1]]
    square = gaps.square_().cumsum_(-1)[:, -1]  # added up in the order of prim: what ties there ties here
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
        component = joined(component, joining, component[ends[best[joining]]])
    return ends[kept]


def _grown(weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Edges (b, n-1, 2), the joining node last, and their weights (b, n-1), of a batch (b, n, n) left as it is.

    From node ``first`` (b,) on, in the order of Prim's algorithm; ties by the edge number.
    """
    b, n, _ = weights.shape
    edges, lengths = first.new_empty(b, n - 1, 2), weights.new_empty(b, n - 1)
    run(_grow, IN_ORDER, weights, first, weights.new_empty(3, n), edges, lengths)
    return edges, lengths


def _grow(weights: Any, first: Any, own: Any, edges: Any, lengths: Any) -> None:
    """The order in which nodes join, by symmetric weights, then each joined to the nearest of those before it.

    ``own`` holds three numbers a node: its key, infinity once it has joined, and its place in the order. A minimum and
    the search for it are two loops, because each of them alone runs on whole vectors.
    """
    clouds, n = weights.shape[:2]
    key, joined, place = own
    for c in range(clouds):
        key[:], joined[:] = float("inf"), 0.0
        far, node = key[0], first[c]
        for k in range(n):
            joined[node], place[node] = far, k
            if k > 0:
                edges[c, k - 1, 1] = node
            row, best = weights[c, node], far
            for j in range(n):
                key[j] = min(key[j], row[j])
                best = min(best, key[j] + joined[j])
            alike, number = 0, n * n
            for j in range(n):
                alike += key[j] + joined[j] == best
            for j in range(n):
                if key[j] + joined[j] == best:
                    if alike == 1:
                        node = j
                        break
                    for i in range(n):  # of equal ones the lowest edge number
                        if joined[i] == far and weights[c, j, i] == best:
                            if min(i, j) * n + max(i, j) < number:
                                node, number = j, min(i, j) * n + max(i, j)
                            break
            if k < n - 1:
                lengths[c, k] = best
        for k in range(n - 1):
            node, best = edges[c, k, 1], lengths[c, k]
            row, before = weights[c, node], place[node]
            for j in range(n):
                if row[j] == best and place[j] < before:
                    edges[c, k, 0] = j
                    break


def _in_doubt(weights: Tensor, edges: Tensor, lengths: Tensor, slack: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The pairs (m, 3), as (cloud, node, node), that may be shorter than an edge of the tree, and their number (b,).

    Exact weights differ from ``weights`` by less than the slack (b, n) of both rows. At most ``most`` pairs a cloud are
    written down.
    """
    b, n = slack.shape
    pairs, count = edges.new_empty(b, most, 2), edges.new_zeros(b)
    run(_doubt, IN_ORDER, weights, edges, lengths, slack, slack.new_empty(2, n), pairs, count)
    cloud, place = (torch.arange(most) < count.unsqueeze(1)).nonzero(as_tuple=True)
    return torch.cat([cloud.unsqueeze(1), pairs[cloud, place]], 1), count


def _doubt(weights: Any, edges: Any, lengths: Any, slack: Any, own: Any, pairs: Any, count: Any) -> None:
    """Of each joined node the most that the path to the next one can weigh, against the least that the pair can.

    In Prim's order the heaviest edge between two nodes is the heaviest that joined after the first, up to the second.
    """
    clouds, n = slack.shape
    high, joined = own
    for c in range(clouds):
        room, widest = slack[c], slack[c].max()
        high[:], joined[:] = -float("inf"), -float("inf")
        far = -high[0]
        joined[edges[c, 0, 0]] = 0.0
        for k in range(n - 1):
            parent, node, top = edges[c, k, 0], edges[c, k, 1], lengths[c, k] + 2 * widest
            if lengths[c, k] >= FAR:  # to a masked row, and so are all later ones
                break
            row, gap, known = weights[c, node], far, max(high[parent], top)
            high[parent] = joined[parent] = -far  # no pair of its own
            for j in range(n):
                high[j] = max(high[j], top + joined[j])
                gap = min(gap, row[j] - room[j] - high[j])
            if gap <= room[node]:
                for j in range(n):
                    if row[j] - room[j] - high[j] <= room[node]:
                        if count[c] < pairs.shape[1]:
                            pairs[c, count[c], 0], pairs[c, count[c], 1] = node, j
                        count[c] += 1
            high[parent], joined[parent], joined[node] = known, 0.0, 0.0
