"""The choice of neighbours as compiled loops for the CPU, where numba is installed.

A first loop goes over tiles of the product of a cloud with itself and keeps for each row its least entries so far; as
the product is alike in both directions a tile serves its rows and its columns. A second loop measures what was kept by
differences, and keeps the nearest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.numerics.compiled import ANY_ORDER, IN_ORDER, LOOKED_AT, np, run

EVERY = torch.empty(0, 0, 0, dtype=torch.long, device="cpu")
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


class Scanned(NamedTuple):
    """Indices and squared distances in float64 (m, k) of the nearest, ascending, ties by index.

    ``sure`` (m,) where no other point can be among them, by the rounding of what was compared. ``total``: the sum of
    all squares, which isn't finite where a number isn't, or a square doesn't fit.
    """

    near: Tensor
    square: Tensor
    sure: Tensor
    total: float


def scan(queries: Tensor, points: Tensor, k: int, spare: int) -> Scanned:
    """The k nearest of points (n, d) to queries (m, d), by differences in float64 of ``spare`` candidates more.

    Those are the nearest by differences in the type of the points, each of which is wrong by a share alone. Without
    spare ones float64 differences of all choose.
    """
    m, (n, d) = len(queries), points.shape
    wide = min(k + spare, n)
    least = torch.empty(m, wide, dtype=points.dtype if spare else torch.float64)
    whose, index, sure = (torch.empty(m, w, dtype=torch.long) for w in (wide, k, 1))
    square, total, info = torch.empty(m, k + 1, dtype=torch.float64), 0.0, torch.finfo(least.dtype)
    share = (d + 4) * info.eps if least.dtype != torch.float64 else 0.0
    run(_scan, LOOKED_AT, queries, points, least, whose, index, square, sure, share, d * info.tiny)
    total = float(square[:, k].sum())
    return Scanned(index, square[:, :k], sure[:, 0], total)


def _scan(
    queries: Any, points: Any, least: Any, whose: Any, index: Any, square: Any, sure: Any, share: float, tiny: float
) -> None:
    """A few points at a time, so that they stay in the cache for all queries; four of them side by side."""
    (m, wide), (n, d), k = least.shape, points.shape, index.shape[1]
    four = np.ones(4, least.dtype)
    one = four[0]
    least[:], whose[:], square[:] = float("inf"), -1, 0.0
    for start in range(0, n, 32):
        for i in range(m):
            own, worst, whole = queries[i], least[i, wide - 1], 0.0
            for first in range(start, min(start + 32, n), 4):
                last = min(first + 4, n)
                a, b, c, e = (
                    points[first],
                    points[min(first + 1, n - 1)],
                    points[min(first + 2, n - 1)],
                    points[last - 1],
                )
                to_a, to_b, to_c, to_e = one - one, one - one, one - one, one - one
                for t in range(d):
                    gap = one * a[t] - own[t]
                    to_a += gap * gap
                    gap = one * b[t] - own[t]
                    to_b += gap * gap
                    gap = one * c[t] - own[t]
                    to_c += gap * gap
                    gap = one * e[t] - own[t]
                    to_e += gap * gap
                whole += to_a + to_b + to_c + to_e
                four[0], four[1], four[2], four[last - first - 1] = to_a, to_b, to_c, to_e
                some = to_a < worst or to_b < worst or to_c < worst or to_e < worst
                for j in range(first, last if some else first):
                    entry = four[j - first]
                    if entry < worst:
                        p = wide - 1
                        while p > 0 and least[i, p - 1] > entry:
                            least[i, p], whose[i, p] = least[i, p - 1], whose[i, p - 1]
                            p -= 1
                        least[i, p], whose[i, p] = entry, j
                        worst = least[i, wide - 1]
            square[i, k] += whole
    for i in range(m):
        near, away = index[i], square[i, :k]
        near[:], away[:] = -1, float("inf")
        for s in range(wide):
            j, entry, p = whose[i, s], 0.0, k
            if j < 0:
                break
            for t in range(d):
                gap = 1.0 * points[j, t] - queries[i, t]
                entry += gap * gap
            if share == 0.0:
                entry = least[i, s]
            while p > 0 and (entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or j < near[p - 1]))):
                p -= 1
                if p < k - 1:
                    near[p + 1], away[p + 1] = near[p], away[p]
            if p < k:
                near[p], away[p] = j, entry
        sure[i, 0] = share == 0.0 or wide == n or away[k - 1] < least[i, wide - 1] * (1 - share) - tiny


def ranked(
    points: Tensor, chosen: Tensor | None, rows: Tensor, label: Tensor, k: int, asked: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Of rows (m,) of clouds (b, n, d) the nearest of those ``chosen`` (b, m, wide) that have another label (n,).

    Indices and squared distances (b, m, k), nearest first, ties by index; -1 and infinity where there are too few.
    Without ``chosen`` all rows are asked for, among all: each pair is then measured once. With ``asked`` (b, q, d) the
    rows are those of it, and have no label.
    """
    index = torch.empty(len(points), len(rows), k, dtype=torch.long)
    square = torch.empty(index.shape, dtype=torch.float64)
    mine = label[rows] if asked is None else torch.full_like(rows, -1)
    every = EVERY if chosen is None else chosen
    run(_ranked, ANY_ORDER, points, points if asked is None else asked, every, rows, mine, label, index, square)
    return index, square


def _ranked(points: Any, asked: Any, chosen: Any, rows: Any, mine: Any, label: Any, index: Any, square: Any) -> None:
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
            own, near, away = asked[c, rows[i]], index[c, i], square[c, i]
            near[:], away[:] = -1, float("inf")
            for s in range(wide):
                j = s if every else chosen[c, i, s]
                if j < 0 or label[j] == mine[i]:
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
