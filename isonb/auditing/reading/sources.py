"""Matrices that are read by rows: anything with ``shape`` (n, d) that gives a slice or some rows as an array.

A numpy array (mapped or not) and a tensor are such matrices. Here are those that have to be changed on the way, those
of several files, and what was read from a stream: it goes through a file without a name that ends with the process.
"""

from __future__ import annotations

import bisect
import errno
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from isonb.errors import ShapeError, fail

__all__ = ["Changed", "Joined", "Rows", "bfloat16", "rows_in", "spooled"]


class Rows:
    """What has ``shape`` (n, d) and gives float rows for a slice or for their numbers."""

    shape: tuple[int, ...]

    def __getitem__(self, rows: Any) -> Any:
        raise NotImplementedError


class Changed(Rows):
    """A matrix whose rows are changed when they are read."""

    def __init__(self, source: Any, change: Callable[[Any], Any]) -> None:
        self.source, self.change, self.shape = source, change, tuple(source.shape)
        self.base, self.mode = getattr(source, "base", None), getattr(source, "mode", "c")

    def __getitem__(self, rows: Any) -> Any:
        return self.change(self.source[rows])


class Joined(Rows):
    """Matrices of one width, one below the other."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = parts
        self.ends = list(accumulate(part.shape[0] for part in parts))
        self.shape = (self.ends[-1], parts[0].shape[1])

    def __getitem__(self, rows: Any) -> Any:
        import numpy as np

        if isinstance(rows, slice):
            rows = range(*rows.indices(self.shape[0]))
            spans = self._spans(rows.start, rows.stop)
            return np.concatenate([rows_in(self.parts[i], slice(start, stop)) for i, start, stop in spans])
        place = np.searchsorted(self.ends, rows, side="right")
        found = np.empty((len(rows), self.shape[1]), "float64")
        for i in np.unique(place):
            here = place == i
            found[here] = rows_in(self.parts[i], rows[here] - (self.ends[i - 1] if i else 0))
        return found

    def _spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        for i in range(bisect.bisect_right(self.ends, start), len(self.ends)):
            before = self.ends[i - 1] if i else 0
            if before < stop:
                yield i, max(start - before, 0), min(stop, self.ends[i]) - before


def rows_in(source: Any, rows: Any) -> Any:
    """Some rows as a numpy array."""
    import numpy as np
    import torch

    if isinstance(source, torch.Tensor):
        part = source[rows if isinstance(rows, slice) else torch.as_tensor(rows)].cpu()
        return (part if part.dtype == torch.float64 else part.float()).numpy()
    return np.asarray(source[rows])


def bfloat16(raw: Any) -> Any:
    """Two bytes without a type, as ml_dtypes leaves bfloat16 in a .npy file, as float32.

    >>> import numpy
    >>> bfloat16(numpy.array([[0x3F80, 0xC000]], "uint16").view("V2")).tolist()
    [[1.0, -2.0]]
    """
    import numpy as np

    return (np.ascontiguousarray(raw).view("<u2").astype("uint32") << 16).view("float32")


def spooled(pieces: Iterable[Any], what: str) -> Any:
    """Arrays (m, d) of a stream as one mapped array: floats as in the first piece, integers as float64."""
    import numpy as np

    from isonb.runtime.files import DiskError

    n, d, dtype = 0, 0, np.dtype("float64")
    with tempfile.TemporaryFile(prefix="isonb-") as file:
        for piece in pieces:
            if not n:
                d = piece.shape[1]
                own = piece.dtype.kind == "f" and piece.dtype.itemsize < 8
                dtype = piece.dtype.newbyteorder("=") if own else dtype
            elif piece.shape[1] != d and len(piece):
                got = f"{d} numbers in the first row and {piece.shape[1]} about row {n:,}"
                fail(ShapeError, f"every row of {what} must hold a vector of one length", got, "Leave the others out.")
            try:  # written, not mapped: a full disk is then an error and no signal
                file.write(np.ascontiguousarray(piece, dtype=dtype).data)
            except OSError as error:
                full = error.errno == errno.ENOSPC
                fix = "Free some space, or set TMPDIR." if full else "Set TMPDIR to a folder that can be written."
                must = f"the disk must take {what} while it is read"
                raise DiskError(f"{must}; got {error.strerror}. {fix}") from error
            n += len(piece)
        if not n:
            fail(ShapeError, f"{what} must have rows", "none", "Look at the program that wrote it.")
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n, d))
