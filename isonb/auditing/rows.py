"""Matrices that are read by rows, in pieces, so that a file on disk needs little memory; one pass over all of them.

A matrix is a numpy array (mapped or not), a tensor, or whatever has ``shape`` (n, d) and gives rows for a slice or for
their numbers. It is never copied as a whole.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from isonb.runtime.terminal import printable

CHUNK = 8192  # rows read at a time
WIDE = (torch.float64, torch.int32, torch.int64, torch.uint32, torch.uint64)
NAMED = 20  # rows or dimensions that a finding names
SHOWN = 8  # members that a line names


@dataclass(frozen=True)
class Read:
    """What was read: its shape, the place it is from, which part of that it is, and what was left out.

    >>> print(Read((500, 16), "data.csv", "columns a to p", ("id",)))
    500 x 16 from data.csv, columns a to p; id left out
    """

    shape: tuple[int, int]
    place: str
    part: str = ""
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        part = f", {self.part}" if self.part else ""
        more = f" and {len(self.left_out) - SHOWN} more" if len(self.left_out) > SHOWN else ""
        out = f"; {', '.join(self.left_out[:SHOWN])}{more} left out" if self.left_out else ""
        return printable(f"{self.shape[0]:,} x {self.shape[1]} from {self.place}{part}{out}")


class RowSource:
    """A matrix of ``shape`` (n, d) whose rows ``take`` gives, for a slice or for their numbers, out of ``sources``.

    ``read``: what it was read from, where that is known.
    """

    def __init__(
        self,
        shape: Sequence[int],
        take: Callable[[Any], Any],
        sources: Sequence[Any] = (),
        read: Read | None = None,
    ) -> None:
        self.shape, self.take, self.sources, self.read = tuple(shape), take, sources, read

    def __getitem__(self, rows: Any) -> Any:
        return self.take(rows)


def changed(source: Any, change: Callable[[Any], Any]) -> RowSource:
    """A matrix whose rows are changed when they are read."""
    return RowSource(source.shape, lambda rows: change(source[rows]), [source])


def joined(sources: Sequence[Any]) -> RowSource:
    """Matrices of one width, one below the other."""
    starts = [0, *accumulate(item.shape[0] for item in sources)]

    def take(rows: Any) -> Tensor:
        index = torch.arange(*rows.indices(starts[-1])) if isinstance(rows, slice) else torch.as_tensor(rows)
        file = torch.searchsorted(torch.tensor(starts), index, right=True) - 1
        places = {i: (file == i).nonzero().flatten() for i in sorted(set(file.tolist()))}
        values = torch.cat([numbers(sources[i], index[at] - starts[i]) for i, at in places.items()])
        return values[torch.cat(list(places.values())).argsort()]

    return RowSource((starts[-1], sources[0].shape[1]), take, sources)


def numbers(source: Any, rows: Tensor | slice) -> Tensor:
    """Some rows as float32 on the CPU; as float64 if they are that, or long integers."""
    if isinstance(source, Tensor):
        part = source[rows if isinstance(rows, slice) else rows.to(source.device)].cpu()
        return part.double() if part.dtype in WIDE else part.float()
    part = source[rows if isinstance(rows, slice) else rows.numpy()]
    if isinstance(part, Tensor):
        return numbers(part, slice(None))
    wide = part.dtype.itemsize >= (8 if part.dtype.kind == "f" else 4)  # float32 holds integers up to 2^24
    return torch.from_numpy(part.astype("float64" if wide else "float32"))  # a copy in the machine's byte order


def usable(rows: Tensor) -> Tensor:
    """Which rows (n, d) an audit counts (n,): those that are finite and not zero."""
    return rows.isfinite().all(-1) & (rows != 0).any(-1)


def rows_of(source: Any, rows: Tensor) -> Tensor:
    """The rows of these numbers as one tensor, read in pieces."""
    matrix = torch.cat([numbers(source, part) for part in torch.split(rows, CHUNK)])
    _forget(source)
    return matrix


def pieces(source: Any) -> Iterator[tuple[int, Tensor]]:
    """All rows in their order, with the number of the first of each piece: as many at a time as the cache holds."""
    size = max(16, min(CHUNK, 2**17 // source.shape[1]))
    for start in range(0, source.shape[0], size):
        yield start, numbers(source, slice(start, start + size))
        _forget(source)


def _forget(source: Any) -> None:
    """Give back the memory of a mapped file, so that it doesn't grow to the size of the file."""
    for item in getattr(source, "sources", ()):
        _forget(item)
    mapped = getattr(source, "base", None)
    if isinstance(mapped, mmap.mmap) and getattr(source, "mode", "c") != "c" and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


