"""Prim's algorithm as compiled loops for the CPU: exact on differences, or on a product that leaves pairs in doubt."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled import IN_ORDER, run

__all__ = ["FAR", "by_differences", "grow", "in_doubt"]

FAR = 2.0**96  # the weight of a pair with a masked row: beyond all others, and exact in every type


def by_differences(points: Tensor, real: Tensor | None) -> Tensor:
    """Edges (b, n-1, 2) of the least trees of clouds (b, n, d), by differences in float64; ties by the edge number."""
    b, n, d = points.shape
    edges = torch.empty(b, n - 1, 2, dtype=torch.long)
    columns, own = torch.empty(d + 4, n, dtype=torch.float64), torch.empty(d, dtype=torch.float64)
    real = torch.ones(b, n, dtype=torch.bool) if real is None else real
    run(_subtract, IN_ORDER, points, real, columns, own, torch.empty(n, dtype=torch.long), edges)
    return edges


def _subtract(points: Any, real: Any, columns: Any, own: Any, place: Any, edges: Any) -> None:
    """The free nodes stand side by side, a coordinate a row, so that every loop over them runs on whole vectors.

    Under the coordinates stand the distance to the node that joined last, the key, and the edge it stands for: the node
    in the tree, and the free one.
    """
    clouds, n, d = points.shape
    gap, key, near, free = columns[d], columns[d + 1], columns[d + 2], columns[d + 3]
    for c in range(clouds):
        m, first, filled = 0, -1, 0
        for j in range(n):
            if not real[c, j]:
                continue
            if first < 0:
                first, place[j] = j, n
                continue
            for t in range(d):
                columns[t, m] = points[c, j, t]
            key[m], near[m], free[m], place[j] = float("inf"), -1.0, j, m
            m += 1
        for j in range(n):  # a row off the mask hangs on the first real one
            if not real[c, j]:
                edges[c, n - 2 - filled, 0], edges[c, n - 2 - filled, 1] = max(first, 0), j
                filled += 1
        for t in range(d):
            own[t] = points[c, max(first, 0), t]
        node, line = float(first), 0
        while m > 0:
            for j in range(m):
                gap[j] = (columns[0, j] - own[0]) * (columns[0, j] - own[0])
            for t in range(1, d):
                for j in range(m):
                    gap[j] += (columns[t, j] - own[t]) * (columns[t, j] - own[t])
            best = float("inf")
            for j in range(m):
                nearer = (gap[j] < key[j]) | ((gap[j] == key[j]) & (node < near[j]))
                near[j] = node if nearer else near[j]
                key[j] = min(key[j], gap[j])
                best = min(best, key[j])
            number = float(n) * n
            for j in range(m):
                its = min(near[j], free[j]) * n + max(near[j], free[j])
                number = min(number, its if key[j] == best else float(n) * n)
            low = int(number) // n
            high = int(number) - low * n
            edges[c, line, 0], edges[c, line, 1] = low, high
            line += 1
            p = min(place[low], place[high])  # one of the two has joined
            node, m = free[p], m - 1
            for t in range(d):
                own[t], columns[t, p] = columns[t, p], columns[t, m]
            key[p], near[p], free[p] = key[m], near[m], free[m]
            place[int(free[p])] = p
            place[int(node)] = n


def grow(weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
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


def in_doubt(weights: Tensor, edges: Tensor, lengths: Tensor, slack: Tensor, most: int) -> tuple[Tensor, Tensor]:
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
