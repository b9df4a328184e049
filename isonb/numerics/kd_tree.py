"""A kd-tree as compiled loops for the CPU, where numba is installed: neighbours in few dimensions, exact in float64.

A box is passed over where even its nearest corner is too far: rounding is monotone, so that bound is never above the
distance to a point inside, as computed. Points with the label of the row that asks are no neighbours, and a box that
holds nothing else is passed over at once: with labels of components this is the search of Boruvka's algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.numerics.compiled import IN_ORDER, run

LEAF = 12  # most points of a box that isn't split


class KdTree(NamedTuple):
    """The points (m, d) in the order (m,) of the leaves; of each box its range there, and its corners (2, boxes, d).

    The third of the numbers of each range (boxes, 3) is the label that all of the box have, or -1.
    """

    points: Tensor
    order: Tensor
    ranges: Tensor
    corners: Tensor

    def search(self, some: Tensor, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Indices and squared distances (r, k) of the nearest of another label, of rows (r,); -1 and inf for none."""
        place = torch.full_like(label, -1).scatter_(0, self.order, torch.arange(len(self.order)))
        asked = torch.stack(place[some].sort())  # one near another: what one read is in the cache for the next
        index, square = some.new_empty(len(some), k), self.points.new_empty(len(some), k)
        run(_search, IN_ORDER, *self, label[self.order], asked, square.new_empty(2, 64), index, square)
        return index, square


def kd_tree(points: Tensor, real: Tensor | None) -> KdTree:
    """The tree of the real points of a cloud (n, d)."""
    order = torch.arange(len(points)) if real is None else real.nonzero().flatten()
    boxes = 2 ** (max(0, (len(order) - 1) // LEAF).bit_length() + 1) - 1
    corners = torch.empty(2, boxes, points.shape[1], dtype=torch.float64)
    tree = KdTree(points.double().contiguous(), order, order.new_zeros(boxes, 3), corners)
    run(_build, IN_ORDER, *tree)
    return tree._replace(points=tree.points[order])


def _build(points: Any, order: Any, ranges: Any, corners: Any) -> None:
    """Split each box at the median of its widest side; box b has the halves 2b + 1 and 2b + 2."""
    low, high = corners
    ranges[0, 1] = len(order)
    for box in range(len(ranges)):
        start, stop, _ = ranges[box]
        if start == stop:
            continue
        axis = 0
        for t in range(points.shape[1]):
            low[box, t] = high[box, t] = points[order[start], t]
        for j in range(start, stop):
            for t in range(points.shape[1]):
                low[box, t] = min(low[box, t], points[order[j], t])
                high[box, t] = max(high[box, t], points[order[j], t])
        for t in range(points.shape[1]):
            if high[box, t] - low[box, t] > high[box, axis] - low[box, axis]:
                axis = t
        if stop - start <= LEAF:
            continue
        middle, left, right = (start + stop) // 2, start, stop - 1
        while left < right:  # Hoare's selection
            pivot, i, j = points[order[(left + right) // 2], axis], left, right
            while i <= j:
                while points[order[i], axis] < pivot:
                    i += 1
                while points[order[j], axis] > pivot:
                    j -= 1
                if i <= j:
                    order[i], order[j] = order[j], order[i]
                    i, j = i + 1, j - 1
            if middle <= j:
                right = j
            elif middle >= i:
                left = i
            else:
                break
        ranges[2 * box + 1, 0], ranges[2 * box + 1, 1] = start, middle
        ranges[2 * box + 2, 0], ranges[2 * box + 2, 1] = middle, stop


def _search(
    points: Any, order: Any, ranges: Any, corners: Any, label: Any, asked: Any, stack: Any, index: Any, square: Any
) -> None:
    """The nearer half of each box first; equal distances by the lower index."""
    d, k = points.shape[1], index.shape[1]
    (low, high), (places, back), (boxes, gaps), alike = corners, asked, stack, ranges[:, 2]
    for box in range(len(ranges) - 1, -1, -1):
        start, stop = ranges[box, 0], ranges[box, 1]
        alike[box] = label[start] if stop > start else -1
        if stop - start > LEAF:
            alike[box] = alike[2 * box + 1] if alike[2 * box + 1] == alike[2 * box + 2] else -1
        else:
            for j in range(start, stop):
                if label[j] != alike[box]:
                    alike[box] = -1
    for r in range(len(places)):
        near, away, depth = index[back[r]], square[back[r]], 1
        near[:], away[:] = -1, float("inf")
        if places[r] < 0:  # off the mask
            continue
        own, mine, boxes[0], gaps[0] = points[places[r]], label[places[r]], 0, 0.0
        while depth > 0:
            depth -= 1
            box = int(boxes[depth])
            if gaps[depth] > away[k - 1] or alike[box] == mine:
                continue
            start, stop = ranges[box, 0], ranges[box, 1]
            if stop - start > LEAF:
                one, other = 0.0, 0.0
                for t in range(d):
                    gap = max(low[2 * box + 1, t] - own[t], own[t] - high[2 * box + 1, t], 0.0)
                    one += gap * gap
                    gap = max(low[2 * box + 2, t] - own[t], own[t] - high[2 * box + 2, t], 0.0)
                    other += gap * gap
                first = 1 if one > other else 2  # the farther one, which waits below
                boxes[depth], gaps[depth] = 2 * box + first, max(one, other)
                boxes[depth + 1], gaps[depth + 1] = 2 * box + 3 - first, min(one, other)
                depth += 2
                continue
            for j in range(start, stop):
                if label[j] == mine:
                    continue
                entry, p = 0.0, k
                for t in range(d):
                    gap = points[j, t] - own[t]
                    entry += gap * gap
                while p > 0 and (
                    entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or order[j] < near[p - 1]))
                ):
                    p -= 1
                    if p < k - 1:
                        near[p + 1], away[p + 1] = near[p], away[p]
                if p < k:
                    near[p], away[p] = order[j], entry
