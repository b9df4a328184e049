"""Records on disk: JSON and JSON lines, and the rows that pg_dump writes."""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isonb.auditing.reading.columns import ROWS, described_table
from isonb.auditing.reading.described import Described, VectorsError
from isonb.auditing.reading.table_files import head_of, opened

__all__ = ["json_file", "sql_dump"]

COPY = re.compile(r"COPY (\S+) \((.*)\) FROM stdin;")


def sql_dump(path: Path) -> Described:
    """The rows that pg_dump writes after COPY: every such block with a column of vectors."""

    def blocks() -> Iterator[tuple[str, list[str], Iterator[str]]]:
        with path.open(encoding="utf-8") as file:
            for line in file:
                if match := COPY.match(line):
                    names = [name.strip().strip('"') for name in match[2].split(",")]
                    yield match[1], names, itertools.takewhile(lambda row: row != "\\.\n", file)

    def records(number: int) -> Iterator[dict[str, Any]]:
        for i, (_, names, rows) in enumerate(blocks()):
            for row in rows:
                if i == number:
                    cells = row.rstrip("\n").split("\t")
                    yield dict(zip(names, (None if cell == "\\N" else cell for cell in cells), strict=False))

    code = f"pandas.read_table({str(path)!r})"
    parts = []
    for number, (name, _, rows) in enumerate(blocks()):
        if sum(1 for _ in rows):
            described = _records(partial(records, number), f"{path.name} (COPY {name})", code)
            parts += [part for part in described.parts if part.take]
    return Described(f"{path.name} (SQL)", parts, code, "pandas.read_sql({name!r}, database)")


def json_file(path: Path) -> Described:
    """JSON: an object a line, a list of objects or of vectors, or an object of columns or of a vector an id."""
    head = head_of(path).strip()
    several = head.startswith("{") or "\n" in head
    if not (several and path.suffix in (".jsonl", ".ndjson") and _json(head.partition("\n")[0]) is not None):
        with opened(path) as file:
            value = _json(bytes(file.read()))
        if value is not None:
            return _json_value(value, f"{path.name} (JSON)", f"json.load(open({str(path)!r}))")
    code = f"pandas.read_json({str(path)!r}, lines=True)"
    return _records(lambda: _json_lines(path), f"{path.name} (JSON lines)", code)


def _json(text: str | bytes) -> Any:
    """The value of a text, None for what isn't JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _json_lines(path: Path) -> Iterator[Any]:
    with opened(path) as file:
        for number, line in enumerate(io.BufferedReader(file), start=1):
            try:
                if line.strip():
                    yield json.loads(line)
            except ValueError as error:
                must, fix = f"line {number} must be JSON", "Correct or drop that line."
                raise VectorsError(f"{must}; got {error}. {fix}") from error


def _json_value(value: Any, what: str, code: str) -> Described:
    if not isinstance(value, dict):
        return _records(lambda: value, what, code)
    lists = {key: part for key, part in value.items() if isinstance(part, list) and part}
    flat = [part for part in lists.values() if isinstance(part[0], int | float)]
    if len(lists) == len(flat) == len(value) > 1 and len(set(map(len, flat))) == 1:
        return _records(lambda: flat, what, f"list({code}.values())")  # a vector an id
    nested = [key for key, part in value.items() if isinstance(part, dict)]
    if not lists and len(nested) == 1:
        return _json_value(value[nested[0]], what, f"{code}[{nested[0]!r}]")
    parts = [
        replace(part, name=key if part.name == "vector" else f"{key}.{part.name}")
        for key, rows in lists.items()
        if isinstance(rows[0], dict | list)
        for part in _json_value(rows, what, f"{code}[{key!r}]").parts
    ]
    return Described(what, parts, code)


def _records(rows: Callable[[], Iterable[Any]], what: str, code: str) -> Described:
    """A table of objects, or of vectors alone, which are a column "vector"."""
    import pyarrow as pa

    def tables() -> Iterator[Any]:
        every = iter(rows())
        while some := list(itertools.islice(every, ROWS)):
            yield pa.Table.from_pylist([row if isinstance(row, dict) else {"vector": row} for row in some])

    first = pa.table({})
    for first in tables():  # a column of missing values says nothing: look on
        if not any(map(pa.types.is_null, first.schema.types)):
            break

    def batches(columns: list[str], _: int) -> Iterator[Any]:
        for table in tables():
            for name in columns:
                if name not in table.column_names:
                    table = table.append_column(name, pa.nulls(len(table), first.schema.field(name).type))
            yield table.select(columns)

    described = described_table(first.schema, batches, what, code, first)
    bare = first.column_names == ["vector"] and not isinstance(next(iter(rows())), dict)
    return replace(described, pick=code) if bare else described
