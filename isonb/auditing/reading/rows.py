"""Rows of vectors, read in pieces so that a file on disk needs little memory, and what one pass over all of them knows.

The source is a tensor or a numpy array, mapped from disk or not: it is never copied as a whole.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["CHUNK", "NAMED", "Pass", "numbers", "pieces", "read", "rows_of"]

CHUNK = 8192  # rows read at a time
WIDE = (torch.float64, torch.int32, torch.int64, torch.uint32, torch.uint64)
NAMED = 20  # rows or dimensions that a finding names


@dataclass
class Pass:
    """What one pass over all rows knows. ``good``: the numbers of rows that are finite and not zero.

    ``repeats``: the numbers of those that are equal to an earlier one. ``low``, ``high``: the ends of each dimension.
    ``filled``: the share of the numbers that aren't zero.
    """

    good: Tensor
    wild: list[int]
    zero: list[int]
    n_wild: int
    n_zero: int
    repeats: Tensor
    energy: Tensor
    low: Tensor
    high: Tensor
    filled: float
    lengths: tuple[float, float]
    half: bool


def numbers(source: Any, rows: Tensor | slice) -> Tensor:
    """Some rows as float32 on the CPU; as float64 if they are that, or long integers."""
    if isinstance(source, Tensor):
        part = source[rows if isinstance(rows, slice) else rows.to(source.device)].cpu()
        return part.double() if part.dtype in WIDE else part.float()
    found = source[rows if isinstance(rows, slice) else rows.numpy()]
    if isinstance(found, Tensor):
        return numbers(found, slice(None))
    wide = found.dtype.itemsize >= (8 if found.dtype.kind == "f" else 4)  # float32 holds integers up to 2^24
    return torch.from_numpy(found.astype("float64" if wide else "float32"))  # a copy in the machine's byte order


def rows_of(source: Any, rows: Tensor) -> Tensor:
    """The rows of these numbers as one tensor, read in pieces."""
    found = torch.cat([numbers(source, part) for part in torch.split(rows, CHUNK)])
    _forget(source)
    return found


def pieces(source: Any) -> Iterator[tuple[int, Tensor]]:
    """All rows in their order, with the number of the first of each piece: a million numbers or so at a time."""
    size = max(16, min(CHUNK, 2**20 // source.shape[1]))
    for start in range(0, source.shape[0], size):
        yield start, numbers(source, slice(start, start + size))
        _forget(source)


def _forget(source: Any) -> None:
    """Give back the memory of a mapped file, so that it doesn't grow to the size of the file."""
    for part in getattr(source, "parts", ()):
        _forget(part)
    mapped = getattr(source, "base", None)
    if isinstance(mapped, mmap.mmap) and getattr(source, "mode", "c") != "c" and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _hashes(rows: Tensor, keys: Tensor) -> Tensor:
    """A number of 64 bits a row: its values mixed by the finaliser of SplitMix64, times odd keys, mixed again.

    Without the mixing, numbers of few digits (float16, integers) differ in their high bits alone, and so do the sums.
    """
    return _mixed((_mixed((rows + 0.0).view(torch.int64)) * keys).sum(-1))  # -0.0 becomes 0.0


def _mixed(bits: Tensor) -> Tensor:
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        bits = (bits >> shift).bitwise_xor_(bits).mul_(factor)
    return (bits >> 31).bitwise_xor_(bits)


@dataclass
class _Sums:
    """What grows while the rows go by."""

    energy: Tensor
    low: Tensor
    high: Tensor
    n: int = 0
    filled: int = 0
    least: float = math.inf
    most: float = 0.0
    half: bool = True

    def add(self, rows: Tensor, keys: Tensor) -> Tensor:
        """Take in rows that are finite and not zero; their hashes."""
        whole = rows.double()
        self.n += len(whole)
        self.energy += whole.square().sum(0)
        self.filled += int(whole.count_nonzero())
        self.low, self.high = torch.minimum(self.low, whole.amin(0)), torch.maximum(self.high, whole.amax(0))
        lengths = torch.linalg.vector_norm(whole, dim=-1)
        self.least, self.most = min(self.least, float(lengths.min())), max(self.most, float(lengths.max()))
        self.half = self.half and bool((rows == rows.half().to(rows.dtype)).all())
        return _hashes(whole, keys)


def read(source: Any) -> Pass:
    """One pass over all rows, and a look at those that may repeat an earlier one."""
    n, d = source.shape
    keys = torch.randint(-(2**62), 2**62, (d,), generator=torch.Generator().manual_seed(1)) | 1
    ends = torch.full((d,), math.inf, dtype=torch.float64)
    sums = _Sums(torch.zeros(d, dtype=torch.float64), ends, -ends)
    fine, marks = torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.long)  # apart from what comes and goes
    named: dict[str, list[int]] = {"wild": [], "zero": []}
    counted = {"wild": 0, "zero": 0}
    for start, part in pieces(source):
        finite, empty = part.isfinite().all(-1), (part == 0).all(-1)
        for name, where in (("wild", ~finite), ("zero", finite & empty)):
            counted[name] += int(where.sum())
            found = named[name]
            found += (start + where.nonzero().flatten()[: NAMED - len(found)]).tolist() if len(found) < NAMED else []
        kept = finite & ~empty
        if bool(kept.any()):
            fine[start : start + len(part)] = kept
            marks[start : start + len(part)][kept] = sums.add(part[kept], keys)
    good = fine.nonzero().flatten()
    count = max(1, len(good))
    return Pass(
        good,
        named["wild"],
        named["zero"],
        counted["wild"],
        counted["zero"],
        _repeats(source, good, marks[good]),
        sums.energy / count,
        sums.low,
        sums.high,
        sums.filled / (count * d),
        (sums.least, sums.most),
        sums.half,
    )


def _repeats(source: Any, good: Tensor, marks: Tensor) -> Tensor:
    """The rows that are equal to an earlier one: those of one hash are compared, number by number."""
    marks, order = marks.sort(stable=True)
    again = 1 + (marks[1:] == marks[:-1]).nonzero().flatten()
    size = max(1, 2**22 // source.shape[1])
    found = [
        good[order[part]][(numbers(source, good[order[part]]) == numbers(source, good[order[part - 1]])).all(-1)]
        for part in torch.split(again, size)
        if len(part)
    ]
    return torch.cat(found).sort().values if found else good[:0]
