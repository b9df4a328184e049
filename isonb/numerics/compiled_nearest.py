"""The choice of neighbours as compiled loops for the CPU, where numba is installed.

Of each strip of the product three loops make its neighbours, while it lies in the cache. The first splits the entries
of a row into classes and finds a bound that enough classes have an entry below: at least so many entries are then
below it, and not many more. The second collects them. The third measures them by differences and keeps the nearest.
The plain form (:mod:`isonb.numerics.nearest`) writes and reads the strip five times to do the same.
The product of a whole cloud needs its upper blocks only: what a row lacks stands in its column, above, and a loop
before the first finds the least entries there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.numerics.compiled import machine_code

__all__ = ["BLOCK", "ChoiceLoops", "compiled_choice"]

CLASSES = 128  # of column numbers: as many lie side by side in a few vectors
BLOCK = 2 * CLASSES  # rows whose columns begin together where the product of a whole cloud is cut; whole classes
WIDEST = CLASSES // 4  # most candidates a row; of more the plain form isn't slower


class ChoiceLoops(NamedTuple):
    """The choice from a product, and the search among all points."""

    choose: Callable[[Tensor, Tensor, Tensor, int, int, int, int], tuple[Tensor, Tensor, Tensor]]
    among_all: Callable[[Tensor, Tensor | None, Tensor, int], Tensor]


def compiled_choice(wide: int) -> ChoiceLoops | None:
    """The compiled loops for ``wide`` candidates a row; None without numba, for a compiler, and for many candidates."""
    return None if torch.compiler.is_compiling() or wide > WIDEST else _load()


@functools.cache
def _load() -> ChoiceLoops | None:
    flags = {"nnan", "nsz"}  # no NaN gets here
    loops = [machine_code(loop, flags) for loop in (_above, _bounds, _below)]
    loops.append(machine_code(_ranked, flags | {"reassoc"}))
    made = [loop for loop in loops if loop is not None]
    if len(made) < len(loops):
        return None
    return ChoiceLoops(functools.partial(_run, _Made(*made)), functools.partial(_among_all, made[-1]))


class _Made(NamedTuple):
    above: Callable[..., None]
    bounds: Callable[..., None]
    below: Callable[..., None]
    ranked: Callable[..., None]


def _run(
    loops: _Made, points: Tensor, half: Tensor, product: Tensor, low: int, k: int, wide: int, block: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Of rows from ``low`` on the neighbours (b, m, k), -1 for none; the squared distance of the last; the bound.

    ``product`` (b, m, n) of these rows with all points (b, n, d) is overwritten on the diagonal; ``half`` (b, n) holds
    half the squared norms, infinity off the mask. Both returned bounds are (b, m): no point outside the candidates has
    :math:`|x_j|^2 / 2 - x_i x_j` below the second, and the first is infinite where the candidates were too many.
    Of the i-th row of the product only the columns from i // block * block on are looked at; with fewer than m rows a
    block it is the product of all rows with all, and what a row lacks stands above.
    """
    b, m, n = product.shape
    classes = min(CLASSES, n)
    columns = half.new_full((b, classes, n if block < m else 0), torch.inf)
    least, bound = half.new_empty(b, m, classes), half.new_empty(b, m)
    chosen, count = torch.empty(b, m, 4 * wide, dtype=torch.int32), torch.empty(b, m, dtype=torch.int32)
    index, square = torch.empty(b, m, k, dtype=torch.long), torch.empty(b, m, k, dtype=torch.float64)
    rows = torch.arange(low, low + m)
    product.diagonal(low, 1, 2).fill_(-torch.inf)
    own = [part.numpy() for part in (half, product, columns, least, bound, chosen, count)]
    if block < m:
        loops.above(*own[:3], block)
    loops.bounds(*own[:5], wide, block)
    loops.below(*own[:2], *own[3:], block)
    loops.ranked(*(part.numpy() for part in (points.contiguous(), chosen, count, rows, index, square)))
    return index, square[..., -1], bound


def _among_all(ranked: Callable[..., None], points: Tensor, real: Tensor | None, rows: Tensor, k: int) -> Tensor:
    """Of some rows (m,) of a cloud (n, d) the k nearest of all real ones, (m, k); -1 for none."""
    others = torch.arange(len(points)) if real is None else real.nonzero().flatten()
    chosen = others.to(torch.int32).expand(1, len(rows), -1)
    count = torch.full((1, len(rows)), len(others), dtype=torch.int32)
    index, square = rows.new_empty(1, len(rows), k), torch.empty(1, len(rows), k, dtype=torch.float64)
    ranked(*(part.numpy() for part in (points.contiguous()[None], chosen, count, rows, index, square)))
    return index[0]


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


def _ranked(points: Any, chosen: Any, count: Any, rows: Any, index: Any, square: Any) -> None:
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
                if j == rows[i]:
                    continue
                other, entry, p = points[c, j], 0.0, k
                for t in range(len(own)):
                    gap = 1.0 * other[t] - own[t]  # in float64
                    entry += gap * gap
                while p > 0 and (
                    entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or j < near[p - 1]))
                ):
                    p -= 1
                    if p < k - 1:
                        near[p + 1], away[p + 1] = near[p], away[p]
                if p < k:
                    near[p], away[p] = j, entry
