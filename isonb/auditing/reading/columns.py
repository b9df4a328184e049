"""The columns of a table: which of them hold vectors, and which numbers side by side are dimensions. One rule for all.

A table is any source of rows in batches, each a mapping from the path of a column to its cells. A column that holds a
vector a cell is one member. Without such a column, columns of numbers are the dimensions: those whose names count
(dim_0, dim_1, ...), else all fractions, if nothing beside them may hold the vectors in a way that isn't known. Ids,
labels, whole numbers beside fractions and numbers of rows are never a dimension.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from isonb.auditing.reading.cells import is_missing, kind_of, spooled, stacked
from isonb.auditing.reading.members import LOOKED, UNCLEAR, Member, counts_on
from isonb.errors import ShapeError, fail

Path = tuple[str, ...]  # of a column: its name, and those of the fields inside it
Batches = Callable[[Sequence[Path] | None], Iterable[Mapping[Path, Any]]]  # of these columns, or of all
ROWS = 4096  # of a batch
NUMBERED = re.compile(r"^(.*?)(\d+)$")
# Names of columns that say which row it is, or what was said of it.
ROW = "ids?|idx|index|key|uu?id|pk|row|rownum|split|fold|time|timestamp|year|level_\\d+|index_level_\\d+__"
LABELS = "labels?|targets?|class|category|cluster"
METADATA = re.compile(rf"(^|.*[_\- .])({ROW}|{LABELS})$|^$|^Unnamed: \d+$", re.IGNORECASE)
TOKENS = re.compile(r"(^|.*[_.])(input_ids|attention_mask|token_type_ids|special_tokens_mask|position_ids|tokens)$")
VECTORS = ("vectors", "whole vectors")


class Column(NamedTuple):
    """What the first cells of a column show: their kind (see :func:`~isonb.auditing.reading.cells.kind_of`)."""

    path: Path
    kind: str
    head: Sequence[Any]

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def __str__(self) -> str:
        if self.kind in (*VECTORS, "odd") and not isinstance(self.head[0], str):
            return f"list of {len(self.head[0])}{' numbers' * (self.kind != 'odd')}"
        return {"": "missing values alone", "vectors": "text of numbers", "odd": "text"}.get(self.kind, self.kind)


def columns_of_rows(rows: Callable[[], Iterable[Any]]) -> Batches:
    """Rows of Python as a table: records, vectors, or lists of unlike things, whose places are then their columns."""
    head = [row for row in itertools.islice(rows(), LOOKED) if row is not None]
    width = len(head[0]) if _are_mixed(head) else 0

    def batches(paths: Sequence[Path] | None) -> Iterator[Mapping[Path, Any]]:
        every = iter(rows())
        while some := [*itertools.islice(every, ROWS)]:
            if width and {len(row) for row in some if row} != {width}:
                got, fix = "rows of several lengths", "Correct those rows."
                fail(ShapeError, f"every row must have {width} places", got, fix)
            yield flattened({"": [row and dict(enumerate(row)) for row in some] if width else some})

    return batches


def _are_mixed(rows: Sequence[Any]) -> bool:
    """Whether rows are lists of numbers with an id, a label or a text among them."""
    if not rows or not all(isinstance(row, list | tuple) for row in rows) or len({len(row) for row in rows}) > 1:
        return False
    columns = ([cell for cell in column if not is_missing(cell)] for column in zip(*rows, strict=True))
    return len({kind_of(cells) for cells in columns if len(set(map(repr, cells))) > 1}) > 1


def flattened(columns: Mapping[str, Any], above: Path = ()) -> dict[Path, Any]:
    """Columns by their path: cells that are records, or lists of one record, become columns of their fields."""
    flat: dict[Path, Any] = {}
    for key, cells in columns.items():
        name = str(key)
        first: Any = next((cell for cell in cells if not is_missing(cell)), None)
        inner = first[0] if isinstance(first, list | tuple) or getattr(first, "ndim", 0) == 1 else None
        if isinstance(inner, Mapping) and all(is_missing(cell) or len(cell) == 1 for cell in cells):
            name, first = f"{name}[0]", inner
            cells = [None if is_missing(cell) else cell[0] for cell in cells]
        path = (*above, name) if name else above
        if isinstance(first, Mapping):
            records = [cell if isinstance(cell, Mapping) else {} for cell in cells]
            names = dict.fromkeys(name for record in records for name in record)
            flat |= flattened({name: [record.get(name) for record in records] for name in names}, path)
        else:
            flat[path] = cells
    return flat


def members_of_table(batches: Batches, title: str) -> list[Member]:
    """The members of a table."""
    columns = [Column(path, kind_of(cells) if cells else "", cells) for path, cells in _heads(batches).items()]

    def vectors(path: Path) -> Any:
        pieces = ((batch.get(path), len(next(iter(batch.values()), ()))) for batch in batches([path]))
        return spooled((stacked([None] * size if cells is None else cells, title) for cells, size in pieces), title)

    members = []
    for column in columns:
        take = partial(vectors, column.path) if column.kind in VECTORS and not TOKENS.match(column.name) else None
        part = f"column {column.name}" if column.name else ""
        members.append(Member(column.name, str(column), take, column.kind == "vectors", part))
    return members if any(item.take for item in members) else [*members, *_dimensions(columns, batches, title)]


def _heads(batches: Batches) -> dict[Path, list[Any]]:
    """The first cells of each column that aren't missing: of as many rows as show one that holds vectors, or each."""
    heads: dict[Path, list[Any]] = {}
    for batch in batches(None):
        for path, cells in batch.items():
            head = heads.setdefault(path, [])
            head += itertools.islice((cell for cell in cells if not is_missing(cell)), LOOKED - len(head))
        if all(heads.values()) or any(head and kind_of(head) in VECTORS for head in heads.values()):
            break
    return heads


