"""Files of numbers with a header of their own: binary word2vec, and the formats of benchmarks of vector search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.described import Described, Member, VectorsError
from isonb.auditing.reading.rows import changed
from isonb.auditing.reading.spool import spooled
from isonb.auditing.reading.text import SIZE

# By suffix: the type of the numbers, and whether the dimensions stand before each row or with the rows at the start.
BENCHMARKS = {
    ".fvecs": ("<f4", True),
    ".bvecs": ("u1", True),
    ".fbin": ("<f4", False),
    ".hbin": ("<f2", False),
    ".f16bin": ("<f2", False),
    ".u8bin": ("u1", False),
    ".i8bin": ("i1", False),
}


def benchmark(path: Path) -> Described:
    """Rows that each begin with their length (.fvecs), or all behind the number of rows and dimensions (.fbin)."""
    type_, each = BENCHMARKS[path.suffix.lower()]
    size, width = path.stat().st_size, np.dtype(type_).itemsize
    header = [int(one) for one in np.fromfile(path, "<i4", 2)]
    n, d = (size // (4 + header[0] * width), header[0]) if each and header and header[0] > 0 else (*header, 0, 0)[:2]
    told = "the length of each row before it" if each else "the number of rows and of dimensions in the first 8 bytes"
    if size != (n * (4 + d * width) if each else 8 + n * d * width) or not n:
        must = f"{path.name} must hold {told}, and as many numbers"
        refuse(VectorsError, must, f"{size:,} bytes, which begin with {header}", "Copy it once more.")
    if not each:
        rows: Any = np.memmap(path, type_, "r", 8, (n, d))
    else:
        records = np.memmap(path, [("d", "<i4"), ("x", type_, (d,))], "r")
        if odd := np.flatnonzero(records["d"] != d)[:1].tolist():
            must, got = f"every row of {path.name} must have {d} numbers", f"{records['d'][odd[0]]} in row {odd[0]}"
            refuse(VectorsError, must, got, "Copy it once more.")
        rows = records["x"]
    # numbers that are bytes are numbers here, by the format
    take = (lambda: rows) if type_[-2] == "f" else lambda: changed(rows, lambda part: part.astype("float32"))
    return Described(path.name, path.suffix[1:], [Member("", f"{n} x {d} of {type_}", take)], path)


def is_binary_word2vec(path: Path) -> bool:
    """Whether a file begins with a line "rows dimensions" and goes on with bytes that no text has."""
    with path.open("rb") as file:
        line, rest = file.readline(64), file.read(512)
    return line.endswith(b"\n") and SIZE.fullmatch(line) is not None and min(rest, default=9) < 9


def word2vec(path: Path) -> Described:
    """A word, a blank and float32 a row; as many rows as the first line says."""

    def pieces() -> Iterator[Any]:
        with path.open("rb") as file:
            n, d = map(int, file.readline().split())
            for row in range(n):
                letters = iter(partial(file.read, 1), b" ")
                if not all(letters):  # the file ends within a word
                    _cut(path, n, row)
                values = file.read(4 * d)
                if len(values) < 4 * d:
                    _cut(path, n, row)
                yield np.frombuffer(values, "<f4").reshape(1, d)

    member = Member("", "words and float32", lambda: spooled(pieces(), path.name), part="a vector a word")
    return Described(path.name, "binary word2vec", [member, Member("words", "text")], path)


def _cut(path: Path, n: int, row: int) -> None:
    must = f"{path.name} must have {n:,} rows, as its first line says"
    refuse(VectorsError, must, f"the end of the file in row {row:,}", "It may be cut off: copy it once more.")
