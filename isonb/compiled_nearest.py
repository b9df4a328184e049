"""The choice of neighbours as compiled loops for the CPU, once a process has searched enough to wait for them.

Of each strip of the product three loops make its neighbours, while it lies in the cache. The first splits the entries
of a row into classes and finds a bound that enough classes have an entry below: at least so many entries are then
below it, and not many more. The second collects them. The third measures them by differences and keeps the nearest.
The plain form (:mod:`isonb.nearest`) writes and reads the strip five times to do the same.
The product of a whole cloud needs its upper blocks only: what a row lacks stands in its column, above, and a loop
before the first finds the least entries there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.compiled_prim import machine_code

__all__ = ["BLOCK", "PATIENCE", "Choice", "compiled_choice", "load"]

PATIENCE = 2**28  # entries that a process looks through by the plain form before the loops are loaded: half a second
CLASSES = 128  # of column numbers: as many lie side by side in a few vectors
BLOCK = 2 * CLASSES  # rows whose columns begin together where the product of a whole cloud is cut; whole classes
WIDEST = CLASSES // 4  # most candidates a row; of more the plain form isn't slower
Choice = Callable[[Tensor, Tensor, Tensor, int, int, int, int], tuple[Tensor, Tensor, Tensor]]
_taken = [0]  # entries so far, in this process


def compiled_choice(entries: int, wide: int) -> Choice | None:
    """The compiled choice, or None while it isn't worth loading: ``entries`` more are then counted as plain ones."""
    if torch.compiler.is_compiling() or wide > WIDEST:
        return None
    if _taken[0] > PATIENCE or load.cache_info().currsize:
        return load()
    _taken[0] += entries
    return None


@functools.cache
def load() -> Choice | None:
    """The loops as machine code, None where numba isn't installed; kept on disk for the next process."""
    flags = {"nnan", "nsz"}  # no NaN gets here
    loops = [machine_code(loop, flags) for loop in (_above, _bounds, _below)]
    loops.append(machine_code(_ranked, flags | {"reassoc"}))
    made = [loop for loop in loops if loop is not None]
    return functools.partial(_run, _Loops(*made)) if len(made) == len(loops) else None


class _Loops(NamedTuple):
    above: Callable[..., None]
    bounds: Callable[..., None]
    below: Callable[..., None]
    ranked: Callable[..., None]


def _run(
    loops: _Loops, points: Tensor, half: Tensor, product: Tensor, low: int, k: int, wide: int, block: int
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
    index, square = torch.empty(b, m, k, dtype=torch.long), half.new_empty(b, m, k)
    product.diagonal(low, 1, 2).fill_(-torch.inf)
    own = [part.numpy() for part in (half, product, columns, least, bound, chosen, count)]
    if block < m:
        loops.above(*own[:3], block)
    loops.bounds(*own[:5], wide, block)
    loops.below(*own[:2], *own[3:], block)
    loops.ranked(points.contiguous().numpy(), *own[5:], low, index.numpy(), square.numpy())
    return index, square[..., -1], bound


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
            norms, row, top, found, first = half[c], product[c, i], bound[c, i], 0, i // block * block
            for g in range(classes):
                if least[c, i, g] <= top:
                    for j in range(g, n, classes):
                        entry = norms[j] - (row[j] if j >= first else product[c, j, i])
                        if entry <= top and entry < float("inf"):
                            if found < room:
                                chosen[c, i, found] = j
                            found += 1
            count[c, i] = found


def _ranked(points: Any, chosen: Any, count: Any, low: int, index: Any, square: Any) -> None:
    """The nearest of the candidates by their squared differences, ties by index; none where they had no room."""
    clouds, m, k = index.shape
    for c in range(clouds):
        for i in range(m):
            own, near, away = points[c, low + i], index[c, i], square[c, i]
            near[:], away[:] = -1, float("inf")
            if count[c, i] > chosen.shape[2]:
                continue
            for place in range(count[c, i]):
                j = chosen[c, i, place]
                other, total = points[c, j], 0.0
                for t in range(len(own)):
                    gap = 1.0 * (other[t] - own[t])  # from here on in float64
                    total += gap * gap
                entry, p = square.dtype.type(total), k
                while p > 0 and (
                    entry < away[p - 1] or (entry == away[p - 1] and (near[p - 1] < 0 or j < near[p - 1]))
                ):
                    p -= 1
                    if p < k - 1:
                        near[p + 1], away[p + 1] = near[p], away[p]
                if p < k:
                    near[p], away[p] = j, entry
