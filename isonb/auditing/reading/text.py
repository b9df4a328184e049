"""Files of text: tables with a separator, JSON, words with vectors, numbers alone, and dumps of Postgres."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.cells import DECIMAL, looks_like_vector
from isonb.auditing.reading.columns import Path as Column
from isonb.auditing.reading.columns import members_of_table
from isonb.auditing.reading.described import LOOKED, Described, Member, VectorsError, counts_on, named_below
from isonb.auditing.reading.spool import spooled
from isonb.auditing.reading.tables import columns_of
from isonb.auditing.reading.values import members_of, members_of_rows
from isonb.errors import ShapeError

BLOCK = 2**24  # bytes of a CSV file that are read at a time, and of its longest row
LINES = 4096  # lines of text read at a time
MISSING = ["", "\\N", "NULL", "null", "None", "nan", "NaN", "NA", "N/A", "#N/A"]
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')
COPY = re.compile(r"COPY (\S+) \((.*)\) FROM stdin;")
SIZE = re.compile(rb"\s*\d+\s+\d+\s*")  # rows and dimensions
ENCODINGS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}  # how text begins that isn't UTF-8


def opened(path: Path) -> Any:
    """A file of bytes, of text in UTF-16 as UTF-8; .gz, .bz2, .zst and .lz4 are unpacked on the way."""
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as file:
        encoding = ENCODINGS.get(bytes(file.read(2)))
    file = pa.input_stream(str(path), compression="detect")
    return pa.transcoding_input_stream(file, encoding, "utf-8") if encoding else file


def lines_of(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        yield from io.BufferedReader(file)


def head_of(path: Path, size: int = 2**16) -> str:
    """The beginning of a file of text."""
    with opened(path) as file:
        return bytes(file.read(size)).decode("utf-8-sig", "replace")


def separated(path: Path) -> Described:
    """CSV and its kin: the separator, the decimal comma and whether there is a header are read off the first lines."""
    import pyarrow as pa
    import pyarrow.csv as pc

    lines = head_of(path).splitlines()[:LOOKED] or [""]
    mark = "\t" if ".tsv" in path.suffixes else _mark(*lines[:2])
    fields, *below = csv.reader(lines[:1] + lines[1:2], delimiter=mark)
    comma = any(map(DECIMAL.fullmatch, (below or [fields])[0]))
    header = _is_header([field.replace(",", ".") for field in fields] if comma else fields)
    if mark == "," and not header and _are_halves(lines):
        must, got = f"{path.name} must have one mark between numbers and another in them", "numbers that begin with 0"
        refuse(VectorsError, must, f"commas alone, and {got}, as behind a decimal comma", "Save it with ';'.")

    def reader(types: Mapping[str, Any] | None = None, columns: Sequence[str] = ()) -> Any:
        return pc.open_csv(
            opened(path),
            pc.ReadOptions(block_size=BLOCK, autogenerate_column_names=not header),
            pc.ParseOptions(delimiter=mark, newlines_in_values=True),
            pc.ConvertOptions(
                null_values=MISSING,
                strings_can_be_null=True,
                decimal_point="," if comma else ".",
                column_types=types,
                include_columns=columns,
            ),
        )

    def batches(types: Mapping[str, Any], paths: Sequence[Column] | None) -> Iterator[Mapping[Column, Any]]:
        with reader(types, [item[0] for item in paths or ()]) as table:
            yield from map(columns_of, table)

    with reader() as table:
        schema = table.schema
    # what is whole or missing in the first block may be a fraction in the next
    loose = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_null(field.type)]
    types: dict[Column, str] = {(field.name,): str(field.type) for field in schema}
    members = members_of_table(partial(batches, dict.fromkeys(loose, pa.float64())), path.name, types, header)
    return Described(path.name, f"text separated by {mark!r}", members, path)


def _mark(first: str, second: str = "") -> str:
    """What separates the cells: what leaves numbers alone, with a decimal comma or without, else what there is most."""
    bare, line = QUOTED.sub("", first), second or first
    marks = sorted("\t,;| ", key=bare.count, reverse=True)
    fields = {mark: next(csv.reader([line], delimiter=mark)) for mark in marks if mark in bare}
    alone = (
        mark for mark, parts in fields.items() if all(_is_number(item) or DECIMAL.fullmatch(item) for item in parts)
    )
    return next(alone, "\t" if "\t" in bare else marks[0])


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
    if any(looks_like_vector(field) for field in fields):
        return False
    numbers = [field for field in fields if _is_number(field)]
    whole = all(field.strip().isdigit() for field in numbers)
    if len(numbers) == len(fields) and whole:
        return [int(field) for field in fields] == list(range(int(fields[0]), int(fields[0]) + len(fields)))
    return whole


def json_file(path: Path) -> Described:
    """JSON: an object a line, or one value of lists and objects."""
    first, newline, _ = head_of(path).strip().partition("\n")
    lines = path.suffix in (".jsonl", ".ndjson") and (first.endswith(("}", "]")) if newline else first[:1] == "{")
    if not lines:
        with opened(path) as file:
            try:
                value = json.loads(bytes(file.read()).decode("utf-8-sig"))
            except ValueError:  # then an object a line, whatever it is called
                lines = True
    if not lines:
        return Described(path.name, "JSON", members_of(value, path.name), path)
    return Described(path.name, "JSON lines", members_of_rows(lambda: _json_lines(path), path.name), path)


def _json_lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(lines_of(path), start=1):
        try:
            if line.strip():
                yield json.loads(line.decode("utf-8-sig") if number == 1 else line)
        except ValueError as error:
            raise VectorsError(f"line {number} must be JSON; got {error}. Correct or drop that line.") from error


def sql_dump(path: Path) -> Described:
    """The rows that pg_dump writes after COPY: every such block with a column of vectors."""
    with path.open(encoding="utf-8") as file:
        starts = [(number, match) for number, line in enumerate(file, start=1) if (match := COPY.match(line))]

    def rows(start: int, names: list[str]) -> Iterator[dict[str, Any]]:
        with path.open(encoding="utf-8") as file:
            for row in itertools.takewhile(lambda row: row != "\\.\n", itertools.islice(file, start, None)):
                cells = row.rstrip("\n").split("\t")
                yield dict(zip(names, (None if cell == "\\N" else cell for cell in cells), strict=False))

    members: list[Member] = []
    for start, match in starts:
        names = [name.strip().strip('"') for name in match[2].split(",")]
        block = members_of_rows(partial(rows, start, names), f"{path.name} (COPY {match[1]})")
        members += [named_below(match[1], member) if len(starts) > 1 else member for member in block]
    return Described(path.name, "SQL", members, path)


def words(path: Path) -> Described:
    """Text with a word and its numbers a line, below a line "rows dimensions" or not; or numbers alone."""
    head = list(itertools.islice(lines_of(path), LOOKED))
    skipped = len(list(itertools.takewhile(lambda line: line.startswith(b"#") and not _tail(line.split()), head)))
    body = [line.split() for line in head[skipped:] if line.strip()]
    tails = [_tail(parts) for parts in body]
    n = d = 0
    if body and SIZE.fullmatch(b" ".join(body[0])) and len(tails) > 1 and tails[1] >= int(body[0][1]):  # not a row
        n, d = map(int, body[0])
        body, tails, skipped = body[1:], tails[1:], skipped + 1
    if not tails or min(tails) < 2:
        got = f"text, as {head[0].decode('utf-8', 'replace').rstrip()[:40]!r}" if head else "an empty file"
        fix, must = "Texts are audited through a model:", f"{path.name} must hold vectors, a line each"
        refuse(VectorsError, must, got, fix, "texts" if len(head) > 1 else "", path=shlex.quote(str(path)))
    bare = tails == [*map(len, body)] and (not n or tails[0] == d)
    d = d or max(sorted(set(tails)), key=tails.count)  # a word that is a number makes its line longer
    id_columns = [] if n else _id_columns([parts[-d:] for parts in body if len(parts) >= d])
    columns = np.delete(np.arange(d), id_columns)

    def pieces() -> Iterator[Any]:
        lines, rows = itertools.islice(_numbered(lines_of(path)), skipped, None), 0
        while some := list(itertools.islice(lines, LINES)):
            rows += len(some)
            parsed = [_numbers(line.split(), d, bare, number, path) for number, line in some]
            yield np.array(parsed, "float64" if bare else "float32")[:, columns]
        if n and rows != n:
            must = f"{path.name} must have {n:,} rows, as its first line says"
            refuse(ShapeError, must, f"{rows:,}", "It may be cut off: copy it once more.")

    others = [
        *([] if bare else [Member("words", "text")]),
        *(Member(f"column {i}", "whole numbers") for i in id_columns),
    ]
    part = f"{len(columns)} numbers a line"
    numbers = Member("", f"text of {part}", lambda: spooled(pieces(), path.name), part=part)
    return Described(path.name, "numbers" if bare else "words and numbers", [numbers, *others], path)


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, from 1 on, without blank ones at the end."""
    blank: list[tuple[int, bytes]] = []
    for number, line in enumerate(lines, start=1):
        blank.append((number, line))
        if line.strip():
            yield from blank
            blank.clear()


