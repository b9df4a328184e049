"""Text on disk: JSON and JSON lines, the rows that pg_dump writes, words with their vectors, bare numbers a line."""

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
from isonb.auditing.reading.described import Described, VectorsError, refuse, single
from isonb.auditing.reading.rows import spooled
from isonb.auditing.reading.table_files import head_of, opened

COPY = re.compile(r"COPY (\S+) \((.*)\) FROM stdin;")
LOOKED = 20  # lines that show how many numbers follow a word
SIZE = re.compile(rb"\s*\d+\s+\d+\s*\n")  # rows and dimensions


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
    members = []
    for number, (name, _, rows) in enumerate(blocks()):
        if sum(1 for _ in rows):
            described = _records(partial(records, number), f"{path.name} (COPY {name})", code)
            members += [member for member in described.members if member.take]
    return Described(f"{path.name} (SQL)", members, code, "pandas.read_sql({name!r}, database)")


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
    for number, line in enumerate(_lines(path), start=1):
        try:
            if line.strip():
                yield json.loads(line)
        except ValueError as error:
            must, fix = f"line {number} must be JSON", "Correct or drop that line."
            raise VectorsError(f"{must}; got {error}. {fix}") from error


def _json_value(value: Any, what: str, code: str) -> Described:
    if not isinstance(value, dict):
        return _records(lambda: value, what, code)
    lists = {key: member for key, member in value.items() if isinstance(member, list) and member}
    flat = [member for member in lists.values() if isinstance(member[0], int | float)]
    if len(lists) == len(flat) == len(value) > 1 and len(set(map(len, flat))) == 1:
        return _records(lambda: flat, what, f"list({code}.values())")  # a vector an id
    nested = [key for key, member in value.items() if isinstance(member, dict)]
    if not lists and len(nested) == 1:
        return _json_value(value[nested[0]], what, f"{code}[{nested[0]!r}]")
    members = [
        replace(member, name=key if member.name == "vector" else f"{key}.{member.name}")
        for key, rows in lists.items()
        if isinstance(rows[0], dict | list)
        for member in _json_value(rows, what, f"{code}[{key!r}]").members
    ]
    return Described(what, members, code)


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
