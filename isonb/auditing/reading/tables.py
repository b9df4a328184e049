"""Tables by way of Arrow, read in batches: parquet, feather, CSV, JSON, dumps of Postgres, data sets."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from isonb.auditing.reading.columns import ROWS, described_table, looks_like_vector
from isonb.auditing.reading.described import Described, VectorsError

BLOCK = 2**24  # bytes of a CSV file that are read at a time, and of its longest row
MISSING = ["", "\\N", "NULL", "null", "None", "nan", "NaN", "NA", "N/A", "#N/A"]
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')
COPY = re.compile(r"COPY (\S+) \((.*)\) FROM stdin;")


def scanned(source: Any, what: str, code: str) -> Described:
    """A data set or a table of Arrow."""
    import pyarrow.dataset as ds

    data = source if isinstance(source, ds.Dataset) else ds.dataset(source)

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}  # else gigabytes of wide rows are in memory
        yield from data.to_batches(columns=columns, batch_size=rows, **ahead)

    return described_table(data.schema, batches, what, code)


def parquet(path: Path) -> Described:
    import pyarrow.parquet as pq

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        with pq.ParquetFile(path) as file:  # a data set would hold a whole group of rows in memory
            yield from file.iter_batches(rows, columns=columns)

    schema = pq.ParquetFile(path).schema_arrow
    return described_table(schema, batches, f"{path.name} (parquet)", f"pandas.read_parquet({str(path)!r})")


def arrow(path: Path) -> Described:
    """An Arrow file or stream; feather (version 2) is one."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    what, code = f"{path.name} (Arrow)", f"pandas.read_feather({str(path)!r})"
    with contextlib.suppress(pa.ArrowInvalid):
        return scanned(ds.dataset(path, format="ipc"), what, code)

    def stream() -> Any:
        return pa.ipc.open_stream(pa.memory_map(str(path)))

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        for batch in stream():
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).select(columns)

    return described_table(stream().schema, batches, what, code)


def opened(path: Path) -> Any:
    """A file of bytes; .gz, .bz2, .zst and .lz4 are unpacked on the way."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression="detect")


def lines_of(path: Path) -> Iterator[bytes]:
    with opened(path) as file:
        yield from io.BufferedReader(file)


def head_of(path: Path, size: int = 2**16) -> str:
    """The beginning of a file of text."""
    with opened(path) as file:
        return bytes(file.read(size)).decode("utf-8-sig", "replace")


def separated(path: Path) -> Described:
    """CSV and its kin: the separator and whether there is a header are read off the first line."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.dataset as ds

    first_line = (head_of(path).splitlines() or [""])[0]
    bare = QUOTED.sub("", first_line)
    mark = "\t" if "\t" in bare or ".tsv" in path.suffixes else max(",;| ", key=bare.count)
    fields = next(csv.reader([first_line], delimiter=mark), [])
    kind = ds.CsvFileFormat(
        pc.ParseOptions(delimiter=mark, newlines_in_values=True),
        convert_options=pc.ConvertOptions(null_values=MISSING, strings_can_be_null=True),
        read_options=pc.ReadOptions(block_size=BLOCK, autogenerate_column_names=not _is_header(fields)),
    )
    types = {field.name: field.type for field in ds.dataset(path, format=kind).schema}
    # what is whole or missing in the first block may be a fraction in the next
    loose = [name for name, type_ in types.items() if pa.types.is_integer(type_) or pa.types.is_null(type_)]
    data = ds.dataset(path, schema=pa.schema(types | dict.fromkeys(loose, pa.float64())), format=kind)
    code = f"pandas.read_csv({str(path)!r}{'' if mark == ',' else f', sep={mark!r}'})"
    return scanned(data, f"{path.name} (text separated by {mark!r})", code)


def is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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

    def tables(columns: list[str] | None = None, size: int = ROWS) -> Iterator[Any]:
        every = iter(rows())
        while some := list(itertools.islice(every, size)):
            told = (row if isinstance(row, dict) else {"vector": row} for row in some)
            yield pa.Table.from_pylist([row if columns is None else {k: row.get(k) for k in columns} for row in told])

    first = pa.table({})
    for first in tables():  # a column of missing values says nothing: look on
        if not any(map(pa.types.is_null, first.schema.types)):
            break
    described = described_table(first.schema, tables, what, code, first)
    bare = first.column_names == ["vector"] and not isinstance(next(iter(rows())), dict)
    return replace(described, pick=code) if bare else described


def of_dataset(data: Any, what: str, code: str) -> Described:
    plain = data.with_format("arrow")  # of shuffled or selected rows a slice of all would be a copy
    first = next(iter(plain.iter(1)), None)
    schema = data.features.arrow_schema if first is None else first.schema
    return described_table(schema, lambda names, rows: plain.select_columns(names).iter(rows), what, code)


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