def _tail(parts: Sequence[bytes]) -> int:
    """How many numbers stand at the end of a line."""
    return len(list(itertools.takewhile(_is_number, reversed(parts))))


def _id_columns(rows: Sequence[Sequence[bytes]]) -> list[int]:
    """Places whose numbers are whole and change beside fractions: an id, a year, a label, the end of a word."""
    columns = list(zip(*rows, strict=True))
    whole = [all(cell.lstrip(b"-").isdigit() for cell in column) and len(set(column)) > 1 for column in columns]
    counting = counts_on(np.array(rows, "float64"))
    return [] if all(whole) else [i for i, item in enumerate(whole) if item or counting[i]]


def _numbers(parts: Sequence[bytes], d: int, bare: bool, number: int, path: Path) -> list[float]:
    """The last numbers of a line that has as many as the others: behind a word, or alone."""
    before = parts[:-d]
    fraction = len(before) > 1 and b"." in before[-1] and _is_number(before[-1])  # one number too many
    if len(parts) == d if bare else before and not fraction:
        with contextlib.suppress(ValueError):
            return [*map(float, parts[-d:])]
    got = f"{_tail(parts)} in line {number:,}"
    return refuse(ShapeError, f"every line of {path.name} must have {d} numbers", got, "Correct that line.")
