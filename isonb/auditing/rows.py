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

from isonb.errors import DtypeError, ShapeError, fail

__all__ = ["CHUNK", "NAMED", "Pass", "matrix", "numbers", "pieces", "read", "rows_of"]

CHUNK = 8192  # rows read at a time
NAMED = 20  # rows or dimensions that a finding names


@dataclass
class Pass:
    """What one pass over all rows knows. ``good``: the numbers of rows that are finite and not zero."""

    good: Tensor
    wild: list[int]
    zero: list[int]
    n_wild: int
    n_zero: int
    hashes: Tensor
    energy: Tensor
    mean: Tensor
    variance: Tensor
    lengths: tuple[float, float]
    half: bool


def matrix(vectors: Any, name: str = "vectors") -> Any:
    """The source as it is, if it is a table of numbers (n, d), d >= 2; a tensor loses its graph."""
    shape = getattr(vectors, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] < 2:
        got = f"{type(vectors).__name__} of shape {None if shape is None else tuple(shape)}"
        fail(ShapeError, f"{name} must be an array (n, d) of d >= 2", got, "Stack them: one row a text.")
    kind = getattr(vectors.dtype, "kind", "f")
    if kind not in "fiu" or (isinstance(vectors, Tensor) and (vectors.dtype == torch.bool or vectors.is_complex())):
        fail(DtypeError, f"{name} must be numbers", str(vectors.dtype), "Pass the embeddings, not texts or objects.")
    return vectors.detach() if isinstance(vectors, Tensor) else vectors


def numbers(source: Any, rows: Tensor | slice) -> Tensor:
    """Some rows as float32 on the CPU, float64 if they are that."""
    if isinstance(source, Tensor):
        part = source[rows if isinstance(rows, slice) else rows.to(source.device)].cpu()
        return part if part.dtype == torch.float64 else part.float()
    found = source[rows if isinstance(rows, slice) else rows.numpy()]
    wide = found.dtype.kind == "f" and found.dtype.itemsize >= 8
    return torch.from_numpy(found.astype("float64" if wide else "float32"))  # a copy in the machine's byte order


def rows_of(source: Any, rows: Tensor) -> Tensor:
    """The rows of these numbers as one tensor, read in pieces."""
    found = torch.cat([numbers(source, part) for part in torch.split(rows, CHUNK)])
    _forget(source)
    return found


def pieces(source: Any) -> Iterator[tuple[int, Tensor]]:
    """All rows in their order, with the number of the first of each piece: a million numbers or so at a time."""
    size = max(256, min(CHUNK, 2**20 // source.shape[1]))
    for start in range(0, source.shape[0], size):
        yield start, numbers(source, slice(start, start + size))
        _forget(source)


def _forget(source: Any) -> None:
    """Give back the memory of a mapped file, so that it doesn't grow to the size of the file."""
    mapped = getattr(source, "base", None)
    if isinstance(mapped, mmap.mmap) and getattr(source, "mode", "c") != "c" and hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


@dataclass
class _Sums:
    """What grows while the rows go by."""

    total: Tensor
    square: Tensor
    origin: Tensor | None = None
    least: float = math.inf
    most: float = 0.0
    half: bool = True

    def add(self, rows: Tensor, keys: Tensor) -> Tensor:
        """Take in rows that are finite and not zero; their hashes."""
        whole = rows.double()
        self.origin = whole.mean(0) if self.origin is None else self.origin
        self.total += (whole - self.origin).sum(0)
        self.square += (whole - self.origin).square().sum(0)
        lengths = torch.linalg.vector_norm(whole, dim=-1)
        self.least, self.most = min(self.least, float(lengths.min())), max(self.most, float(lengths.max()))
        self.half = self.half and bool((rows == rows.half().to(rows.dtype)).all())
        return (whole + 0.0).view(torch.int64).mul_(keys).sum(-1)  # -0.0 becomes 0.0


def read(source: Any) -> Pass:
    """One pass over all rows."""
    n, d = source.shape
    keys = torch.randint(-(2**62), 2**62, (d,), generator=torch.Generator().manual_seed(1)) | 1
    sums = _Sums(torch.zeros(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64))
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
    away = sums.total / count
    variance = (sums.square / count - away.square()).clamp_min(0)
    mean = away if sums.origin is None else sums.origin + away
    counts = counted["wild"], counted["zero"]
    lengths = (sums.least, sums.most)
    energy = variance + mean.square()
    return Pass(good, named["wild"], named["zero"], *counts, marks[good], energy, mean, variance, lengths, sums.half)
