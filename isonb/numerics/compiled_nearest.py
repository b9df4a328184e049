"""The choice of neighbours as compiled loops for the CPU, where numba is installed.

A first loop goes over tiles of the product of a cloud with itself and keeps for each row its least entries so far; as
the product is alike in both directions a tile serves its rows and its columns. A second loop measures what was kept by
differences, and keeps the nearest.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled import ANY_ORDER, IN_ORDER, LOOKED_AT, np, run

EVERY = torch.empty(0, 0, 0, dtype=torch.long, device="cpu")
ANY_LABEL = EVERY.flatten()
EPS, TINY = torch.finfo(torch.float32).eps, torch.finfo(torch.float32).tiny
WIDEST = 64  # most neighbours a row; of more the plain form isn't slower


def keep(
    half: Tensor,
    product: Tensor,
    corner: tuple[int, int],
    rows: Tensor,
    label: Tensor | None,
    least: Tensor,
    whose: Tensor,
) -> None:
    """Take the entries of a tile (b, r, c) of the product into the ``least`` (b, m, wide) of m rows so far, ascending.

    An entry is :math:`|x_i - x_j|^2 / 2 = h_i + h_j - x_i x_j`, with the halves (b, n) of the squared norms, infinity
    off the mask; ``whose`` it is stands beside. The rows ``rows`` (m,) from the tile's ``corner`` on are asked for;
    without a ``label`` (n,) all rows are, and a tile on or above the diagonal stands for its mirror image, too.
    """
    most = least[..., -1].contiguous()
    others = most if label is None else half.new_full((1, half.shape[1]), -torch.inf).expand_as(half)
    run(_keep, IN_ORDER, half, product, *corner, rows, rows if label is None else label, least, whose, most, others)


def _keep(
    half: Any, product: Any, low: int, start: int, rows: Any, label: Any, least: Any, whose: Any, most: Any, others: Any
) -> None:
    """Sixteen columns at a time are passed over where none of them has an entry to keep: nearly all are."""
    clouds, m, n = product.shape
    wide, whole = least.shape[2], others[0, 0] > -float("inf")
    for c in range(clouds):
        for i in range(m):
            row, place = rows[low + i], low + i
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
                        to, candidate = (other, row) if mirrored else (place, other)
                        if entry < (bounds[j] if mirrored else most[c, place]):
                            p = wide - 1
                            while p > 0 and least[c, to, p - 1] > entry:
                                least[c, to, p], whose[c, to, p] = least[c, to, p - 1], whose[c, to, p - 1]
                                p -= 1
                            least[c, to, p], whose[c, to, p] = entry, candidate
                            most[c, to] = least[c, to, wide - 1]
                first = stop


def scan(queries: Tensor, points: Tensor, k: int, spare: int = 0) -> tuple[Tensor, Tensor, float, int]:
    """The k nearest of points (n, d) to queries (m, d), by differences in float64, ranked as they come.

    With ``spare`` candidates beyond k by differences in float32, which those in float64 rank. Indices and distances
    (m, k), ascending, ties by index; the sum of all squares, which isn't finite where a number isn't, or a square
    doesn't fit; and of how many queries what was left out may be as near: theirs is the index -1, at first.
    """
    rows, corpus = queries.numpy(), points.numpy()
    index, away = np.empty((len(rows), k), np.int64), np.empty((len(rows), k), rows.dtype)
    rows = rows if spare else rows.astype(np.float64)
    total, failing = run(_scan, LOOKED_AT, rows, corpus, min(k + spare, len(corpus)), index, away)
    return torch.from_numpy(index), torch.from_numpy(away), total, failing


def _scan(queries: Any, points: Any, wide: int, index: Any, away: Any) -> tuple[float, int]:
    """Rows of four quarters at a time: each load of a query serves four, and memory answers four far places at once.

    A few of them stay in the cache for all queries; nearly never there is one to keep.
    """
    (m, k), (n, d) = index.shape, points.shape
    least, whose = np.full((m, wide), np.inf, queries.dtype), np.full((m, wide), -1)
    square, total, failing = np.empty(wide), 0.0, 0
    quarter, zero = (n + 3) // 4, queries.dtype.type(0)
    for start in range(0, quarter, 4):
        for i in range(m):
            query, whole = queries[i], 0.0
            for j in range(start, min(start + 4, quarter)):
                first, second = points[j], points[min(j + quarter, n - 1)]
                third, fourth = points[min(j + 2 * quarter, n - 1)], points[min(j + 3 * quarter, n - 1)]
                a, b, c, e = zero, zero, zero, zero
                for t in range(d):
                    q = query[t]
                    a += (first[t] - q) * (first[t] - q)
                    b += (second[t] - q) * (second[t] - q)
                    c += (third[t] - q) * (third[t] - q)
                    e += (fourth[t] - q) * (fourth[t] - q)
                row = j
                for entry in (a, b, c, e):
                    if row < n:
                        whole += entry
                        p = wide
                        while p > 0 and (
                            entry < least[i, p - 1] or (entry == least[i, p - 1] and row < whose[i, p - 1])
                        ):
                            p -= 1
                            if p < wide - 1:
                                least[i, p + 1], whose[i, p + 1] = least[i, p], whose[i, p]
                        if p < wide:
                            least[i, p], whose[i, p] = entry, row
                    row += quarter
            total += whole
    for i in range(m):
        query, near = queries[i], whose[i]
        for s in range(wide):
            j, exact, p = near[s], 0.0, s
            point = points[j]
            for t in range(d):
                wider = 1.0 * point[t] - query[t]
                exact += wider * wider
            while p > 0 and (square[p - 1] > exact or (square[p - 1] == exact and near[p - 1] > j)):
                square[p], near[p] = square[p - 1], near[p - 1]
                p -= 1
            square[p], near[p] = exact, j
        index[i], away[i] = near[:k], np.sqrt(square[:k])
        if k < wide < n and square[k - 1] >= least[i, wide - 1] * (1 - (d + 4) * EPS) - d * TINY:
            index[i, 0] = -1
            failing += 1
    return total, failing


def ranked(
    points: Tensor, chosen: Tensor | None, rows: Tensor, label: Tensor | None, k: int, queries: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Of rows (m,) of clouds (b, n, d) the nearest of those ``chosen`` (b, m, wide) that have another label (n,).

    Indices and squared distances (b, m, k), nearest first, ties by index; -1 and infinity where there are too few.
    Without ``chosen`` all rows are asked for, among all: each pair is then measured once. Rows are those of ``queries``
    (b, q, d) where there are some; without a ``label`` any neighbour is taken.
    """
    index = torch.empty(len(points), len(rows), k, dtype=torch.long)
    square = torch.empty(index.shape, dtype=torch.float64)
    mine = rows if label is None else label[rows]
    label = ANY_LABEL if label is None else label
    every = EVERY if chosen is None else chosen
    run(_ranked, ANY_ORDER, points, points if queries is None else queries, every, rows, mine, label, index, square)
    return index, square


