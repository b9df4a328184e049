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

from isonb.barcodes.compiled_prim import ALL, prim
from isonb.barcodes.parallel_trees import FAR, joined
from isonb.numerics.compiled import ANY_ORDER, IN_ORDER, np, run
from isonb.numerics.distances import error_share
from isonb.numerics.products import gram
from isonb.numerics.scale import precise

DOUBTS = 4  # pairs in doubt a point from which finer weights are cheaper than differences


def by_product(points: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Edges (b, n-1, 2) of the least trees of clouds (b, n, d) and their lengths, in the order of ``prim``."""
    wide, most = points.dtype == torch.float64, DOUBTS * points.shape[1]
    finer = prim if wide else lambda some, row_mask: by_product(precise(some), row_mask)
    edges, pairs, count = _grown(points, real, most)
    if bool((count != 0).any()):
        for c in ((count > 0) & (count <= most)).nonzero().flatten().tolist():
            row_mask = None if real is None else real[c]
            edges[c] = _least(points[c], row_mask, torch.cat([edges[c], pairs[c, : count[c]]]))
        if bool((many := (count > most) | (count < 0)).any()):
            edges[many] = finer(points[many], None if real is None else real[many])[0]
    lengths = points.new_empty(edges.shape[:2])
    run(_finish, ANY_ORDER, points, ALL if real is None else real, edges, lengths)
    return edges, lengths


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
    component, selected = torch.arange(n), torch.zeros(len(ends), dtype=torch.bool)
    while len(out := (component[ends[:, 0]] != component[ends[:, 1]]).nonzero().squeeze(-1)):
        sides = component[ends[out]]
        best = torch.full_like(component, len(ends)).scatter_reduce(0, sides.T.flatten(), out.repeat(2), "amin")
        joining = (best < len(ends)).nonzero().squeeze(-1)
        selected[best[joining]] = True
        component = joined(component, joining, component[ends[best[joining]]])
    return ends[selected]


def _grown(points: Tensor, real: Tensor | None, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges (b, n-1, 2) of Prim's tree by product, pairs (b, most, 2) that may be shorter than one, and their number.

    The number (b,) is that of all, of which at most ``most`` are written down; -1 where squares don't fit.
    """
    b, n, d = points.shape
    weights, info = gram(_about_mean(points, real)), torch.finfo(points.dtype)
    edges, pairs, count = (torch.empty(shape, dtype=torch.long) for shape in ((b, n - 1, 2), (b, most, 2), b))
    room = weights.new_empty(7, n)
    share, lost = error_share(points), d * info.tiny
    run(_grow, IN_ORDER, weights, ALL if real is None else real, share, lost, room, edges, pairs, count)
    return edges, pairs, count


def _grow(  # noqa: PLR0915 - a second call is a tenth
    weights: Any, real: Any, share: float, lost: float, room: Any, edges: Any, pairs: Any, count: Any
) -> None:
    """Products become weights, the order in which nodes join is found, each joined to the nearest of those before it.

    Of a node there are its key, infinity once it has joined, its place in the order, what its weights may be wrong by
    (``error_bound`` of ``isonb.numerics.distances``), the heaviest edge on the path to it, and the weight it joined by.
    A minimum and the search for it are two loops, because each of them alone runs on whole vectors.
    """
    clouds, n = weights.shape[:2]
    key, joined, place, slack, high, join_weight, norm = room
    for c in range(clouds):
        matrix, first, count[c] = weights[c], 0, 0
        largest = matrix[0, 0]
        for i in range(n):
            norm[i] = matrix[i, i]
            slack[i] = norm[i] * share + lost
            largest = max(largest, norm[i])
        if not 1e-20 < largest < 1e20:
            count[c] = -1
            continue
        widest = slack.max()
        for i in range(n):
            row = matrix[i]
            for j in range(n):
                row[j] = norm[i] + norm[j] - 2 * row[j]
            for j in range(i):
                row[j] = matrix[j, i] = min(row[j], matrix[j, i])
        if len(real) > 0:
            while first < n - 1 and not real[c, first]:
                first += 1
            for i in range(n):
                for j in range(n):
                    if not (real[c, i] and real[c, j]):
                        matrix[i, j] = FAR
        key[:], joined[:] = float("inf"), 0.0
        far, node = key[0], first
        for k in range(n):
            joined[node], place[node] = far, k
            if k > 0:
                edges[c, k - 1, 1] = node
            row, best = matrix[node], far
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
                        if joined[i] == far and matrix[j, i] == best:
                            if min(i, j) * n + max(i, j) < number:
                                node, number = j, min(i, j) * n + max(i, j)
                            break
            join_weight[k] = best  # by which the next one joins
        high[:], joined[:] = -far, -far
        for k in range(n - 1):
            node, best = edges[c, k, 1], join_weight[k]
            row, before, parent = matrix[node], place[node], 0
            for j in range(n):
                if row[j] == best and place[j] < before:
                    parent = j
                    break
            edges[c, k, 0] = parent
            if k == 0:
                joined[parent] = 0.0
            # The most that the path to each joined node can weigh, against the least that the pair can: in Prim's
            # order the heaviest edge between two nodes is the heaviest that joined after the first, up to the second.
            top = best + 2 * widest
            if best < FAR:  # not to a masked row, as all later ones
                gap, path = far, max(high[parent], top)
                high[parent] = joined[parent] = -far  # no pair of its own
                for j in range(n):
                    high[j] = max(high[j], top + joined[j])
                    gap = min(gap, row[j] - slack[j] - high[j])
                for j in range(n if gap <= slack[node] else 0):
                    if row[j] - slack[j] - high[j] <= slack[node]:
                        if count[c] < pairs.shape[1]:
                            pairs[c, count[c], 0], pairs[c, count[c], 1] = min(node, j), max(node, j)
                        count[c] += 1
                high[parent], joined[parent], joined[node] = path, 0.0, 0.0
            edges[c, k, 0], edges[c, k, 1] = min(node, parent), max(node, parent)


def _finish(points: Any, real: Any, edges: Any, lengths: Any) -> None:
    """Lengths of the edges by differences in float64, and both in order: the longest first, equal ones by their number.

    Those of rows off the mask are 0 and last.
    """
    (clouds, n, d), m = points.shape, edges.shape[1]
    number, order, other = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    unsorted = np.empty_like(lengths[0])
    for c in range(clouds):
        for k in range(m):
            low, high, square = edges[c, k, 0], edges[c, k, 1], 0.0
            a, b = points[c, low], points[c, high]
            for t in range(d):
                gap = 1.0 * a[t] - b[t]
                square += gap * gap
            number[k], order[k] = low * n + high, k
            unsorted[k] = -1.0 if len(real) > 0 and not (real[c, low] and real[c, high]) else square**0.5
        width = 1
        while width < m:  # runs of this width are in order, and two by two become one
            for start in range(0, m, 2 * width):
                i, j, end = start, min(start + width, m), min(start + 2 * width, m)
                middle = j
                for k in range(start, end):
                    p, q = order[min(i, m - 1)], order[min(j, m - 1)]
                    longer = unsorted[p] > unsorted[q] or (unsorted[p] == unsorted[q] and number[p] < number[q])
                    if i < middle and (j == end or longer):
                        other[k], i = p, i + 1
                    else:
                        other[k], j = q, j + 1
            order, other, width = other, order, 2 * width
        for k in range(m):
            edges[c, k, 0], edges[c, k, 1] = number[order[k]] // n, number[order[k]] % n
            lengths[c, k] = max(unsorted[order[k]], 0.0)
