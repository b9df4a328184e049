"""Tables by way of Arrow, read in batches: parquet, feather, CSV, JSON, dumps of Postgres, data sets, Lance."""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isonb.auditing.reading.arrays import is_number, library, lines_of, opened
from isonb.auditing.reading.columns import ROWS, described_table, looks_like_vector
from isonb.auditing.reading.described import Described, VectorsError

BLOCK = 2**24  # bytes of a CSV file that are read at a time, and of its longest row
MISSING = ["", "\\N", "NULL", "null", "None", "nan", "NaN", "NA", "N/A", "#N/A"]
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')
COPY = re.compile(r"COPY (\S+) \((.*)\) FROM stdin;")


def parquet(path: Path) -> Described:
    import pyarrow.parquet as pq

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(rows, columns=columns)

    schema = pq.ParquetFile(path).schema_arrow
    return described_table(schema, batches, f"{path.name} (parquet)", f"pandas.read_parquet({str(path)!r})")


def arrow(path: Path) -> Described:
    """An Arrow file or stream; feather (version 2) is one."""
    import pyarrow as pa

    def read() -> tuple[Any, Iterator[Any]]:
        try:
            file = pa.ipc.open_file(pa.memory_map(str(path)))
            return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        except pa.ArrowInvalid:
            stream = pa.ipc.open_stream(pa.memory_map(str(path)))
            return stream.schema, iter(stream)

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        for batch in read()[1]:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).select(columns)

    return described_table(read()[0], batches, f"{path.name} (Arrow)", f"pandas.read_feather({str(path)!r})")


def head_of(path: Path, size: int = 2**16) -> str:
    """The beginning of a file of text."""
    with opened(path) as file:
        return bytes(file.read(size)).decode("utf-8-sig", "replace")


def separated(path: Path) -> Described:
    """CSV and its kin: the separator and whether there is a header are read off the first line."""
    import pyarrow as pa
    import pyarrow.csv as pc

    first_line = (head_of(path).splitlines() or [""])[0]
    bare = QUOTED.sub("", first_line)
    mark = "\t" if "\t" in bare or ".tsv" in path.suffixes else max(",;| ", key=bare.count)
    fields = next(csv.reader([first_line], delimiter=mark), [])
    parse = pc.ParseOptions(delimiter=mark, newlines_in_values=True)
    reading = pc.ReadOptions(block_size=BLOCK, autogenerate_column_names=not _is_header(fields))

    def reader(types: dict[str, Any], columns: list[str]) -> Any:
        options = pc.ConvertOptions(
            column_types=types, include_columns=columns, null_values=MISSING, strings_can_be_null=True
        )
        return pc.open_csv(opened(path), reading, parse, options)

    first = reader({}, []).read_next_batch()
    widest = {f.name: pa.float64() for f in first.schema if pa.types.is_integer(f.type) or pa.types.is_null(f.type)}

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        return iter(reader({name: widest.get(name, first.schema.field(name).type) for name in columns}, columns))

    code = f"pandas.read_csv({str(path)!r}{'' if mark == ',' else f', sep={mark!r}'})"
    return described_table(first.schema, batches, f"{path.name} (text separated by {mark!r})", code, first)


def _is_header(fields: list[str]) -> bool:
    """Whether these are names: no vector, no fraction, and not all integers but 0, 1, 2, ..."""
    if any(looks_like_vector([field]) for field in fields):
        return False
    numbers = [field for field in fields if is_number(field)]
    whole = all(field.strip().isdigit() for field in numbers)
    if len(numbers) == len(fields) and whole:
        return [int(field) for field in fields] == list(range(int(fields[0]), int(fields[0]) + len(fields)))
    return whole


