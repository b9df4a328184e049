"""Columns of Arrow tables that hold vectors: lists, tensors, fields of structs, text, a column a dimension.

Cells of text may be JSON, what numpy and torch print, and the text of pgvector and of Postgres arrays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from isonb.auditing.reading.described import Described, Member, VectorsError, checked, refuse, spooled
from isonb.errors import DtypeError

Batches = Callable[[list[str], int], Iterator[Any]]  # of some columns, at most so many rows each
ROWS = 4096  # of a batch
LOOKED = 50  # rows that show what text holds
BRACKETS = (("[", "]"), ("{", "}"), ("(", ")"), ("<", ">"))
VECTOR = re.compile(r"[\w.]{0,12}[\[{(<].*[\]})>]", re.DOTALL)  # in brackets, after a word such as "tensor" or not
NUMBERED = re.compile(r"^(.*?)(\d+)$")


def described_table(schema: Any, batches: Batches, what: str, code: str, first: Any = None) -> Described:
    """The members of a table: columns and fields of structs by their path ("payload.embedding"), numbers as groups.

    ``first``: some of its rows, unless the first batch shows enough.
    """
    if first is None:
        first = next((batch for batch in batches(schema.names, LOOKED) if batch.num_rows), None)
    head = _flat(schema.empty_table() if first is None else first)

    def read(paths: Sequence[str]) -> Iterator[Any]:
        heads = [max((n for n in schema.names if path == n or path.startswith(f"{n}.")), key=len) for path in paths]
        return map(_flat, batches(list(dict.fromkeys(heads)), ROWS))

    def of_lists(path: str) -> Any:
        cells = (table.column(path).combine_chunks() for table in read([path]))
        return spooled(_vectors(cells, what, place := f"{code}[{path!r}]"), what, place)

    def of_columns(paths: Sequence[str]) -> Any:
        return spooled(map(partial(_beside, paths), read(paths)), what, code)

    members, numbers = [], {}
    for path, type_ in zip(head.schema.names, head.schema.types, strict=True):
        kind = _kind(type_, head.column(path))
        if kind == "number":
            numbers[path] = type_
        take = partial(of_lists, path) if kind in ("floats", "integers", "text") else None
        members.append(Member(path, str(type_), take, certain=kind != "integers"))
    if not any(member.take for member in members):
        for name, names in _groups(numbers).items():
            told = f"{len(names)} columns of numbers ({names[0]} to {names[-1]})"
            members = [member for member in members if member.name not in names]
            members.append(Member(name, told, partial(of_columns, names)))
    return Described(what, members, code)


def _flat(batch: Any) -> Any:
    """A batch as a table whose structs are columns by the path of each field."""
    import pyarrow as pa

    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    while any(map(pa.types.is_struct, table.schema.types)):
        table = table.flatten()
    return table


def _kind(type_: Any, cells: Any) -> str:
    """What a column may hold: "floats" and "integers" (lists), "text", "number", or "" for anything else."""
    import pyarrow as pa

    is_ = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return _kind(type_.storage_type, cells)
    if is_.is_dictionary(type_):
        return _kind(type_.value_type, cells)
    listed = _is_list(type_)
    type_ = type_.value_type if listed else type_
    if is_.is_floating(type_) or is_.is_decimal(type_):
        return "floats" if listed else "number"
    if is_.is_integer(type_):
        return "integers" if listed else "number"
    if is_.is_boolean(type_) and listed:
        return "integers"
    text = is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_)
    return "text" if text and not listed and looks_like_vector(cells[:LOOKED].to_pylist()) else ""


def _is_list(type_: Any) -> bool:
    import pyarrow as pa

    kinds = pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType
    return isinstance(type_, kinds)


def _groups(numbers: Mapping[str, Any]) -> dict[str, list[str]]:
    """Columns of numbers that make vectors: those whose names count (dim_0, dim_1, ...), else all of fractions."""
    import pyarrow as pa

    counted: dict[str, list[tuple[int, str]]] = {}
    for name in numbers:
        if match := NUMBERED.match(name):
            counted.setdefault(match[1] or "columns", []).append((int(match[2]), name))
    groups = {prefix: [name for _, name in sorted(named)] for prefix, named in counted.items() if len(named) > 1}
    fractions = [name for name, type_ in numbers.items() if not pa.types.is_integer(type_)]
    names = fractions or list(numbers)
    return groups or ({"columns": names} if len(names) > 1 else {})


def _beside(paths: Sequence[str], table: Any) -> Any:
    """The matrix of columns that hold a dimension each."""
    import numpy as np

    columns = [table.column(path).to_numpy() for path in paths]
    return np.stack(columns, -1).astype(np.result_type("float32", *columns), copy=False)


def _vectors(columns: Iterator[Any], what: str, code: str) -> Iterator[Any]:
    """The matrix of each piece of a column of vectors; a cell that is missing becomes NaN."""
    import numpy as np

    width, waiting = None, 0  # rows before the first vector
    for column in columns:
        matrix = _matrix(column, width, what, code)
        if matrix is None:
            waiting += len(column)
            continue
        if width is None:
            width = checked(matrix, what, code).shape[1]
            yield np.full((waiting, width), np.nan, "float32")
        yield matrix
    if width is None:
        must, lines = f"{what} must hold vectors", (f"print({code}.count())", f"print({code}.head())")
        refuse(VectorsError, must, "missing values alone", "Name another column.", lines)


def _matrix(column: Any, width: int | None, what: str, code: str) -> Any:
    """The cells as an array (m, d), or of another shape as tensors; missing ones NaN; None where all are missing."""
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
    there = column.drop_null() if column.null_count else column
    if not len(there):
        return None
    lengths = pc.list_value_length(there).to_numpy(zero_copy_only=False)
    d = int(lengths[0]) if width is None else width
    if (lengths != d).any():
        _ragged(lengths, what, code)
    inner = there.flatten()
    inner = inner.cast(pa.float64()) if pa.types.is_decimal(inner.type) else inner
    values = inner.to_numpy(zero_copy_only=False).reshape(len(there), *(shape or (d,)))
    if not column.null_count:
        return values
    whole = np.full((len(column), *values.shape[1:]), np.nan, np.result_type(values.dtype, "float16"))
    whole[column.is_valid().to_numpy(zero_copy_only=False)] = values
    return whole


def _ragged(lengths: Any, what: str, code: str) -> None:
    import numpy as np

    kinds, counts = np.unique(lengths, return_counts=True)
    usual = int(kinds[counts.argmax()])
    told = ", ".join(f"{count:,} of length {kind}" for kind, count in list(zip(kinds, counts, strict=True))[:4])
    lines = (f"x = [v for v in {code} if len(v) == {usual}]", "isonb.audit(x)  # or pool what is longer")
    must = f"every row of {what} must hold a vector of one length"
    refuse(VectorsError, must, told, "Leave the others out.", lines)


def numbers_in(cell: str) -> list[float]:
    """The numbers of a cell.

    >>> numbers_in("[0.5, -1]"), numbers_in("{2.5 1}"), numbers_in("tensor([1., 2.], dtype=torch.float16)")
    ([0.5, -1.0], [2.5, 1.0], [1.0, 2.0])

    Raises DtypeError for other text, and for what numpy has cut by "...".
    """
    try:
        return [float("nan") if value is None else float(value) for value in json.loads(cell)]
    except (ValueError, TypeError):
        pass
    opens, closes = next((pair for pair in BRACKETS if pair[0] in cell and pair[1] in cell), (" ", " "))
    body = cell[cell.find(opens) + 1 : cell.rfind(closes)]
    try:
        return [float(part) for part in body.replace(",", " ").replace(";", " ").split()]
    except ValueError:
        why = "numpy has cut it by '...' when it was printed" if "..." in cell else "it is no list of numbers"
        shown = cell if len(cell) < 60 else f"{cell[:40]}...{cell[-12:]}"
        must = "a cell of text must hold a vector"
        raise DtypeError(f"{must}; got {shown!r}: {why}. Keep lists, not printed arrays.") from None


def looks_like_vector(cells: Sequence[str | None]) -> bool:
    """Whether the first cell that isn't missing reads as two numbers or more, in brackets."""
    text = next((cell.strip() for cell in cells if cell and cell.strip()), "")
    try:
        return VECTOR.fullmatch(text) is not None and ("..." in text or len(numbers_in(text)) > 1)
    except DtypeError:
        return False
