"""The choice of neighbours as compiled loops for the CPU, where numba is installed.

A first loop goes over tiles of the product of a cloud with itself and keeps for each row its least entries so far; as
the product is alike in both directions a tile serves its rows and its columns. A second loop measures what was kept by
differences, and keeps the nearest.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled import ANY_ORDER, IN_ORDER, np, run

EVERY = torch.empty(0, 0, 0, dtype=torch.long)
WIDEST = 64  # most neighbours a row; of more the plain form isn't slower


def keep(
    half: Tensor,
    product: Tensor,
    corner: tuple[int, int],
    own: Tensor,
    label: Tensor | None,
    least: Tensor,
    whose: Tensor,
) -> None:
    """Take the entries of a tile (b, r, c) of the product into the ``least`` (b, m, wide) of m rows so far, ascending.

    An entry is :math:`|x_i - x_j|^2 / 2 = h_i + h_j - x_i x_j`, with the halves (b, n) of the squared norms, infinity
    off the mask; ``whose`` it is stands beside. The rows ``own`` (m,) from the tile's ``corner`` on are asked for;
    without a ``label`` (n,) all rows are, and a tile on or above the diagonal stands for its mirror image, too.
    """
    most = least[..., -1].contiguous()
    others = most if label is None else half.new_full((1, half.shape[1]), -torch.inf).expand_as(half)
    run(_keep, IN_ORDER, half, product, *corner, own, own if label is None else label, least, whose, most, others)


def _keep(
    half: Any, product: Any, low: int, start: int, own: Any, label: Any, least: Any, whose: Any, most: Any, others: Any
) -> None:
    """Sixteen columns at a time are passed over where none of them has an entry to keep: nearly all are."""
    clouds, m, n = product.shape
    wide, whole = least.shape[2], others[0, 0] > -float("inf")
    for c in range(clouds):
        for i in range(m):
            row, place = own[low + i], low + i
            norm, first = half[c, row], max(0, place + 1 - start) if whole else 0
            while first < n:
                stop = min(first + 16, n)
                entries, norms, bounds = product[c, i, first:stop], half[c, start + first :], others[c, start + first :]
                hits, top = 0, most[c, place]
                for j in range(len(entries)):
                    entry = norm + norms[j] - entries[j]
                    hits += (entry < top) | (entry < bounds[j])
                for j in range(len(entries) if hits else 0):
                    other = start + first + j
                    entry = norm + norms[j] - entries[j]
                    if label[other] == label[row]:
                        continue
                    for mirrored in range(2):
                        to, one = (other, row) if mirrored else (place, other)
                        if entry < (bounds[j] if mirrored else most[c, place]):
                            p = wide - 1
                            while p > 0 and least[c, to, p - 1] > entry:
                                least[c, to, p], whose[c, to, p] = least[c, to, p - 1], whose[c, to, p - 1]
                                p -= 1
                            least[c, to, p], whose[c, to, p] = entry, one
                            most[c, to] = least[c, to, wide - 1]
                first = stop


def ranked(points: Tensor, chosen: Tensor | None, rows: Tensor, label: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Of rows (m,) of clouds (b, n, d) the nearest of those ``chosen`` (b, m, wide) that have another label (n,).

    Indices and squared distances (b, m, k), nearest first, ties by index; -1 and infinity where there are too few.
    Without ``chosen`` all rows are asked for, among all: each pair is then measured once.
    """
    index = torch.empty(len(points), len(rows), k, dtype=torch.long)
    square = torch.empty(index.shape, dtype=torch.float64)
    run(_ranked, ANY_ORDER, points, EVERY if chosen is None else chosen, rows, label, index, square)
    return index, square


def _ranked(points: Any, chosen: Any, rows: Any, label: Any, index: Any, square: Any) -> None:
    clouds, m, k = index.shape
    every, n = len(chosen) == 0, points.shape[1]
    gaps, wide = np.empty((n if every else 0, n)), n if every else chosen.shape[2]
    for c in range(clouds):
        for i in range(len(gaps)):
            own = points[c, i]
            for j in range(i):
                other, entry = points[c, j], 0.0
                for t in range(len(own)):
                    gap = 1.0 * other[t] - own[t]  # in float64
                    entry += gap * gap
                gaps[i, j] = gaps[j, i] = entry
        for i in range(m):
            own, near, away = points[c, rows[i]], index[c, i], square[c, i]
            near[:], away[:] = -1, float("inf")
            for s in range(wide):
                j = s if every else chosen[c, i, s]
                if j < 0 or label[j] == label[rows[i]]:
                    continue
                entry, p = gaps[rows[i], j] if every else 0.0, k
                if not every:
                    other = points[c, j]
                    for t in range(len(own)):
                        gap = 1.0 * other[t] - own[t]
                        entry += gap * gap
                while p > 0 and (
                    entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or j < near[p - 1]))
                ):
                    p -= 1
                    if p < k - 1:
                        near[p + 1], away[p + 1] = near[p], away[p]
                if p < k:
                    near[p], away[p] = j, entry