def json_file(path: Path) -> Described:
    """JSON: an object a line, a list of objects or of vectors, or an object of columns or of a vector an id."""
    first, newline, _ = head_of(path).strip().partition("\n")
    lines = path.suffix in (".jsonl", ".ndjson") and (first.endswith(("}", "]")) if newline else first[:1] == "{")
    if not lines:
        with opened(path) as file:
            try:
                value = json.loads(file.read())
            except ValueError:  # then an object a line, whatever it is called
                lines = True
    if lines:
        code = f"pandas.read_json({str(path)!r}, lines=True)"
        return records(lambda: _json_lines(path), f"{path.name} (JSON lines)", code)
    return _json_value(value, f"{path.name} (JSON)", f"json.load(open({str(path)!r}))")


def _json_lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(lines_of(path), start=1):
        try:
            if line.strip():
                yield json.loads(line)
        except ValueError as error:
            raise VectorsError(f"line {number} must be JSON; got {error}. Correct or drop that line.") from error


def _json_value(value: Any, what: str, code: str) -> Described:
    if not isinstance(value, dict):
        return records(lambda: value, what, code)
    lists = {key: member for key, member in value.items() if isinstance(member, list) and member}
    if len(lists) == len(value) > 1 and {type(member[0]) for member in lists.values()} <= {int, float}:
        return records(lists.values, what, f"list({code}.values())")  # a vector an id
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


def sql_dump(path: Path) -> Described:
    """The rows that pg_dump writes after COPY: every such block with a column of vectors."""
    code = f"pandas.read_table({str(path)!r})"
    with path.open(encoding="utf-8") as file:
        starts = [(number, match) for number, line in enumerate(file, start=1) if (match := COPY.match(line))]

    def rows(start: int, names: list[str]) -> Iterator[dict[str, Any]]:
        with path.open(encoding="utf-8") as file:
            for row in itertools.takewhile(lambda row: row != "\\.\n", itertools.islice(file, start, None)):
                cells = row.rstrip("\n").split("\t")
                yield dict(zip(names, (None if cell == "\\N" else cell for cell in cells), strict=False))

    members = []
    for start, match in starts:
        names = [name.strip().strip('"') for name in match[2].split(",")]
        block = records(partial(rows, start, names), f"{path.name} (COPY {match[1]})", code)
        members += [member for member in block.members if member.take]
    return Described(f"{path.name} (SQL)", members, code, "pandas.read_sql({name!r}, database)")


def records(rows: Callable[[], Iterable[Any]], what: str, code: str) -> Described:
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


def of_arrow(table: Any, what: str, code: str) -> Described:
    return described_table(table.schema, lambda names, rows: iter(table.select(names).to_batches(rows)), what, code)


def of_dataset(data: Any, what: str, code: str) -> Described:
    plain = data.with_format("arrow")
    first = next(iter(plain.iter(1)), None)
    schema = data.features.arrow_schema if first is None else first.schema
    return described_table(schema, lambda names, rows: iter(plain.select_columns(names).iter(rows)), what, code)


def saved(folder: Path) -> Described:
    """What ``save_to_disk`` of the library ``datasets`` has left; the columns of several splits as split.column."""
    import datasets

    data = datasets.load_from_disk(str(folder))
    what, code = f"{folder.name} (a saved data set)", f"datasets.load_from_disk({str(folder)!r})"
    if not isinstance(data, datasets.DatasetDict):
        return of_dataset(data, what, code)
    members = [
        replace(member, name=f"{split}.{member.name}")
        for split, one in data.items()
        for member in of_dataset(one, f"{folder.name} (split {split})", f"{code}[{split!r}]").members
    ]
    return Described(what, members, code)


def lance(folder: Path) -> Described:
    code = f"lance.dataset({str(folder)!r}).to_table().to_pandas()"
    data = library("lance", folder, "pylance", (f"table = {code}", "isonb.audit(table)")).dataset(str(folder))

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        return iter(data.to_batches(columns=columns, batch_size=rows))

    return described_table(data.schema, batches, f"{folder.name} (Lance)", code)
