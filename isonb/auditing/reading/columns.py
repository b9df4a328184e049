"""Columns of Arrow tables that hold vectors: lists, tensors, fields of structs, text, a column a dimension."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from isonb.auditing.reading.cells import looks_like_vector, numbers_in
from isonb.auditing.reading.described import Described, Part, VectorsError, check_dtype, check_shape, largest_of, refuse
from isonb.auditing.reading.sources import spooled

__all__ = ["Table", "described_table"]

NUMBERED = re.compile(r"^(.*?)(\d+)$")


@dataclass(frozen=True)
class Table:
    """A table that is read in batches: its schema, its first rows, and what gives batches of some columns."""

    schema: Any
    first: Any
    batches: Callable[[list[str]], Iterator[Any]]


def described_table(table: Table, what: str, code: str) -> Described:
    """The parts of a table: columns and fields of structs by their path ("payload.embedding"), numbers as groups."""
    pick = code + "[{name!r}]"
    described = Described(what, (), code, pick)
    parts, numbers = [], {}
    for path, type_ in _fields(table.schema):
        kind = _kind(type_, _field(table.first, path) if table.first is not None else None)
        if kind == "number":
            numbers[path] = type_
        take = _taker(table, path, what, pick.format(name=path)) if kind in ("floats", "integers", "text") else None
        parts.append(Part(path, str(type_), take, certain=kind != "integers"))
    if not any(part.take for part in parts):
        groups = _groups(numbers)
        parts = [part for part in parts if not any(part.name in names for names in groups.values())]
        for name, names in groups.items():
            told = f"{len(names)} columns of numbers ({names[0]} to {names[-1]})"
            parts.append(Part(name, told, _group_taker(table, names, what)))
    return Described(described.what, tuple(parts), code, pick)


def _fields(schema: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """The columns, those of structs by their path."""
    import pyarrow as pa

    for field in schema:
        path = f"{before}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _fields(list(field.type), f"{path}.")
        else:
            yield path, field.type


def _field(batch: Any, path: str) -> Any:
    """A column, or a field of a struct, as one array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = batch.schema.names
    head = max((name for name in names if path == name or path.startswith(f"{name}.")), key=len)
    column = batch.column(names.index(head))
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    rest = path[len(head) + 1 :]
    while rest:
        inner = [field.name for field in column.type]
        name = max((name for name in inner if rest == name or rest.startswith(f"{name}.")), key=len)
        column, rest = pc.struct_field(column, name), rest[len(name) + 1 :]
    return column


def _kind(type_: Any, cells: Any) -> str:
    """What a column may hold: "floats" and "integers" (lists), "text", "number", or "" for anything else."""
    import pyarrow as pa

    is_ = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return _kind(type_.storage_type, None)
    if is_.is_dictionary(type_):
        return _kind(type_.value_type, cells.dictionary_decode() if cells is not None else None)
    if _is_list(type_):
        inner = type_.value_type
        while _is_list(inner):  # rows that are matrices: refused by their shape
            inner = inner.value_type
        if is_.is_floating(inner) or is_.is_decimal(inner):
            return "floats"
        return "integers" if is_.is_integer(inner) or is_.is_boolean(inner) else ""
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return "text" if cells is not None and looks_like_vector(cells[:50].to_pylist()) else ""
    return "number" if is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_) else ""


def _is_list(type_: Any) -> bool:
    import pyarrow as pa

    is_ = pa.types
    kinds = (is_.is_list, is_.is_large_list, is_.is_fixed_size_list, is_.is_list_view, is_.is_large_list_view)
    return any(kind(type_) for kind in kinds)


def _groups(numbers: dict[str, Any]) -> dict[str, list[str]]:
    """Columns of numbers that make vectors: those whose names count (dim_0, dim_1, ...), else all of fractions."""
    import pyarrow as pa

    counted: dict[str, list[str]] = {}
    for name in numbers:
        if match := NUMBERED.match(name):
            counted.setdefault(match[1] or "columns", []).append(name)
    groups = {
        prefix: sorted(names, key=lambda name: int(NUMBERED.match(name)[2]))  # type: ignore[index]
        for prefix, names in counted.items()
        if len(names) > 1
    }
    if groups:
        return groups
    fractions = [name for name, type_ in numbers.items() if not pa.types.is_integer(type_)]
    names = fractions if len(fractions) > 1 else list(numbers) if not fractions else []
    return {"columns": names} if len(names) > 1 else {}