@dataclass
class Pass:
    """What one pass over all rows knows: the numbers of those that are finite and not zero, and of the others.

    ``good``, ``wild`` (not finite), ``zero``: numbers of rows. ``repeats``: of those that are equal to an earlier one.
    ``energy``: the mean square of each dimension, ``low`` and ``high`` its ends. ``filled``: the share of the numbers
    that aren't zero. ``lengths``: of the good rows. ``half``: whether every value fits float16.
    """

    good: Tensor
    wild: Tensor
    zero: Tensor
    repeats: Tensor
    energy: Tensor
    low: Tensor
    high: Tensor
    filled: float
    lengths: Tensor
    half: bool


def read(source: Any) -> Pass:
    """One pass over all rows, and a look at those that may repeat an earlier one."""
    n, d = source.shape
    finite, zero, marks = torch.ones(n, dtype=torch.bool), torch.zeros(n, dtype=torch.bool), torch.zeros(n).long()
    energy, low = torch.zeros(d, dtype=torch.float64), torch.full((d,), math.inf, dtype=torch.float64)
    high, filled, half = -low, 0, True
    lengths = torch.zeros(n, dtype=torch.float64)
    for start, piece in pieces(source):
        here = slice(start, start + len(piece))
        usable_rows: slice | Tensor = slice(None)
        squares = piece.double().square()
        length = squares.sum(-1).sqrt_()
        if not bool(((length > 0) & (length < math.inf)).all()):
            finite[here], zero[here] = piece.isfinite().all(-1), (piece == 0).all(-1)
            usable_rows = finite[here] & ~zero[here]
            piece, squares, length = piece[usable_rows], squares[usable_rows], length[usable_rows]
        if not len(piece):
            continue
        half = half and bool((piece == piece.half().to(piece.dtype)).all())
        # -0.0 becomes 0.0
        marks[here][usable_rows] = torch.tensor([hash(row.tobytes()) for row in (piece + 0.0).numpy()])
        energy += squares.sum(0)
        filled += int(piece.count_nonzero())
        low, high = torch.minimum(low, piece.amin(0)), torch.maximum(high, piece.amax(0))
        lengths[here][usable_rows] = length
    good, wild, none = (rows.nonzero().flatten() for rows in (finite & ~zero, ~finite, zero))
    count = max(1, len(good))
    repeats = _repeats(source, good, marks[good])
    share = filled / (count * d)
    return Pass(good, wild, none, repeats, energy / count, low, high, share, lengths[good], half)


def _repeats(source: Any, good: Tensor, marks: Tensor) -> Tensor:
    """The rows that are equal to an earlier one: those of one hash are compared, number by number."""
    marks, order = marks.sort(stable=True)
    again = 1 + (marks[1:] == marks[:-1]).nonzero().flatten()
    equal = [
        good[order[part]][(numbers(source, good[order[part]]) == numbers(source, good[order[part - 1]])).all(-1)]
        for part in torch.split(again, max(1, 2**22 // source.shape[1]))
        if len(part)
    ]
    return torch.cat(equal).sort().values if equal else good[:0]
