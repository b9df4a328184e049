"""Tables by way of Arrow, read in batches: parquet, Arrow files and streams, data sets, frames."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.auditing.reading.columns import ROWS, members_of_table
from isonb.auditing.reading.columns import Path as Column
from isonb.auditing.reading.described import Described, Member, named_below
from isonb.auditing.reading.values import leaves

Read = Callable[[list[str]], Iterable[Any]]  # batches of the columns of these names


def columns_of(batch: Any) -> Mapping[Column, Any]:
    """The columns of a batch of Arrow by their path: fields of structs, and of lists of one struct a row."""
    import pyarrow as pa

    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    named = zip(table.column_names, table.columns, strict=True)
    return {path: cells for name, column in named for path, cells in _fields((name,), column).items()}


def _fields(path: Column, column: Any) -> Mapping[Column, Any]:
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType) and not isinstance(column.type, pa.FixedShapeTensorType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_struct(column.type):
        fields = zip(column.type, column.flatten(), strict=True)
        return {place: part for field, item in fields for place, part in _fields((*path, field.name), item).items()}
    if hasattr(column.type, "value_type") and pa.types.is_struct(column.type.value_type):
        rows: dict[Column, Any] = {}
        for i, cell in enumerate(column.to_pylist()):
            for place, item in leaves(cell, path):
                rows.setdefault(place, [None] * len(column))[i] = item
        return rows
    return {path: column.cast(column.type.value_type) if isinstance(column.type, pa.DictionaryType) else column}


def members_of_arrow(schema: Any, read: Read, title: str) -> list[Member]:
    """The members of what gives batches of Arrow, at most :data:`ROWS` rows each."""

    def batches(paths: Sequence[Column] | None) -> Iterator[Mapping[Column, Any]]:
        first = [path[0].partition("[")[0] for path in paths or ()] + [path[0] for path in paths or ()]
        yield from map(columns_of, read([name for name in schema.names if paths is None or name in first]))

    types: dict[Column, str] = {(item.name,): str(getattr(item.type, "storage_type", item.type)) for item in schema}
    return members_of_table(batches, title, types)


def scanned(source: Any, place: str, kind: str, path: str | Path) -> Described:
    """A data set or a table of Arrow."""
    import pyarrow.dataset as ds

    data = source if isinstance(source, ds.Dataset) else ds.dataset(source)

    def read(columns: list[str]) -> Iterator[Any]:
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}  # else gigabytes of wide rows are in memory
        yield from data.to_batches(columns=columns, batch_size=ROWS, **ahead)

    return Described(place, kind, members_of_arrow(data.schema, read, place), path)


def parquet(path: Path) -> Described:
    """A parquet file, batch by batch."""
    import pyarrow.parquet as pq

    def read(columns: list[str]) -> Iterator[Any]:
        with pq.ParquetFile(path) as file:  # a data set would hold a whole group of rows in memory
            yield from file.iter_batches(ROWS, columns=columns)

    return Described(path.name, "parquet", members_of_arrow(pq.ParquetFile(path).schema_arrow, read, path.name), path)


def arrow(path: Path) -> Described:
    """An Arrow file or stream; feather (version 2) is one."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    with contextlib.suppress(pa.ArrowInvalid):
        return scanned(ds.dataset(path, format="ipc"), path.name, "Arrow", path)
    return scanned(pa.ipc.open_stream(pa.memory_map(str(path))).read_all(), path.name, "Arrow", path)


def of_dataset(data: Any, title: str) -> list[Member]:
    """The members of a data set of the library ``datasets``; of several splits by split.column."""
    if isinstance(data, Mapping):
        return [named_below(split, member) for split, item in data.items() for member in of_dataset(item, title)]
    plain = data.with_format("arrow")  # of shuffled or selected rows a slice of all would be a copy
    first = next(iter(plain.iter(1)), None)
    schema = data.features.arrow_schema if first is None else first.schema
    return members_of_arrow(schema, lambda names: plain.select_columns(names).iter(ROWS), title)


def saved(folder: Path) -> Described:
    """What ``save_to_disk`` of the library ``datasets`` has left."""
    import datasets

    members = of_dataset(datasets.load_from_disk(str(folder)), folder.name)
    return Described(folder.name, "a saved data set", members, folder)
