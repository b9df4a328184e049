"""Arrays of a stream as one mapped array, in the widest of their types."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from isonb.auditing.reading.advice import refuse
from isonb.errors import ShapeError
from isonb.runtime.files import DiskError

CODES = ("bool", "uint8", "int8", "uint16")  # types whose numbers may be something else
PIECE = 2**22  # numbers at a time


def missing_rows(count: int, d: int, dtype: Any) -> Any:
    """Missing rows: NaN, or zeros of a type that will be asked about."""
    coded = dtype.name in CODES
    return np.zeros((count, d), dtype) if coded else np.full((count, d), np.nan, np.result_type(dtype, "float16"))


def spooled(pieces: Iterable[Any], what: str) -> Any:
    """Arrays (m, d) of a stream as one mapped array in a file without a name, which ends with the process.

    Its type is the widest of theirs. A piece (m, 0) is m missing rows.
    """
    n, d, missing = 0, 0, 0
    with _Spool(what) as spool:
        for piece in pieces:
            n += len(piece)
            if piece.shape[1] == 0:
                missing += len(piece)
                continue
            if d and piece.shape[1] != d:
                got = f"{d} numbers in the first row and {piece.shape[1]} about row {n - len(piece):,}"
                refuse(ShapeError, f"every row of {what} must hold a vector of one length", got, "Correct that row.")
            d = piece.shape[1]
            spool.add(missing_rows(missing, d, piece.dtype))
            spool.add(piece)
            missing = 0
        if not d:
            fix = "Name another column." if n else "Look at the program that wrote it."
            refuse(ShapeError, f"{what} must have rows", "missing values alone" if n else "none", fix)
        spool.add(missing_rows(missing, d, spool.dtype))
        spool.file.flush()
        return np.memmap(spool.file, dtype=spool.dtype, mode="r", shape=(n, d))


class _Spool:
    """A file without a name; a wider type than those before changes what is there already."""

    def __init__(self, what: str) -> None:
        self.what, self.dtype, self.empty = what, np.dtype("float16"), True
        self.file = tempfile.TemporaryFile(prefix="isonb-")  # noqa: SIM115  # __exit__ closes it

    def add(self, rows: Any) -> None:
        if not len(rows):
            return
        wide = (rows.dtype if self.empty else np.result_type(self.dtype, rows.dtype)).newbyteorder("=")
        if wide != self.dtype and not self.empty:
            before, narrow = self.file, self.dtype
            self.file = tempfile.TemporaryFile(prefix="isonb-")  # noqa: SIM115
            with before:
                before.seek(0)
                while part := before.read(PIECE * narrow.itemsize):
                    self._write(np.frombuffer(part, narrow).astype(wide))
        self.dtype, self.empty = wide, False
        self._write(np.ascontiguousarray(rows, wide))

    def _write(self, rows: Any) -> None:
        try:  # written, not mapped: a full disk is then an error and no signal
            self.file.write(rows.data)
        except OSError as error:
            must, fix = f"the disk must take {self.what} while it is read", "Free some space, or set TMPDIR."
            raise DiskError(f"{must}; got {error.strerror}. {fix}") from error

    def __enter__(self) -> _Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
