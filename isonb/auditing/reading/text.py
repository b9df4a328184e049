"""Files of text: tables with a separator, JSON, and words with their vectors, as text or as bytes."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import re
import shlex
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isonb.auditing.reading.cells import DECIMAL, looks_like_vector, spooled
from isonb.auditing.reading.columns import ROWS, columns_of_rows, members_of_table
from isonb.auditing.reading.members import LOOKED, Member, VectorsError
from isonb.auditing.reading.tables import of_arrow
from isonb.auditing.reading.values import members_of
from isonb.errors import CODE, ShapeError, fail

BLOCK = 2**24  # bytes of a CSV file that are read at a time, and of its longest row
MISSING = ["", "\\N", "NULL", "null", "None", "nan", "NaN", "NA", "N/A", "#N/A"]
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')
SIZE = re.compile(rb"\s*\d+\s+\d+\s*")  # rows and dimensions
ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}  # how marked text begins


def _opened(path: Path) -> Any:
    """A file of bytes, of marked text as UTF-8 without the mark; .gz, .bz2, .zst and .lz4 are unpacked on the way."""
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as file:
        start = bytes(file.read(3))
    encoding = ENCODINGS.get(start, ENCODINGS.get(start[:2]))
    file = pa.input_stream(str(path), compression="detect")
    return pa.transcoding_input_stream(file, encoding, "utf-8") if encoding else file


def _lines(path: Path) -> Iterator[bytes]:
    with _opened(path) as file:
        yield from io.BufferedReader(file)


def separated(path: Path) -> list[Member]:
    """CSV and its kin: the separator, the decimal comma and whether there is a header are read off the first lines."""
    import pyarrow as pa
    import pyarrow.csv as pc

    with _opened(path) as file:
        lines = bytes(file.read(2**16)).decode(errors="replace").splitlines()
    blank = len([*itertools.takewhile(lambda line: not line.strip(" "), lines)])  # above the header
    lines = lines[blank : blank + LOOKED]
    if not lines:
        fail(ShapeError, f"{path.name} must have rows", "an empty file", "Look at the program that wrote it.")
    bare = "\t" if ".tsv" in path.suffixes else QUOTED.sub("", lines[0])
    mark = next((mark for mark in "\t;, " if mark in bare), ",")
    source = _opened(path)
    if mark == " ":  # of which there may be several
        lines = [" ".join(line.split()) for line in lines]
        source = pa.BufferReader(b"\n".join(b" ".join(line.split()) for line in _lines(path)))
    fields, *below = csv.reader(lines[:1] + lines[1:2], delimiter=mark)
    comma = any(map(DECIMAL.fullmatch, (below or [fields])[0]))
    header = _is_header([field.replace(",", ".") for field in fields] if comma else fields)
    if mark == "," and not header and _are_halves(lines):
        must, got = f"{path.name} must have one mark between numbers and another in them", "numbers that begin with 0"
        fail(VectorsError, must, f"commas alone, and {got}, as behind a decimal comma", "Save it with ';'.")
    names = None if header else [*map(str, range(len(fields)))]
    table = pc.read_csv(
        source,
        pc.ReadOptions(block_size=BLOCK, skip_rows=blank, column_names=names),
        pc.ParseOptions(delimiter=mark, newlines_in_values=True, ignore_empty_lines=mark != " "),
        pc.ConvertOptions(null_values=MISSING, strings_can_be_null=True, decimal_point="," if comma else "."),
    )
    return of_arrow(table, path.name)


def _are_halves(lines: Sequence[str]) -> bool:
    """Whether whole numbers are what stands before and behind decimal commas: some begin with 0."""
    fields = [field for line in lines for field in line.split(",")]
    halved = any(re.fullmatch(r"-?0\d+|-0", field) for field in fields)
    return halved and all(re.fullmatch(r"-?\d+", field) for field in fields)


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_header(fields: list[str]) -> bool:
    """Whether these are names: no vector, no fraction, and not all integers but 0, 1, 2, ..."""
    if any(map(looks_like_vector, fields)):
        return False
    numbers = [field for field in fields if _is_number(field)]
    whole = all(field.strip().isdigit() for field in numbers)
    if len(numbers) == len(fields) and whole:
        return [int(field) for field in fields] == [*range(int(fields[0]), int(fields[0]) + len(fields))]
    return whole


def json_file(path: Path) -> list[Member]:
    """One value of lists and objects, or a value a line."""
    if ".json" in map(str.lower, path.suffixes):
        with _opened(path) as file, contextlib.suppress(json.JSONDecodeError):  # then a value a line
            return members_of(json.loads(bytes(file.read()).decode()), path.name)
    return members_of_table(columns_of_rows(partial(_json_lines, path)), path.name)


def _json_lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(_lines(path), start=1):
        try:
            if line.strip():
                yield json.loads(line.decode())
        except json.JSONDecodeError as error:
            raise VectorsError(f"line {number} must be JSON; got {error}. Correct or drop that line.") from error


def words(path: Path) -> list[Member]:
    """Text with a word and its numbers a line, below a line "rows dimensions" or not; numbers alone are a table."""
    body = [parts for line in itertools.islice(_lines(path), LOOKED) if (parts := line.split())]
    tails = [*map(_tail, body)]
    n = d = 0  # a row of two whole numbers has no longer one below it
    if len(body) > 1 and SIZE.fullmatch(b" ".join(body[0])) and len(body[1]) > 2 and tails[1] >= int(body[0][1]):
        n, d = map(int, body[0])
    elif tails and min(tails) > 1 and tails == [*map(len, body)]:
        return separated(path)
    elif not tails or min(tails) < 2:
        line = shlex.join(["isonb", "audit", "minilm", "--texts", str(path)])
        fix = f"Texts are audited through a model:{CODE}{line}" if tails else "Fill it."
        fail(VectorsError, f"{path.name} must hold vectors, a line each", "lines of text" if tails else "none", fix)
    if not n:
        d = statistics.mode(sorted(tails))  # a word that is a number makes its line longer
        columns = [*zip(*(parts[-d:] for parts in body if len(parts) >= d), strict=True)]
        ids = [all(map(bytes.isdigit, column)) and len(set(column)) > 1 for column in columns]
        d -= len([*itertools.takewhile(bool, ids)])  # an id before the numbers belongs to the word
        if any(ids[-d:]):
            got = f"whole numbers alone at place {ids.index(True) + 1} of {len(ids)}"
            fail(ShapeError, f"the numbers of {path.name} must not be ids", got, "Leave them out.")

    def pieces() -> Iterator[Any]:
        rows, lines = 0, _vectors_of_words(path, n, d)
        while some := [*itertools.islice(lines, ROWS)]:
            rows += len(some)
            yield np.array(some, "float32")
        if n and rows != n:
            must, fix = f"{path.name} must have {n:,} rows, as its first line says", "It may be cut off."
            fail(ShapeError, must, f"{rows:,}", fix)

    part = f"{d} numbers a line"
    member = Member("", f"text of {part}", lambda: spooled(pieces(), path.name), part=part)
    return [member, Member("words", "text")]


def _vectors_of_words(path: Path, n: int, d: int) -> Iterator[list[float]]:
    """The last ``d`` numbers of each line. ShapeError for a line that has fewer or more, or is empty between others."""
    blank = 0
    for number, line in itertools.islice(enumerate(_lines(path), start=1), int(n > 0), None):
        parts = line.split()
        if not parts:
            blank = blank or number
            continue
        before = parts[:-d]
        one_more = len(before) > 1 and b"." in before[-1] and _tail(before[-1:]) == 1
        if before and not one_more and not blank:
            with contextlib.suppress(ValueError):
                yield [*map(float, parts[-d:])]
                continue
        got = f"none in line {blank:,}" if blank else f"{_tail(parts)} in line {number:,}"
        fail(ShapeError, f"every line of {path.name} must have a word and {d} numbers", got, "Correct that line.")


def _tail(parts: Sequence[bytes]) -> int:
    """How many numbers stand at the end of a line."""
    return len([*itertools.takewhile(_is_number, reversed(parts))])


def word2vec(path: Path) -> list[Member]:
    """Binary word2vec: rows and dimensions in a line, then a word, a blank and float32 a row."""
    with _opened(path) as file:
        size = io.BufferedReader(file).readline(64)
    if not SIZE.fullmatch(size):
        must, fix = f"{path.name} must begin with a line of rows and dimensions, as word2vec", "Save it by numpy.save."
        fail(VectorsError, must, repr(size[:20]), fix)
    n, d = map(int, size.split())

    def pieces() -> Iterator[Any]:
        with io.BufferedReader(_opened(path)) as file:
            file.readline()
            for row in range(n):
                word = all(iter(partial(file.read, 1), b" "))  # the file may end within it
                values = file.read(4 * d)
                if not word or len(values) < 4 * d:
                    must, got = f"{path.name} must have {n:,} rows, as its first line says", f"its end in row {row:,}"
                    fail(VectorsError, must, got, "It may be cut off: copy it once more.")
                yield np.frombuffer(values, "<f4").reshape(1, d)

    member = Member("", "words and float32", lambda: spooled(pieces(), path.name), part="a vector a word")
    return [member, Member("words", "text")]
