"""Records on disk: JSON and JSON lines, and the rows that pg_dump writes."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isonb.auditing.reading.columns import Table, described_table
from isonb.auditing.reading.described import Described, Part, VectorsError
from isonb.auditing.reading.table_files import ROWS, head_of, opened
from isonb.errors import needs

__all__ = ["json_file", "sql_dump"]


def sql_dump(path: Path) -> Described:
    """The rows that pg_dump writes after COPY: the first such block with a column of vectors."""

    def blocks() -> Iterator[tuple[str, list[str], Iterator[str]]]:
        with path.open(encoding="utf-8") as file:
            for line in file:
                if match := re.match(r"COPY (\S+) \((.*)\) FROM stdin;", line):
                    names = [name.strip().strip('"') for name in match[2].split(",")]
                    yield match[1], names, itertools.takewhile(lambda row: row != "\\.\n", file)

    found = []
    for number, (name, _, rows) in enumerate(blocks()):
        head = list(itertools.islice(rows, 50))
        for _ in rows:
            pass

        def records(number: int = number) -> Iterator[dict[str, Any]]:
            for i, (_, names, rows) in enumerate(blocks()):
                for row in rows if i == number else ():
                    cells = row.rstrip("\n").split("\t")
                    yield dict(zip(names, (None if cell == "\\N" else cell for cell in cells), strict=False))

        if head:
            described = _records(records, f"{path.name} (COPY {name})", f"pandas.read_table({str(path)!r})")
            found += [part for part in described.parts if part.take]
    return Described(
        f"{path.name} (SQL)", tuple(found), f"pandas.read_table({str(path)!r})", "pandas.read_sql({name!r}, database)"
    )


def json_file(path: Path) -> Described:
    """JSON: an object a line, a list of objects or of vectors, or an object of columns or of a vector an id."""
    start = head_of(path).lstrip()
    try:
        json.loads(start.partition("\n")[0])
        lines = "\n" in start.strip() or start.startswith("{")
    except ValueError:
        lines = False
    lines = lines and (path.suffix in (".jsonl", ".ndjson") or not _one_value(path))
    if lines:
        return _records(
            lambda: _json_lines(path), f"{path.name} (JSON lines)", f"pandas.read_json({str(path)!r}, lines=True)"
        )
    with opened(path) as file:
        value = json.loads(file.read())
    return _json_value(value, f"{path.name} (JSON)", f"json.load(open({str(path)!r}))")


def _one_value(path: Path) -> bool:
    with opened(path) as file:
        try:
            json.loads(file.read())
        except ValueError:
            return False
    return True


def _json_lines(path: Path) -> Iterator[Any]:
    with opened(path) as file:
        rest = b""
        number = 0
        while block := bytes(file.read(2**22)):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                if line.strip():
                    yield _json_line(line, number)
        if rest.strip():
            yield _json_line(rest, number + 1)


def _json_line(line: bytes, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise VectorsError(f"line {number} must be JSON; got {error}. Correct or drop that line.") from error


def _json_value(value: Any, what: str, code: str) -> Described:
    if isinstance(value, dict):
        lists = {key: part for key, part in value.items() if isinstance(part, list) and part}
        flat = {key: part for key, part in lists.items() if isinstance(part[0], int | float)}
        if len(lists) == len(flat) == len(value) > 1 and len({len(part) for part in flat.values()}) == 1:
            return _records(lambda: iter(flat.values()), what, f"list({code}.values())")  # a vector an id
        nested = {key: part for key, part in value.items() if isinstance(part, dict)}
        if not lists and len(nested) == 1:
            ((key, inner),) = nested.items()
            return _json_value(inner, what, f"{code}[{key!r}]")
        tables = [(key, part) for key, part in lists.items() if isinstance(part[0], dict | list)]
        found = [_json_value(part, what, f"{code}[{key!r}]") for key, part in tables]
        parts = [
            Part(key if part.name == "vector" else f"{key}.{part.name}", part.type, part.take, part.certain)
            for (key, _), one in zip(tables, found, strict=True)
            for part in one.parts
        ]
        return Described(what, tuple(parts), code, code + "[{name!r}]")
    return _records(lambda: iter(value), what, code)


def _records(rows: Any, what: str, code: str) -> Described:
    """A table of objects, or of vectors alone, which are a column "vector"."""
    with needs("reading tables", "lab"):
        import pyarrow as pa

    def tables() -> Iterator[Any]:
        every = iter(rows())
        while some := list(itertools.islice(every, ROWS)):
            yield pa.Table.from_pylist([row if isinstance(row, dict) else {"vector": row} for row in some])

    first = pa.table({})
    for first in tables():  # a column of missing values says nothing: look on
        if not any(pa.types.is_null(type_) for type_ in first.schema.types):
            break

    def batches(columns: list[str]) -> Iterator[Any]:
        for table in tables():
            for name in columns:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(len(table), first.schema.field(name).type))
            yield table.select(columns).combine_chunks()

    found = described_table(Table(first.schema, first, batches), what, code)
    bare = first.column_names == ["vector"] and not isinstance(next(iter(rows())), dict)
    return replace(found, pick=code) if bare else found
