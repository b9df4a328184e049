"""The columns of a table: which of them hold vectors, and which numbers side by side are dimensions. One rule for all.

A table is any source of rows in batches, each a mapping from the path of a column to its cells. A column that holds a
vector a cell is one member. Without such a column, columns of numbers are the dimensions: those whose names count
(dim_0, dim_1, ...), else all fractions, if nothing beside them may hold the vectors in a way that isn't known. Ids,
labels, whole numbers beside fractions and numbers of rows are never a dimension.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from isonb.auditing.reading.cells import as_floats, encoding_of, is_missing, looks_encoded, stacked, vector_in
from isonb.auditing.reading.described import LOOKED, Member, counts_on
from isonb.auditing.reading.spool import spooled

Path = tuple[str, ...]  # of a column: its name, and those of the fields inside it
Batches = Callable[[Sequence[Path] | None], Iterable[Mapping[Path, Any]]]  # of these columns, or of all
ROWS = 4096  # of a batch
NUMBERED = re.compile(r"^(.*?)(\d+)$")
# Names of columns that say which row it is, or what was said of it.
ROW = "ids?|idx|index|key|uu?id|pk|row|rownum|split|fold|time|timestamp|year|level_\\d+|index_level_\\d+__"
LABELS = "labels?|targets?|class|category|cluster"
METADATA = re.compile(rf"(^|.*[_\- .])({ROW}|{LABELS})$|^$|^Unnamed: \d+$", re.IGNORECASE)
TOKENS = re.compile(
    r"(^|.*[_.])(input_ids|attention_mask|token_type_ids|special_tokens_mask|position_ids|labels|tokens)$"
)
UNCLEAR = ("arrays", "bytes")


@dataclass(frozen=True)
class Column:
    """What the first cells of a column show.

    ``kind``: "vector", "number", "text"; "arrays" of tokens, "bytes" and "odd" hold something that isn't understood;
    "" are missing values alone. ``packed``: the type of numbers in bytes. ``whole``: of integers, or vectors of them.
    """

    path: Path
    kind: str
    type: str
    whole: bool = False
    head: Any = None
    packed: str = ""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def last(self) -> str:
        return self.path[-1] if self.path else ""


def members_of_table(
    batches: Batches, title: str, types: Mapping[Path, str] | None = None, named: bool = True
) -> list[Member]:
    """The members of a table. ``types``: what its columns say they are; ``named``: its names say something."""
    columns = [_column(path, cells, (types or {}).get(path, "")) for path, cells in _head(batches).items()]
    named = named and not all(column.name.isdigit() or METADATA.match(column.name) for column in columns)

    def cells_of(path: Path) -> Iterator[Any]:
        for batch in batches([path]):
            size = len(next(iter(batch.values()), ()))
            yield cells_list(batch[path]) if path in batch else [None] * size

    def vectors(path: Path, packed: str) -> Any:
        return spooled((stacked(cells, title, packed) for cells in cells_of(path)), title)

    def unclear(path: Path, _: str) -> list[Any]:
        cells = itertools.chain.from_iterable(cells_of(path))
        return [cell if isinstance(cell, bytes) else vector_in(cell) for cell in cells if not is_missing(cell)]

    def member(column: Column, kinds: Sequence[str], take: Callable[[Path, str], Any]) -> Member:
        part = f"column {column.name}" + (f" ({column.type})" if column.packed else "") if column.name else ""
        usable = column.kind in kinds and not TOKENS.match(column.name)
        return Member(
            column.name,
            column.type,
            partial(take, column.path, column.packed) if usable else None,
            not column.whole,
            part,
        )

    members = [member(column, ("vector",), vectors) for column in columns]
    if any(column.take for column in members):
        return members
    dimensions = list(_dimensions(columns, batches, title, named))
    return [*members, *dimensions] if dimensions else [member(column, UNCLEAR, unclear) for column in columns]


def cells_list(cells: Any) -> Any:
    """Cells of Arrow, or those that a list holds."""
    if not hasattr(cells, "combine_chunks"):
        return cells
    column = cells.combine_chunks()
    shape = getattr(column.type, "shape", None)
    values = getattr(column, "storage", column).to_pandas()
    return values if shape is None else [cell if cell is None else np.reshape(cell, shape) for cell in values]


def _head(batches: Batches) -> dict[Path, list[Any]]:
    """The first cells of each column that aren't missing: of as many rows as show one that holds vectors, or each."""
    head: dict[Path, list[Any]] = {}
    for batch in batches(None):
        for path, cells in batch.items():
            filled_cells = head.setdefault(path, [])
            if len(filled_cells) < LOOKED:
                filled = (cell for cell in cells_list(cells) if not is_missing(cell))
                filled_cells += itertools.islice(filled, LOOKED - len(filled_cells))
        if all(head.values()) or any(cells and _column((), cells, "").kind == "vector" for cells in head.values()):
            break
    return head