def _ranked(points: Any, queries: Any, chosen: Any, rows: Any, mine: Any, label: Any, index: Any, square: Any) -> None:
    clouds, m, k = index.shape
    every, n = len(chosen) == 0, points.shape[1]
    gaps, wide = np.empty((n if every else 0, n)), n if every else chosen.shape[2]
    for c in range(clouds):
        for i in range(len(gaps)):
            query = points[c, i]
            for j in range(i):
                other, entry = points[c, j], 0.0
                for t in range(len(query)):
                    gap = 1.0 * other[t] - query[t]  # in float64
                    entry += gap * gap
                gaps[i, j] = gaps[j, i] = entry
        for i in range(m):
            query, near, away = queries[c, rows[i]], index[c, i], square[c, i]
            near[:], away[:] = -1, float("inf")
            for s in range(wide):
                j = s if every else chosen[c, i, s]
                if j < 0 or (len(label) > 0 and label[j] == mine[i]):
                    continue
                entry, p = gaps[rows[i], j] if every else 0.0, k
                if not every:
                    other = points[c, j]
                    for t in range(len(query)):
                        gap = 1.0 * other[t] - query[t]
                        entry += gap * gap
                while p > 0 and (
                    entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or j < near[p - 1]))
                ):
                    p -= 1
                    if p < k - 1:
                        near[p + 1], away[p + 1] = near[p], away[p]
                if p < k:
                    near[p], away[p] = j, entry
