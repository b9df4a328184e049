"""Prim's algorithm as a compiled loop for the CPU, exact: on differences in float64, or on distances that are given."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled import IN_ORDER, np, run

ALL = torch.empty(0, 0, dtype=torch.bool, device="cpu")  # no mask


def prim(x: Tensor, real: Tensor | None, precomputed: bool = False) -> tuple[Tensor, Tensor]:
    """Edges (b, n-1, 2) of the least trees of clouds (b, n, d), and their lengths (b, n-1).

    With ``precomputed`` of distances (b, n, n).

    The longest first, equal ones by the edge number, the lower end of each first. A row off the mask hangs on the first
    real one, at 0, behind all others.
    """
    b, n, _ = x.shape
    edges, lengths = torch.empty(b, n - 1, 2, dtype=torch.long), x.new_empty(b, n - 1)
    run(_prim, IN_ORDER, x, ALL if real is None else real, int(precomputed), edges, lengths)
    return edges, lengths


def _prim(x: Any, real: Any, precomputed: int, edges: Any, lengths: Any) -> None:  # noqa: PLR0915 - a second call is a tenth
    """The free nodes stand side by side, a coordinate a row, so that every loop over them runs on whole vectors.

    Under the coordinates, of which there are none for distances, stand the distance to the node that joined last, the
    key, and the edge it stands for: the node in the tree, and the free one.
    """
    clouds, n, d = len(x), x.shape[1], 0 if precomputed else x.shape[2]
    columns, current, place = np.empty((d + 4, n)), np.empty(d), np.empty(n, np.int64)
    gap, key, near, free = columns[d], columns[d + 1], columns[d + 2], columns[d + 3]
    square, number, order, other = np.empty(n - 1), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for c in range(clouds):
        m, first, filled = 0, -1, 0
        for j in range(n):
            if len(real) > 0 and not real[c, j]:
                continue
            if first < 0:
                first, place[j] = j, n
                continue
            for t in range(d):
                columns[t, m] = x[c, j, t]
            key[m], near[m], free[m], place[j] = float("inf"), -1.0, j, m
            m += 1
        for j in range(n if len(real) > 0 else 0):
            if not real[c, j]:
                edges[c, n - 2 - filled, 0], edges[c, n - 2 - filled, 1] = min(max(first, 0), j), max(first, j)
                square[n - 2 - filled] = -1.0
                filled += 1
        for t in range(d):
            current[t] = x[c, max(first, 0), t]
        node, line = float(first), 0
        while m > 0:
            for j in range(m):
                gap[j] = 0.0 if d else x[c, int(node), int(free[j])]
            for t in range(d):
                for j in range(m):
                    gap[j] += (columns[t, j] - current[t]) * (columns[t, j] - current[t])
            best = float("inf")
            for j in range(m):
                nearer = (gap[j] < key[j]) | ((gap[j] == key[j]) & (node < near[j]))
                near[j] = node if nearer else near[j]
                key[j] = min(key[j], gap[j])
                best = min(best, key[j])
            least = float(n) * n
            for j in range(m):
                number_of_edge = min(near[j], free[j]) * n + max(near[j], free[j])
                least = min(least, number_of_edge if key[j] == best else float(n) * n)
            low = int(least) // n
            high = int(least) - low * n
            edges[c, line, 0], edges[c, line, 1], square[line] = low, high, best
            line += 1
            p = min(place[low], place[high])  # one of the two has joined
            node, m = free[p], m - 1
            for t in range(d):
                current[t], columns[t, p] = columns[t, p], columns[t, m]
            key[p], near[p], free[p] = key[m], near[m], free[m]
            place[int(free[p])] = p
            place[int(node)] = n
        for j in range(n - 1):
            number[j], order[j] = edges[c, j, 0] * n + edges[c, j, 1], j
            lengths[c, j] = -1.0 if square[j] < 0 else np.sqrt(square[j])
        width = 1
        while width < n - 1:  # runs of this width are in order, and two by two become one
            for start in range(0, n - 1, 2 * width):
                i, j, end = start, min(start + width, n - 1), min(start + 2 * width, n - 1)
                middle = j
                for k in range(start, end):
                    a, b = order[min(i, n - 2)], order[min(j, n - 2)]
                    longer = lengths[c, a] > lengths[c, b] or (lengths[c, a] == lengths[c, b] and number[a] < number[b])
                    if i < middle and (j == end or longer):
                        other[k], i = a, i + 1
                    else:
                        other[k], j = b, j + 1
            order, other, width = other, order, 2 * width
        for j in range(n - 1):
            edges[c, j, 0], edges[c, j, 1] = number[order[j]] // n, number[order[j]] % n
            square[j] = max(lengths[c, order[j]], 0.0)
        for j in range(n - 1):
            lengths[c, j] = square[j]