def _column(path: Path, cells: list[Any], type_: str) -> Column:
    if not cells:
        return Column(path, "", type_ or "missing values alone")
    first = cells[0]
    if isinstance(first, bool | np.bool_):
        return Column(path, "text", type_ or "bool")
    if isinstance(first, int | float | np.number) or hasattr(first, "as_integer_ratio"):
        integer = all(isinstance(cell, int | np.integer) for cell in cells) or "int" in type_
        return Column(path, "number", type_ or ("int" if integer else "float"), integer, as_floats(cells))
    encoding = encoding_of(cells)
    if encoding in UNCLEAR:
        size = f" of {len(first)} bytes" if encoding == "bytes" else ""
        return Column(path, encoding, (type_ or encoding) + size)
    if encoding:
        packed = encoding.partition(" of ")[2] if encoding.startswith(("base64", "bytes")) else ""
        shown = encoding if packed or isinstance(first, str) else f"list of {np.size(vector_in(first))} numbers"
        shown = type_ if type_ and not packed else shown
        return Column(path, "vector", shown, encoding == "whole numbers", packed=packed)
    if isinstance(first, str):
        return Column(path, "odd" if looks_encoded(first) else "text", type_ or "text")
    size = f" of {len(first)}" if isinstance(first, list | tuple) else ""
    return Column(path, "odd" if hasattr(first, "__len__") else "text", type_ or f"{type(first).__name__}{size}")


def _dimensions(columns: Sequence[Column], batches: Batches, title: str, named: bool) -> Iterator[Member]:
    """Columns of numbers as members: groups whose names count, or all that are fractions."""
    data = [column for column in columns if not METADATA.match(column.last)]
    groups: dict[tuple[str, ...], list[tuple[int, Column]]] = defaultdict(list)
    for column in data if named else ():
        if column.kind in ("number", "") and (match := NUMBERED.match(column.last)):
            groups[*column.path[:-1], match[1]].append((int(match[2]), column))
    runs = {
        prefix: [column for _, column in sorted(group, key=lambda pair: pair[0])]
        for prefix, group in groups.items()
        if len(group) > 1
    }
    in_runs = {column.path for run in runs.values() for column in run}
    loose = [
        column for column in data if column.kind == "number" and column.path not in in_runs and len(column.path) == 1
    ]
    loose = [column for column in loose if not (len(column.head) > 2 and counts_on(column.head))]
    fractions = [column for column in loose if not column.whole or (column.head == column.head[0]).all()]
    understood = not any(column.kind in ("odd", "vector", *UNCLEAR) for column in columns)
    if understood and len(fractions) >= max(map(len, runs.values()), default=0):
        numbers_alone = len(loose) == len(data) and not runs
        chosen = fractions if not all(column.whole for column in fractions) else loose if numbers_alone else []
        if len(chosen) > 1:
            runs["columns",] = chosen
    for prefix, run in runs.items():
        names = [column.name for column in run]
        first, last = names[0] or "''", names[-1] or "''"
        part = f"columns {first} to {last}"
        if prefix != ("columns",) and _number(names[-1]) - _number(names[0]) + 1 != len(names):
            part += f" ({len(names)} of them)"
        take = partial(_side_by_side, batches, [column.path for column in run], title)
        type_ = f"{len(names)} columns of numbers ({first} to {last})"
        yield Member(".".join(filter(None, prefix)) or "columns", type_, take, False, part, tuple(names))


def _number(name: str) -> int:
    match = NUMBERED.match(name)
    return int(match[2]) if match else 0


def _side_by_side(batches: Batches, paths: Sequence[Path], title: str) -> Any:
    """The matrix of columns that hold a dimension each."""

    def pieces() -> Iterator[Any]:
        for batch in batches(paths):
            size = len(next(iter(batch.values()), ()))
            columns = [as_floats(batch[path]) if path in batch else np.full(size, np.nan) for path in paths]
            yield np.stack(columns, -1).astype(np.result_type("float32", *columns), copy=False)

    return spooled(pieces(), title)
