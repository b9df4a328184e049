"""Words with their vectors (word2vec, GloVe, fastText), and bare numbers a line as numpy.savetxt writes them."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isonb.auditing.reading.described import Described, VectorsError, refuse, single
from isonb.auditing.reading.rows import spooled
from isonb.auditing.reading.table_files import opened

__all__ = ["is_binary_word2vec", "word2vec_binary", "words"]

ROWS = 4096
LOOKED = 20  # lines that show how many numbers follow a word
SIZE = re.compile(rb"\s*\d+\s+\d+\s*\n")  # rows and dimensions


def words(path: Path) -> Described:
    """Text with a word and its numbers a line, below a line "rows dimensions" or not; or numbers alone."""
    head = list(itertools.islice(_lines(path), LOOKED))
    counted = bool(head) and SIZE.fullmatch(head[0].rstrip() + b"\n") is not None
    body = head[1:] if counted else head
    runs = [_numbers_at_end(line.split()) for line in body]
    if not runs or min(runs) < 2:
        lines = (
            f"texts = open({str(path)!r}).read().splitlines()",
            "print(isonb.audit('minilm', texts))  # or your model",
        )
        fix = "Texts are audited through a model: isonb audit MODEL --texts FILE."
        got = f"text, as {body[0].decode('utf-8', 'replace').rstrip()[:40]!r}" if body else "an empty file"
        refuse(VectorsError, f"{path.name} must hold vectors, a line each", got, fix, lines)
    bare = all(run == len(line.split()) for run, line in zip(runs, body, strict=True)) and not counted
    usual = max(sorted(set(runs)), key=runs.count)  # a word that is a number makes its line longer
    d = int(head[0].split()[1]) if counted else min(runs) if bare else usual

    def pieces() -> Iterator[Any]:
        import numpy as np

        every = enumerate(itertools.islice(_lines(path), int(counted), None), start=1 + counted)
        while some := list(itertools.islice(every, ROWS)):
            rows = [(number, line.split()[-d:]) for number, line in some if line.strip()]
            try:
                yield np.array([row for _, row in rows], dtype="float32")
            except ValueError:
                number, row = next((n, row) for n, row in rows if len(row) < d or _numbers_at_end(row) < d)
                must, got = f"line {number} of {path.name} must end with {d} numbers", [cell.decode() for cell in row]
                raise VectorsError(f"{must}; got {got[:3]}. Correct or drop that line.") from None

    loaded = f"numpy.loadtxt({str(path)!r}, comments=None)"
    code = loaded if bare else f"pandas.read_table({str(path)!r}, sep=' ', header=None)"
    what = f"{path.name} ({'numbers' if bare else 'words and numbers'})"
    return single(what, f"text of {d} numbers a line", lambda: spooled(pieces(), path.name), code)


def _lines(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        yield from io.BufferedReader(file)


def _numbers_at_end(parts: list[bytes]) -> int:
    """How many of the last parts are numbers."""
    count = 0
    for part in reversed(parts):
        try:
            float(part)
        except ValueError:
            break
        count += 1
    return count


def is_binary_word2vec(path: Path) -> bool:
    """Whether a file begins with a line "rows dimensions" and goes on with bytes."""
    with path.open("rb") as file:
        line, rest = file.readline(64), file.read(512)
    return SIZE.fullmatch(line) is not None and any(byte > 126 or byte < 9 for byte in rest)


def word2vec_binary(path: Path) -> Described:
    """The binary format of word2vec: a word, a blank, and float32."""

    def pieces() -> Iterator[Any]:
        import numpy as np

        with path.open("rb") as file:
            n, d = map(int, file.readline().split())
            for start in range(0, n, ROWS):
                rows = np.empty((min(ROWS, n - start), d), "float32")
                for row in rows:
                    while file.read(1) not in (b" ", b""):
                        pass
                    row[:] = np.frombuffer(file.read(4 * d), "<f4")
                yield rows

    code = f"gensim.models.KeyedVectors.load_word2vec_format({str(path)!r}, binary=True).vectors"
    what = f"{path.name} (binary word2vec)"
    return single(what, "words and float32", lambda: spooled(pieces(), path.name), code)
