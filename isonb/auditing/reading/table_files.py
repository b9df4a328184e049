"""Tables on disk, opened so that they are read in batches: parquet, feather, Arrow, CSV, data sets, Lance."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isonb.auditing.reading.columns import described_table, looks_like_vector
from isonb.auditing.reading.described import Described, library

BLOCK = 2**24  # bytes of a CSV file that are read at a time, and of its longest row
MISSING = ["", "\\N", "NULL", "null", "None", "nan", "NaN", "NA", "N/A", "#N/A"]
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')


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

    def opened_() -> Any:
        try:
            file = pa.ipc.open_file(pa.memory_map(str(path)))
            return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        except pa.ArrowInvalid:
            stream = pa.ipc.open_stream(pa.memory_map(str(path)))
            return stream.schema, iter(stream)

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        for batch in opened_()[1]:
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows).select(columns)

    return described_table(opened_()[0], batches, f"{path.name} (Arrow)", f"pandas.read_feather({str(path)!r})")


def opened(path: Path) -> Any:
    """A file of bytes; .gz, .bz2, .zst and .lz4 are unpacked on the way."""
    import pyarrow as pa

    return pa.input_stream(str(path), compression="detect")


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
    numbers = [field for field in fields if _is_number(field)]
    whole = all(field.strip().isdigit() for field in numbers)
    if len(numbers) == len(fields) and whole:
        return [int(field) for field in fields] == list(range(int(fields[0]), int(fields[0]) + len(fields)))
    return whole


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def of_arrow(table: Any, what: str, code: str) -> Described:
    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        return iter(table.select(columns).to_batches(rows))

    return described_table(table.schema, batches, what, code)


def of_dataset(data: Any, what: str, code: str) -> Described:
    plain = data.with_format("arrow")

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        return iter(plain.select_columns(columns).iter(rows))

    first = next(iter(plain.iter(1)), None)
    schema = first.schema if first is not None else data.features.arrow_schema
    return described_table(schema, batches, what, code)


def saved(folder: Path) -> Described:
    """What ``save_to_disk`` of the library ``datasets`` has left; the columns of several splits as split.column."""
    import datasets

    data = datasets.load_from_disk(str(folder))
    what, code = f"{folder.name} (a saved data set)", f"datasets.load_from_disk('{folder}')"
    if not isinstance(data, datasets.DatasetDict):
        return of_dataset(data, what, code)
    members = [
        member if len(data) == 1 else replace(member, name=f"{split}.{member.name}")
        for split, one in data.items()
        for member in of_dataset(one, f"{folder.name} (split {split})", f"{code}[{split!r}]").members
    ]
    return Described(what, members, code)


def lance(folder: Path) -> Described:
    table = f"lancedb.connect('{folder.parent}').open_table('{folder.stem}').to_pandas()"
    data = library("lance", folder, "pylance", (f"table = {table}", "isonb.audit(table)")).dataset(str(folder))

    def batches(columns: list[str], rows: int) -> Iterator[Any]:
        return iter(data.to_batches(columns=columns, batch_size=rows))

    code = f"lance.dataset('{folder}').to_table().to_pandas()"
    return described_table(data.schema, batches, f"{folder.name} (Lance)", code)