def _group_taker(table: Table, names: list[str], what: str) -> Callable[[], Any]:
    def pieces() -> Iterator[Any]:
        import numpy as np

        heads = list(dict.fromkeys(_head(table, name) for name in names))
        for batch in table.batches(heads):
            columns = [_field(batch, name).to_numpy(zero_copy_only=False) for name in names]
            yield np.stack(columns, -1).astype(np.result_type("float32", *columns), copy=False)

    return lambda: spooled(pieces(), what)


def _head(table: Table, path: str) -> str:
    return str(max((name for name in table.schema.names if path == name or path.startswith(f"{name}.")), key=len))


def _taker(table: Table, path: str, what: str, code: str) -> Callable[[], Any]:
    def pieces() -> Iterator[Any]:
        width: int | None = None
        waiting = 0  # rows before the first vector
        for batch in table.batches([_head(table, path)]):
            found = _matrix(_field(batch, path), width, what, code)
            if found is None:
                waiting += batch.num_rows
                continue
            if width is None:
                width = found.shape[-1]
                check_shape(found.shape, what, code)
                kind, size = found.dtype.kind, found.dtype.itemsize
                check_dtype(kind, size, str(found.dtype), partial(largest_of, found), what, code)
                if waiting:
                    yield _empty(waiting, width)
            yield found
        if width is None:
            refuse(
                VectorsError, f"{what} must hold vectors in {path}", "missing values alone", "Name another.", [code, ""]
            )

    return lambda: spooled(pieces(), what)


def _empty(n: int, d: int) -> Any:
    import numpy as np

    return np.full((n, d), np.nan, "float32")


def _matrix(column: Any, width: int | None, what: str, code: str) -> Any:
    """The cells as an array (m, d), or (m, t, d) of lists of lists; missing ones NaN; None where all are missing."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    shape: tuple[int, ...] = ()
    if isinstance(column, pa.ExtensionArray):
        shape = tuple(getattr(column.type, "shape", ()))
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_list(column.type):
        cells = column.to_pylist()
        column = pa.array([None if cell is None or not cell.strip() else numbers_in(cell) for cell in cells])
        if pa.types.is_null(column.type):
            return None
    there = column.drop_null() if column.null_count else column
    if not len(there):
        return None
    lengths = pc.list_value_length(there).to_numpy(zero_copy_only=False)
    d = int(lengths[0]) if width is None or _is_list(column.type.value_type) else width
    if (lengths != d).any():
        _ragged(lengths, d, what, code)
    inner = there.flatten()
    if _is_list(inner.type) or isinstance(inner, pa.ExtensionArray):
        values = _matrix(inner, None, what, code)
        values = np.zeros((0, 0)) if values is None else values
    else:
        inner = inner.cast(pa.float64()) if pa.types.is_decimal(inner.type) else inner
        values = inner.to_numpy(zero_copy_only=False)
    values = values.reshape(len(there), *(shape or (d, *values.shape[1:])))
    if not column.null_count:
        return values
    whole = np.full((len(column), *values.shape[1:]), np.nan, np.result_type(values.dtype, "float16"))
    whole[column.is_valid().to_numpy(zero_copy_only=False)] = values
    return whole


def _ragged(lengths: Any, d: int, what: str, code: str) -> None:
    import numpy as np

    kinds, counts = np.unique(lengths, return_counts=True)
    usual = int(kinds[counts.argmax()])
    told = ", ".join(f"{count:,} of length {kind}" for kind, count in list(zip(kinds, counts, strict=True))[:4])
    frame, _, column = code.rpartition("[")  # the column keeps its closing bracket
    lines = (
        f"table = {frame}",
        f"isonb.audit(table[[len(v) == {usual} for v in table[{column}]][{column})  # or pool what is longer",
    )
    fix = "Leave the others out."
    refuse(VectorsError, f"every row of {what} must hold a vector of one length", told, fix, lines)
