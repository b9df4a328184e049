"""Columns of Arrow tables that hold vectors: lists, tensors, fields of structs, text, a column a dimension.

Cells of text may be JSON, what numpy and torch print, and the text of pgvector and of Postgres arrays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from isonb.auditing.reading.described import (
    Described,
    Member,
    VectorsError,
    check_dtype,
    check_shape,
    largest_of,
    refuse,
)
from isonb.auditing.reading.rows import spooled
from isonb.errors import DtypeError

Batches = Callable[[list[str], int], Iterator[Any]]  # of some columns, at most so many rows each
ROWS = 4096  # of a batch
LOOKED = 50  # rows that show what text holds
OPENS = ("[", "{", "(", "<", "tensor(", "array(", "np.array(", "Vector(", "HalfVector(")
WRAPPED = re.compile(r"^\s*(?:tensor|array|np\.array|Vector|HalfVector)\((.*)\)\s*$", re.DOTALL)
NAMED = re.compile(r"[,\s]+(?:dtype|device|shape|grad_fn)=.*$", re.DOTALL)
SPARSE = re.compile(r"^\{(.*)\}/(\d+)$", re.DOTALL)  # pgvector's sparsevec: indices from 1, then the dimensions
NUMBERED = re.compile(r"^(.*?)(\d+)$")


def described_table(schema: Any, batches: Batches, what: str, code: str, first: Any = None) -> Described:
    """The members of a table: columns and fields of structs by their path ("payload.embedding"), numbers as groups.

    ``first``: some of its rows, unless the first batch shows enough.
    """
    if first is None:
        first = next((batch for batch in batches(schema.names, LOOKED) if batch.num_rows), None)
    head = _flat(schema.empty_table() if first is None else first)
    table = _Table(schema.names, batches, what)
    members, numbers = [], {}
    for path, type_ in zip(head.schema.names, head.schema.types, strict=True):
        kind = _kind(type_, head.column(path))
        if kind == "number":
            numbers[path] = type_
        take = table.taker(path, f"{code}[{path!r}]") if kind in ("floats", "integers", "text") else None
        members.append(Member(path, str(type_), take, certain=kind != "integers"))
    if not any(member.take for member in members):
        groups = _groups(numbers)
        members = [member for member in members if not any(member.name in names for names in groups.values())]
        for name, names in groups.items():
            told = f"{len(names)} columns of numbers ({names[0]} to {names[-1]})"
            members.append(Member(name, told, table.group_taker(names)))
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
        return _kind(type_.storage_type, None)
    if is_.is_dictionary(type_):
        return _kind(type_.value_type, cells)
    if _is_list(type_):
        inner = type_.value_type
        while _is_list(inner):  # rows that are matrices: refused by their shape
            inner = inner.value_type
        if is_.is_floating(inner) or is_.is_decimal(inner):
            return "floats"
        return "integers" if is_.is_integer(inner) or is_.is_boolean(inner) else ""
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return "text" if cells is not None and looks_like_vector(cells[:LOOKED].to_pylist()) else ""
    return "number" if is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_) else ""


def _is_list(type_: Any) -> bool:
    import pyarrow as pa

    kinds = pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType | pa.LargeListViewType
    return isinstance(type_, kinds)


def _groups(numbers: dict[str, Any]) -> dict[str, list[str]]:
    """Columns of numbers that make vectors: those whose names count (dim_0, dim_1, ...), else all of fractions."""
    import pyarrow as pa

    counted: dict[str, list[tuple[int, str]]] = {}
    for name in numbers:
        if match := NUMBERED.match(name):
            counted.setdefault(match[1] or "columns", []).append((int(match[2]), name))
    groups = {prefix: [name for _, name in sorted(named)] for prefix, named in counted.items() if len(named) > 1}
    if groups:
        return groups
    fractions = [name for name, type_ in numbers.items() if not pa.types.is_integer(type_)]
    names = fractions if len(fractions) > 1 else list(numbers) if not fractions else []
    return {"columns": names} if len(names) > 1 else {}


class _Table:
    """A table that is read in batches of the columns that are asked for, ``names`` its columns."""

    def __init__(self, names: Sequence[str], batches: Batches, what: str) -> None:
        self.names, self.batches, self.what = names, batches, what

    def _read(self, paths: Sequence[str]) -> Iterator[Any]:
        heads = [max((n for n in self.names if path == n or path.startswith(f"{n}.")), key=len) for path in paths]
        return map(_flat, self.batches(list(dict.fromkeys(heads)), ROWS))

    def group_taker(self, paths: Sequence[str]) -> Callable[[], Any]:
        """What gives the matrix of columns that hold a dimension each."""

        def pieces() -> Iterator[Any]:
            import numpy as np

            for table in self._read(paths):
                columns = [table.column(path).to_numpy() for path in paths]
                yield np.stack(columns, -1).astype(np.result_type("float32", *columns), copy=False)

        return lambda: spooled(pieces(), self.what)

    def taker(self, path: str, code: str) -> Callable[[], Any]:
        """What gives the matrix of a column of vectors, whose cells may be missing."""

        def pieces() -> Iterator[Any]:
            import numpy as np

            width: int | None = None
            waiting = 0  # rows before the first vector
            for table in self._read([path]):
                matrix = _matrix(table.column(path).combine_chunks(), width, self.what, code)
                if matrix is None:
                    waiting += table.num_rows
                    continue
                if width is None:
                    width = matrix.shape[-1]
                    check_shape(matrix.shape, self.what, code)
                    kind, size = matrix.dtype.kind, matrix.dtype.itemsize
                    check_dtype(kind, size, str(matrix.dtype), partial(largest_of, matrix), self.what, code)
                    yield np.full((waiting, width), np.nan, "float32")
                yield matrix
            if width is None:
                must = f"{self.what} must hold vectors in {path}"
                refuse(VectorsError, must, "missing values alone", "Name another.", [code, ""])

        return lambda: spooled(pieces(), self.what)


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
    there = column.drop_null() if column.null_count else column
    if not len(there):
        return None
    lengths = pc.list_value_length(there).to_numpy(zero_copy_only=False)
    d = int(lengths[0]) if width is None or _is_list(column.type.value_type) else width
    if (lengths != d).any():
        _ragged(lengths, what, code)
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


def _ragged(lengths: Any, what: str, code: str) -> None:
    import numpy as np

    kinds, counts = np.unique(lengths, return_counts=True)
    usual = int(kinds[counts.argmax()])
    told = ", ".join(f"{count:,} of length {kind}" for kind, count in list(zip(kinds, counts, strict=True))[:4])
    frame, _, column = code.rpartition("[")  # the column keeps its closing bracket
    lines = (
        f"table = {frame}",
        f"isonb.audit(table[[len(v) == {usual} for v in table[{column}]][{column})  # or pool what is longer",
    )
    must = f"every row of {what} must hold a vector of one length"
    refuse(VectorsError, must, told, "Leave the others out.", lines)


def numbers_in(cell: str) -> list[float]:
    """The numbers of a cell.

    >>> numbers_in("[0.5, -1]"), numbers_in("{1:2.5,3:1}/4"), numbers_in("tensor([1., 2.], dtype=torch.float16)")
    ([0.5, -1.0], [2.5, 0.0, 1.0, 0.0], [1.0, 2.0])

    Raises DtypeError for other text, and for what numpy has cut by "...".
    """
    text = cell.strip()
    try:
        values = json.loads(text)
        if isinstance(values, list):
            return [float("nan") if value is None else float(value) for value in values]
    except (ValueError, TypeError):
        pass
    try:
        if sparse := SPARSE.match(text):
            dense = [0.0] * int(sparse[2])
            for place, value in (pair.split(":") for pair in sparse[1].split(",") if pair):
                dense[int(place) - 1] = float(value)
            return dense
        wrapped = WRAPPED.match(text)
        body = NAMED.sub("", wrapped[1]) if wrapped else text
        return [float(part) for part in body.strip("[](){}<> \n").replace(",", " ").replace(";", " ").split()]
    except (ValueError, IndexError):
        why = "numpy has cut it by '...' when it was printed" if "..." in text else "it is no list of numbers"
        shown = text if len(text) < 60 else f"{text[:40]}...{text[-12:]}"
        must = "a cell of text must hold a vector"
        raise DtypeError(f"{must}; got {shown!r}: {why}. Keep lists, not printed arrays.") from None


def looks_like_vector(cells: Sequence[str | None]) -> bool:
    """Whether the first cell that isn't missing reads as two numbers or more, in brackets."""
    text = next((cell.strip() for cell in cells if cell and cell.strip()), "")
    if not text.startswith(OPENS):
        return False
    try:
        return "..." in text or len(numbers_in(text)) > 1
    except DtypeError:
        return False
