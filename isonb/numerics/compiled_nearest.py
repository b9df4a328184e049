"""The choice of neighbours as compiled loops for the CPU, where numba is installed.

Of each strip of the product three loops make its neighbours, while it lies in the cache. The first splits the entries
of a row into classes and finds a bound that enough classes have an entry below: at least so many entries are then
below it, and not many more. The second collects them. The third measures them by differences and keeps the nearest.
The plain form (:mod:`isonb.numerics.nearest`) writes and reads the strip five times to do the same.
The product of a whole cloud needs its upper blocks only: what a row lacks stands in its column, above, and a loop
before the first finds the least entries there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled import ANY_ORDER, IN_ORDER, run

__all__ = ["BLOCK", "WIDEST", "among_all", "choose"]

CLASSES = 128  # of column numbers: as many lie side by side in a few vectors
BLOCK = 2 * CLASSES  # rows whose columns begin together where the product of a whole cloud is cut; whole classes
WIDEST = CLASSES // 4  # most candidates a row; of more the plain form isn't slower


def choose(
    points: Tensor, half: Tensor, product: Tensor, rows: Tensor, label: Tensor, k: int, wide: int, block: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of some rows (m,) the neighbours and their squared distances (b, m, k), -1 and infinity for none; and the bound.

    ``product`` (b, m, n) of these rows with all points (b, n, d) is -infinity where there is no neighbour; ``half``
    (b, n) holds half the squared norms, infinity off the mask. No point outside the candidates has
    :math:`|x_j|^2 / 2 - x_i x_j` below the bound (b, m); the distances are infinite where candidates were too many.
    Of the i-th row of the product only the columns from i // block * block on are looked at; with fewer than m rows a
    block it is the product of all rows with all, and what a row lacks stands above.
    """
    b, m, n = product.shape
    classes = min(CLASSES, n)
    columns = half.new_full((b, classes, n if block < m else 0), torch.inf)
    least, bound = half.new_empty(b, m, classes), half.new_empty(b, m)
    chosen, count = torch.empty(b, m, 4 * wide, dtype=torch.int32), torch.empty(b, m, dtype=torch.int32)
    index, square = torch.empty(b, m, k, dtype=torch.long), torch.empty(b, m, k, dtype=torch.float64)
    if block < m:
        run(_above, IN_ORDER, half, product, columns, block)
    run(_bounds, IN_ORDER, half, product, columns, least, bound, wide, block)
    run(_below, IN_ORDER, half, product, least, bound, chosen, count, block)
    run(_ranked, ANY_ORDER, points, chosen, count, rows, label, square.new_empty(points.shape[-1]), index, square)
    return index, square, bound


def among_all(points: Tensor, real: Tensor | None, rows: Tensor, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Of some rows (m,) of a cloud (n, d) the k nearest of another label (n,) among all real ones: as above, (m, k)."""
    others = torch.arange(len(points)) if real is None else real.nonzero().flatten()
    chosen = others.to(torch.int32).expand(1, len(rows), -1)
    count = torch.full((1, len(rows)), len(others), dtype=torch.int32)
    index, square = rows.new_empty(1, len(rows), k), torch.empty(1, len(rows), k, dtype=torch.float64)
    run(_ranked, ANY_ORDER, points[None], chosen, count, rows, label, square.new_empty(points.shape[-1]), index, square)
    return index[0], square[0]


def _above(half: Any, product: Any, columns: Any, block: int) -> None:
    """The least entry of each class of rows, of each column right of the block that these rows share."""
    clouds, m, _ = product.shape
    for c in range(clouds):
        for i in range(m):
            start = (i // block + 1) * block
            best, norm, row = columns[c, i % columns.shape[1], start:], half[c, i], product[c, i, start:]
            for j in range(len(row)):
                best[j] = min(best[j], norm - row[j])


def _bounds(half: Any, product: Any, columns: Any, least: Any, bound: Any, wide: int, block: int) -> None:
    """The least entry of each class, and a bound that ``wide`` of them or a few more don't exceed, by bisection."""
    clouds, m, n = product.shape
    classes = least.shape[2]
    for c in range(clouds):
        for i in range(m):
            best, first = least[c, i], i // block * block
            for g in range(classes):
                best[g] = columns[c, g, i] if first else float("inf")
            for start in range(first, n, classes):
                norms, row = half[c, start : start + classes], product[c, i, start : start + classes]
                for g in range(len(row)):
                    best[g] = min(best[g], norms[g] - row[g])
            lower, finite = best[0], 0
            for g in range(classes):
                lower = min(lower, best[g])
                finite += best[g] < float("inf")
            upper, count = lower, finite
            for g in range(classes):
                upper = max(upper, best[g] if best[g] < float("inf") else lower)
            for _ in range(40):
                if count <= wide + wide // 4:
                    break
                middle = lower + (upper - lower) / 2
                under = 0
                for g in range(classes):
                    under += best[g] <= middle
                if under >= wide:
                    upper, count = middle, under
                else:
                    lower = middle
            bound[c, i] = upper if finite >= wide else float("inf")


def _below(half: Any, product: Any, least: Any, bound: Any, chosen: Any, count: Any, block: int) -> None:
    """The columns of the entries up to the bound of each row, as far as there is room, and how many there are."""
    clouds, m, n = product.shape
    classes, room = least.shape[2], chosen.shape[2]
    for c in range(clouds):
        for i in range(m):
            norms, row, top, filled, first = half[c], product[c, i], bound[c, i], 0, i // block * block
            for g in range(classes):
                if least[c, i, g] <= top:
                    for j in range(g, n, classes):
                        entry = norms[j] - (row[j] if j >= first else product[c, j, i])
                        if entry <= top and entry < float("inf"):
                            if filled < room:
                                chosen[c, i, filled] = j
                            filled += 1
            count[c, i] = filled


def _ranked(points: Any, chosen: Any, count: Any, rows: Any, label: Any, gaps: Any, index: Any, square: Any) -> None:
    """The nearest of the candidates by their squared differences, ties by index; none where they had no room."""
    clouds, m, k = index.shape
    for c in range(clouds):
        for i in range(m):
            own, near, away = points[c, rows[i]], index[c, i], square[c, i]
            near[:], away[:] = -1, float("inf")
            if count[c, i] > chosen.shape[2]:
                continue
            for place in range(count[c, i]):
                j = chosen[c, i, place]
                if label[j] == label[rows[i]]:
                    continue
                other, entry, p = points[c, j], 0.0, k
                for t in range(len(own)):
                    gaps[t] = 1.0 * other[t] - own[t]  # in float64
                for t in range(len(own)):
                    entry += gaps[t] * gaps[t]
                while p > 0 and (
                    entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or j < near[p - 1]))
                ):
                    p -= 1
                    if p < k - 1:
                        near[p + 1], away[p + 1] = near[p], away[p]
                if p < k:
                    near[p], away[p] = j, entry
