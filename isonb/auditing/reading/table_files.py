"""Tables on disk, opened so that they are read in batches: parquet, feather, Arrow, CSV, JSON, data sets, Lance."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isonb.auditing.reading.cells import looks_like_vector
from isonb.auditing.reading.columns import Table, described_table
from isonb.auditing.reading.described import Described, Part, VectorsError
from isonb.errors import needs

__all__ = [
    "QUOTED",
    "arrow",
    "head_of",
    "lance",
    "of_arrow",
    "of_dataset",
    "opened",
    "parquet",
    "saved",
    "separated",
]

ROWS = 4096  # of a batch
BLOCK = 2**24  # bytes of a CSV file that are read at a time, and of its longest row
MISSING = ["", "\\N", "NULL", "null", "None", "nan", "NaN", "NA", "N/A", "#N/A"]
QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}')


def parquet(path: Path) -> Described:
    """A parquet file, by row groups."""
    with needs("reading .parquet", "lab"):
        import pyarrow.parquet as pq
    schema = pq.ParquetFile(path).schema_arrow

    def batches(columns: list[str]) -> Iterator[Any]:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(ROWS, columns=columns)

    first = next(batches(schema.names), None)
    table = Table(schema, first, batches)
    return described_table(table, f"{path.name} (parquet)", f"pandas.read_parquet({str(path)!r})")


def arrow(path: Path) -> Described:
    """An Arrow file or stream; feather (version 2) is one."""
    with needs("reading Arrow files", "lab"):
        import pyarrow as pa

    def opened_() -> Any:
        source = pa.memory_map(str(path))
        try:
            file = pa.ipc.open_file(source)
            return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        except pa.ArrowInvalid:
            stream = pa.ipc.open_stream(pa.memory_map(str(path)))
            return stream.schema, iter(stream)

    return _of_batches(opened_, f"{path.name} (Arrow)", f"pandas.read_feather({str(path)!r})")


def _of_batches(opened_: Any, what: str, code: str) -> Described:
    """A table of what gives its schema and its batches anew each time."""
    schema, every = opened_()
    first = next((batch for batch in every if batch.num_rows), None)

    def batches(columns: list[str]) -> Iterator[Any]:
        for batch in opened_()[1]:
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS).select(columns)

    return described_table(Table(schema, first, batches), what, code)


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
    with needs("reading .csv", "lab"):
        import pyarrow as pa
        import pyarrow.csv as pc
    lines = head_of(path).splitlines() or [""]
    bare = QUOTED.sub("", lines[0])
    mark = "\t" if "\t" in bare or ".tsv" in path.suffixes else max(",;| ", key=bare.count)
    fields = next(csv.reader([lines[0]], delimiter=mark), [])
    parse = pc.ParseOptions(delimiter=mark, newlines_in_values=True)
    reading = pc.ReadOptions(block_size=BLOCK, autogenerate_column_names=not _is_header(fields))

    def reader(types: dict[str, Any], columns: list[str]) -> Any:
        options = pc.ConvertOptions(
            column_types=types, include_columns=columns, null_values=MISSING, strings_can_be_null=True
        )
        return pc.open_csv(opened(path), reading, parse, options)

    first = reader({}, []).read_next_batch()
    widest = {f.name: pa.float64() for f in first.schema if pa.types.is_integer(f.type) or pa.types.is_null(f.type)}

    def batches(columns: list[str]) -> Iterator[Any]:
        return iter(reader({name: widest.get(name, first.schema.field(name).type) for name in columns}, columns))

    code = f"pandas.read_csv({str(path)!r}{'' if mark == ',' else f', sep={mark!r}'})"
    return described_table(Table(first.schema, first, batches), f"{path.name} (text separated by {mark!r})", code)


def _is_header(fields: list[str]) -> bool:
    """Whether these are names: no vector, no fraction, and not all integers but 0, 1, 2, ..."""
    if looks_like_vector(fields) or any(looks_like_vector([field]) for field in fields):
        return False
    numbers = [field for field in fields if _is_number(field)]
    if len(numbers) == len(fields) and all(field.strip().isdigit() for field in fields):
        return [int(field) for field in fields] == list(range(int(fields[0]), int(fields[0]) + len(fields)))
    return not numbers or all(field.strip().isdigit() for field in numbers)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def of_arrow(table: Any, what: str, code: str) -> Described:
    """An Arrow table in memory."""

    def batches(columns: list[str]) -> Iterator[Any]:
        return iter(table.select(columns).to_batches(ROWS))

    return described_table(Table(table.schema, table.slice(0, ROWS), batches), what, code)


def of_dataset(data: Any, what: str, code: str) -> Described:
    """A data set of the library ``datasets``."""
    plain = data.with_format("arrow")

    def batches(columns: list[str]) -> Iterator[Any]:
        for table in plain.select_columns(columns).iter(ROWS):
            yield table.combine_chunks()

    first = next(iter(plain.iter(50)), None)
    schema = first.schema if first is not None else data.features.arrow_schema
    return described_table(Table(schema, first, batches), what, code)


def saved(folder: Path) -> Described:
    """What ``save_to_disk`` of the library ``datasets`` has left; the columns of several splits as split.column."""
    with needs("reading saved data sets", "lab"):
        import datasets
    data = datasets.load_from_disk(str(folder))
    code = f"datasets.load_from_disk('{folder}')"
    if not isinstance(data, datasets.DatasetDict):
        return of_dataset(data, f"{folder.name} (a saved data set)", code)
    parts = [
        Part(part.name if len(data) == 1 else f"{split}.{part.name}", part.type, part.take, part.certain)
        for split, one in data.items()
        for part in of_dataset(one, f"{folder.name} (split {split})", f"{code}[{split!r}]").parts
    ]
    return Described(f"{folder.name} (a saved data set)", tuple(parts), code, code + "[{name!r}]")


def lance(folder: Path) -> Described:
    """A Lance data set, as LanceDB keeps its tables."""
    with needs("reading .lance", "lab"):
        try:
            from lance import dataset
        except ImportError as error:
            fix = f"pip install pylance, or: lancedb.connect('{folder.parent}').open_table('{folder.stem}').to_pandas()"
            raise VectorsError(f"pylance must be installed to read .lance; got no pylance. {fix}") from error
    data = dataset(str(folder))

    def batches(columns: list[str]) -> Iterator[Any]:
        return iter(data.to_batches(columns=columns, batch_size=ROWS))

    first = next(iter(data.to_batches(batch_size=50, limit=50)), None)
    code = f"lance.dataset('{folder}').to_table().to_pandas()"
    return described_table(Table(data.schema, first, batches), f"{folder.name} (Lance)", code)