def _dimensions(columns: Sequence[Column], batches: Batches, title: str) -> Iterator[Member]:
    """Columns of numbers as members: groups whose names count, or all that are fractions."""
    data = [column for column in columns if not METADATA.match(column.path[-1] if column.path else "")]
    groups: dict[Path, list[tuple[int, Column]]] = defaultdict(list)
    for column in data if not all(column.name.isdigit() for column in data) else ():
        if column.kind in ("numbers", "whole numbers", "") and (match := NUMBERED.match(column.path[-1])):
            groups[*column.path[:-1], match[1]].append((int(match[2]), column))
    runs = {key: sorted(group, key=lambda pair: pair[0]) for key, group in groups.items() if len(group) > 1}
    in_runs = {column.path for run in runs.values() for _, column in run}
    loose = [item for item in data if "numbers" in item.kind and item.path not in in_runs and len(item.path) == 1]
    loose = [item for item in loose if not (len(item.head) > 2 and counts_on(_floats(item.head)))]
    fractions = [item for item in loose if item.kind == "numbers" or len(set(item.head)) == 1]
    if not any(item.kind == "numbers" for item in fractions):
        fractions = loose if len(loose) == len(data) else []
    understood = not any(column.kind in ("odd", *VECTORS, *UNCLEAR) for column in columns)
    if understood and len(fractions) > 1 and len(fractions) >= max(map(len, runs.values()), default=0):
        runs["columns",] = [*enumerate(fractions)]
    for key, run in runs.items():
        names = [column.name for _, column in run]
        part = f"columns {names[0] or repr('')} to {names[-1] or repr('')}"
        part += f" ({len(names)} of them)" if run[-1][0] - run[0][0] + 1 != len(names) else ""
        take = partial(_side_by_side, batches, [column.path for _, column in run], title)
        yield Member(".".join(filter(None, key)) or "columns", part, take, False, part, tuple(names))


def _floats(cells: Any) -> Any:
    """Cells of numbers as an array; a missing one is NaN."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiu":
        return cells
    return np.array([math.nan if is_missing(cell) else float(cell) for cell in cells])


def _side_by_side(batches: Batches, paths: Sequence[Path], title: str) -> Any:
    """The matrix of columns that hold a dimension each."""

    def pieces() -> Iterator[Any]:
        for batch in batches(paths):
            nan = np.full(len(next(iter(batch.values()), ())), np.nan)
            yield np.stack([_floats(batch.get(path, nan)) for path in paths], -1)

    return spooled(pieces(), title)
