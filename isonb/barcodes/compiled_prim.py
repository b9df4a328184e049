"""Prim's algorithm as a compiled loop for the CPU, exact: on differences in float64, or on distances that are given."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled import IN_ORDER, run

__all__ = ["prim"]


def prim(x: Tensor, real: Tensor | None, given: bool = False) -> tuple[Tensor, Tensor]:
    """Edges (b, n-1, 2) of the least trees of clouds (b, n, d) and their squared lengths (b, n-1).

    The lower end first, ties by the edge number. ``given``: of distances (b, n, n). A row off the mask hangs on the
    first real one, at 0.
    """
    b, n, d = x.shape
    edges, d = torch.empty(b, n - 1, 2, dtype=torch.long), 0 if given else d
    columns, own = torch.empty(d + 4, n, dtype=torch.float64), torch.empty(d, dtype=torch.float64)
    real = torch.ones(b, n, dtype=torch.bool) if real is None else real
    squares = torch.zeros(b, n - 1, dtype=torch.float64)
    run(_prim, IN_ORDER, x, real, columns, own, torch.empty(n, dtype=torch.long), edges, squares)
    return edges, squares


def _prim(x: Any, real: Any, columns: Any, own: Any, place: Any, edges: Any, squares: Any) -> None:
    """The free nodes stand side by side, a coordinate a row, so that every loop over them runs on whole vectors.

    Under the coordinates, of which there are none for distances, stand the distance to the node that joined last, the
    key, and the edge it stands for: the node in the tree, and the free one.
    """
    clouds, n, d = len(x), x.shape[1], len(own)
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
                columns[t, m] = x[c, j, t]
            key[m], near[m], free[m], place[j] = float("inf"), -1.0, j, m
            m += 1
        for j in range(n):  # a row off the mask hangs on the first real one
            if not real[c, j]:
                edges[c, n - 2 - filled, 0], edges[c, n - 2 - filled, 1] = min(max(first, 0), j), max(first, j)
                filled += 1
        for t in range(d):
            own[t] = x[c, max(first, 0), t]
        node, line = float(first), 0
        while m > 0:
            for j in range(m):
                gap[j] = 0.0 if d else x[c, int(node), int(free[j])]
            for t in range(d):
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
            edges[c, line, 0], edges[c, line, 1], squares[c, line] = low, high, best
            line += 1
            p = min(place[low], place[high])  # one of the two has joined
            node, m = free[p], m - 1
            for t in range(d):
                own[t], columns[t, p] = columns[t, p], columns[t, m]
            key[p], near[p], free[p] = key[m], near[m], free[m]
            place[int(free[p])] = p
            place[int(node)] = n
