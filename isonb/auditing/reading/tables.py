"""Tables by way of Arrow, read in batches: parquet, data sets, frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.auditing.reading.columns import ROWS, flattened, members_of_table
from isonb.auditing.reading.columns import Path as Column
from isonb.auditing.reading.members import Member, each_once


def columns_of(batch: Any) -> Mapping[Column, Any]:
    """The columns of a batch of Arrow by their path, as arrays of numpy."""
    import pyarrow as pa

    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        column = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
        column = column.combine_chunks()
        shape = column.type.shape if isinstance(column.type, pa.FixedShapeTensorType) else None
        column = getattr(column, "storage", column)
        column = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
        counted = pa.types.is_integer(column.type) and column.null_count
        cells = column.to_pylist() if counted else column.to_numpy(zero_copy_only=False)
        columns[name] = cells if shape is None else [cell if cell is None else cell.reshape(shape) for cell in cells]
    return flattened(columns)


def members_of_arrow(names: Sequence[str], read: Callable[[list[str]], Iterable[Any]], title: str) -> list[Member]:
    """The members of what gives batches of Arrow of the columns with some of these names."""
    each_once(names, title)

    def batches(paths: Sequence[Column] | None) -> Iterator[Mapping[Column, Any]]:
        first = [path[0] if path else "" for path in paths or ()]
        first += [name.partition("[")[0] for name in first]
        yield from map(columns_of, read([name for name in names if paths is None or name in first]))

    return members_of_table(batches, title)


def parquet(path: Path) -> list[Member]:
    import pyarrow.parquet as pq

    def read(columns: list[str]) -> Iterator[Any]:
        with pq.ParquetFile(path) as file:  # a data set would hold a whole group of rows in memory
            yield from file.iter_batches(ROWS, columns=columns)

    return members_of_arrow(pq.ParquetFile(path).schema_arrow.names, read, path.name)


def of_arrow(table: Any, title: str) -> list[Member]:
    """The members of a table of Arrow."""
    return members_of_arrow(table.schema.names, lambda names: table.select(names).to_batches(ROWS), title)


def of_dataset(data: Any, title: str) -> list[Member]:
    """The members of a data set of the library ``datasets``; of several splits by split.column."""
    if isinstance(data, Mapping):
        return [member.below(split) for split, item in data.items() for member in of_dataset(item, title)]
    plain = data.with_format("arrow")  # of shuffled or selected rows a slice of all would be a copy
    names = data.column_names or [*next(iter(data), ())]  # of a stream its first row may have to say them
    return members_of_arrow(names, lambda names: plain.select_columns(names).iter(ROWS), title)
