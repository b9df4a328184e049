"""Cells that hold vectors, and the columns of tables: lists, tensors, fields of structs, text, a column a dimension.

Cells of text may be JSON, what numpy and torch print, and the text of pgvector and of Postgres arrays.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from isonb.auditing.reading.described import Described, Member, refuse, spooled
from isonb.errors import DtypeError, ShapeError

Batches = Callable[[list[str], int], Iterable[Any]]  # of some columns, at most so many rows each
ROWS = 4096  # of a batch
LOOKED = 50  # rows that show what text holds
TEXTS = ("string", "large_string", "string_view")
BRACKETS = (("[", "]"), ("{", "}"), ("(", ")"), ("<", ">"))
VECTOR = re.compile(r"[\w.]{0,12}[\[{(<].*[\]})>]", re.DOTALL)  # in brackets, after a word such as "tensor" or not
NUMBERED = re.compile(r"^(.*?)(\d+)$")


def described_table(schema: Any, batches: Batches, what: str, code: str, first: Any = None) -> Described:
    """The members of a table: columns and fields of structs by their path ("payload.embedding"), numbers as groups.

    ``first``: some of its rows, unless the first batch shows enough.
    """
    import pyarrow as pa

    if first is None:
        first = next((batch for batch in batches(schema.names, LOOKED) if batch.num_rows), None)
    head = _flat(schema.empty_table() if first is None else first)

    def read(paths: Sequence[str]) -> Iterator[Any]:
        names = [name for name in schema.names if any(f"{path}.".startswith(f"{name}.") for path in paths)]
        return map(_flat, batches(names, ROWS))

    def of_cells(path: str) -> Any:
        place = f"{code}[{path!r}]"
        columns = (one.column(path) if path in one.column_names else pa.nulls(len(one)) for one in read([path]))
        return spooled((stacked(_cells(column), what, place) for column in columns), what, place)

    def of_columns(paths: Sequence[str]) -> Any:
        return spooled(map(partial(_beside, paths), read(paths)), what, code)

    members, numbers = [], {}
    for path, column in zip(head.column_names, head.columns, strict=True):
        kind = _kind(column)
        if kind == "number":
            numbers[path] = column.type
        take = partial(of_cells, path) if kind in ("floats", "integers", "text") else None
        members.append(Member(path, str(column.type), take, certain=kind != "integers"))
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


def _kind(column: Any) -> str:
    """What a column may hold: "floats" and "integers" (lists), "text", "number", or "" for anything else."""
    import pyarrow as pa

    type_ = column.type
    while isinstance(type_, pa.BaseExtensionType | pa.DictionaryType):
        type_ = type_.value_type if isinstance(type_, pa.DictionaryType) else type_.storage_type
    if str(type_) in TEXTS:
        return "text" if looks_like_vector(column[:LOOKED].to_pylist()) else ""
    listed = isinstance(type_, pa.ListType | pa.LargeListType | pa.FixedSizeListType | pa.ListViewType)
    inner = type_.value_type if listed else type_
    if pa.types.is_floating(inner) or pa.types.is_decimal(inner):
        return "floats" if listed else "number"
    if pa.types.is_integer(inner):
        return "integers" if listed else "number"
    return "integers" if listed and pa.types.is_boolean(inner) else ""


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


def _cells(column: Any) -> Iterable[Any]:
    """What a column of Arrow holds; tensors in their shape."""
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    shape = getattr(column.type, "shape", None)
    cells = getattr(column, "storage", column).to_pandas()
    return cells if shape is None else (cell if cell is None else cell.reshape(shape) for cell in cells)


def stacked(cells: Iterable[Any], what: str, code: str) -> Any:
    """Cells that hold a vector each (a list, an array, a tensor, text) as a matrix; a missing one becomes NaN.

    (m, 0) where all are missing. Raises ShapeError for vectors of several lengths.
    """
    import numpy as np

    rows = [None if _missing(cell) else as_numpy(numbers_in(cell) if isinstance(cell, str) else cell) for cell in cells]
    there = [row for row in rows if row is not None]
    shapes = Counter(row.shape for row in there).most_common()
    if len(shapes) > 1:
        usual = "x".join(map(str, shapes[0][0]))
        told = ", ".join(f"{count:,} of length {'x'.join(map(str, shape)) or 0}" for shape, count in shapes[:4])
        odd = next(i for i, row in enumerate(rows) if row is not None and row.shape != shapes[0][0])
        lines = (f"x = [v for v in {code} if len(v) == {usual}]", "isonb.audit(x)  # or pool what is longer")
        must = f"every row of {what} must hold a vector of one length"
        refuse(ShapeError, must, f"{told}, the first in row {odd}", "Leave the others out.", lines)
    if not there:
        return np.empty((len(rows), 0), "float32")
    values = np.stack(there)
    if len(there) == len(rows):
        return values
    whole = np.full((len(rows), *values.shape[1:]), np.nan, np.result_type(values.dtype, "float16"))
    whole[[row is not None for row in rows]] = values
    return whole


def _missing(cell: Any) -> bool:
    return (
        cell is None or (isinstance(cell, float) and math.isnan(cell)) or (isinstance(cell, str) and not cell.strip())
    )


def as_numpy(value: Any) -> Any:
    """A tensor or what numpy takes as an array; floats of a tensor but float64 as float32."""
    import numpy as np

    if isinstance(value, torch.Tensor):
        return (value if value.dtype == torch.float64 else value.float()).detach().cpu().numpy()
    return np.asarray(value)


def numbers_in(cell: str) -> list[float]:
    """The numbers of a cell, in brackets or without.

    >>> numbers_in("[0.5, -1]"), numbers_in("2.5 1"), numbers_in("tensor([1., 2.], dtype=torch.float16)")
    ([0.5, -1.0], [2.5, 1.0], [1.0, 2.0])

    Raises DtypeError for other text, and for what numpy has cut by "...".
    """
    try:
        return [float("nan") if value is None else float(value) for value in json.loads(cell)]
    except (ValueError, TypeError):
        pass
    pairs = [(opens, closes) for opens, closes in BRACKETS if opens in cell and closes in cell]
    body = cell[cell.find(pairs[0][0]) + 1 : cell.rfind(pairs[0][1])] if pairs else cell
    try:
        return [float(number) for number in body.replace(",", " ").replace(";", " ").split()]
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
