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

# By suffix: the type of the numbers. The number of rows and of dimensions stand in the first 8 bytes, or in .fvecs and
# .bvecs the dimensions before each row.
BENCHMARKS = {
    ".fvecs": "<f4",
    ".bvecs": "u1",
    ".fbin": "<f4",
    ".hbin": "<f2",
    ".f16bin": "<f2",
    ".u8bin": "u1",
    ".i8bin": "i1",
}


def benchmark(path: Path) -> Described:
    """Rows that each begin with their length (.fvecs), or all behind the number of rows and dimensions (.fbin)."""
    suffix = path.suffix.lower()
    type_, size = np.dtype(BENCHMARKS[suffix]), path.stat().st_size
    first, second = [int(item) for item in np.fromfile(path, "<i4", 2)] if size >= 8 else (0, 0)
    each = suffix.endswith("vecs")
    width = first if each else second
    record = np.dtype([("d", "<i4", (int(each),)), ("x", type_, (max(0, width),))])
    n = size // record.itemsize if each else first
    if width < 1 or n < 1 or size != n * record.itemsize + 8 * (not each):
        header = "the length of each row before it" if each else "rows and dimensions in the first 8 bytes"
        must = f"{path.name} must hold {header}, and as many numbers"
        refuse(VectorsError, must, f"{size:,} bytes, which begin with {[first, second]}", "Copy it once more.")
    records = np.memmap(path, record, "r", 8 * (not each), (n,))
    if odd := np.flatnonzero((records["d"] != width).any(-1))[:1].tolist():
        must = f"every row of {path.name} must have {width} numbers"
        refuse(VectorsError, must, f"{records['d'][odd[0], 0]} in row {odd[0]}", "Copy it once more.")
    # numbers that are bytes are numbers here, by the format
    take = partial(changed, records["x"], lambda part: part.astype("float32") if type_.itemsize == 1 else part)
    return Described(path.name, suffix[1:], [Member("", f"{n} x {width} of {type_}", take)], path)


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
                word = all(iter(partial(file.read, 1), b" "))  # the file may end within it
                values = file.read(4 * d)
                if not word or len(values) < 4 * d:
                    must, got = f"{path.name} must have {n:,} rows, as its first line says", f"its end in row {row:,}"
                    refuse(VectorsError, must, got, "It may be cut off: copy it once more.")
                yield np.frombuffer(values, "<f4").reshape(1, d)

    member = Member("", "words and float32", lambda: spooled(pieces(), path.name), part="a vector a word")
    return Described(path.name, "binary word2vec", [member, Member("words", "text")], path)
