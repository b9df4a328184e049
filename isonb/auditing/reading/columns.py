"""The columns of a table: which of them hold vectors, and which numbers side by side are dimensions. One rule for all.

A table is any source of rows in batches, each a mapping from the path of a column to its cells. A column that holds a
vector a cell is one member. Without such a column, columns of numbers are the dimensions: those whose names count
(dim_0, dim_1, ...), else all fractions, if nothing beside them may hold the vectors in a way that isn't known. Ids,
labels, whole numbers beside fractions and numbers of rows are never a dimension.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from isonb.auditing.reading.cells import as_numpy, coat_of, is_missing, looks_encoded, stacked, vector_in
from isonb.auditing.reading.described import LOOKED, Member, counts_on
from isonb.auditing.reading.spool import spooled

Path = tuple[str, ...]  # of a column: its name, and those of the fields inside it
Batches = Callable[[Sequence[Path] | None], Iterable[Mapping[Path, Any]]]  # of these columns, or of all
ROWS = 4096  # of a batch
NUMBERED = re.compile(r"^(.*?)(\d+)$")
# Names of columns that say which row it is, or what was said of it.
ROW = "ids?|idx|index|key|uu?id|pk|row|rownum|split|fold|time|timestamp|year|level_\\d+|index_level_\\d+__"
SAID = "labels?|targets?|class|category|cluster"
BESIDE = re.compile(rf"(^|.*[_\- .])({ROW}|{SAID})$|^$|^Unnamed: \d+$", re.IGNORECASE)
TOKENS = re.compile(
    r"(^|.*[_.])(input_ids|attention_mask|token_type_ids|special_tokens_mask|position_ids|labels|tokens)$"
)
POOL = "Each row is an array, as of tokens: pool it."
BYTES = "Say what the bytes are, as by numpy.frombuffer, and save the numbers."


@dataclass(frozen=True)
class Column:
    """What the first cells of a column show.

    ``kind``: "vector", "number", "text"; "arrays" of tokens, "bytes" and "odd" hold something that isn't understood;
    "" are missing values alone. ``packed``: the type of numbers in bytes. ``width``: how many numbers a vector has.
    """

    path: Path
    kind: str
    type: str
    whole: bool = False
    head: Any = None
    packed: str = ""
    width: int = 0

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def last(self) -> str:
        return self.path[-1] if self.path else ""


def members_of_table(
    batches: Batches, what: str, types: Mapping[Path, str] | None = None, named: bool = True
) -> list[Member]:
    """The members of a table. ``types``: what its columns say they are; ``named``: its names say something."""
    columns = [_column(path, cells, (types or {}).get(path, "")) for path, cells in _head(batches).items()]
    named = named and not all(one.name.isdigit() or BESIDE.match(one.name) for one in columns)

    def cells_of(path: Path) -> Iterator[Any]:
        for batch in batches([path]):
            size = len(next(iter(batch.values()), ()))
            yield listed(batch[path]) if path in batch else [None] * size

    def of_cells(path: Path, packed: str) -> Any:
        return spooled((stacked(cells, what, packed) for cells in cells_of(path)), what)

    def raw(path: Path, packed: str) -> Any:
        rows = [vector_in(cell, packed) for cells in cells_of(path) for cell in cells if not is_missing(cell)]
        return np.stack(rows) if len({row.shape for row in rows}) == 1 else rows

    members = []
    for one in columns:
        take = partial(of_cells, one.path, one.packed) if one.kind == "vector" and not TOKENS.match(one.name) else None
        raws = partial(raw, one.path, one.packed) if one.kind in ("vector", "arrays") else None
        part = f"column {one.name}" + (f" ({one.type})" if one.packed else "") if one.name else ""
        refusal: Any = {"arrays": (POOL, "tokens of texts", {"d": one.width}), "bytes": (BYTES, "", {})}.get(one.kind)
        members.append(Member(one.name, one.type, take, not one.whole, raws, part, refusal=refusal))
    if any(member.take for member in members):
        return members
    return [*members, *_dimensions(columns, batches, what, named)]


def listed(cells: Any) -> Any:
    """Cells of Arrow, or those that a list holds."""
    if not hasattr(cells, "combine_chunks"):
        return cells
    column = cells.combine_chunks()
    shape = getattr(column.type, "shape", None)
    values = getattr(column, "storage", column).to_pandas()
    return values if shape is None else [cell if cell is None else np.reshape(cell, shape) for cell in values]


def _numbers(cells: Any, size: int) -> Any:
    """Cells of numbers as floats; a missing one is NaN."""
    if cells is None:
        return np.full(size, np.nan)
    if not isinstance(cells, list):
        values = cells.to_numpy() if hasattr(cells, "combine_chunks") else cells
        return values if values.dtype.kind in "fiu" else np.array([*map(_float, values)])
    return np.array([*map(_float, cells)])


def _float(cell: Any) -> float:
    return float("nan") if is_missing(cell) else float(cell)


def _head(batches: Batches) -> dict[Path, list[Any]]:
    """The first cells of each column that aren't missing: of as many rows as show one that holds vectors, or each."""
    head: dict[Path, list[Any]] = {}
    for batch in batches(None):
        for path, cells in batch.items():
            there = head.setdefault(path, [])
            if len(there) < LOOKED:
                found = (cell for cell in listed(cells) if not is_missing(cell))
                there += itertools.islice(found, LOOKED - len(there))
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
        head = np.array([*map(_float, cells)])
        integer = all(isinstance(cell, int | np.integer) for cell in cells) or "int" in type_
        return Column(path, "number", type_ or ("int" if integer else "float"), integer, head)
    coat = coat_of(cells)
    if coat == "bytes":
        return Column(path, coat, f"{type_ or 'binary'} of {len(first)} bytes")
    if coat == "arrays":
        deepest = max(map(vector_in, cells), key=np.ndim)
        width = np.shape(deepest if deepest.ndim > 1 else as_numpy(deepest[0]))[-1]
        return Column(path, coat, type_ or f"arrays of shape {deepest.shape}", width=width)
    if coat:
        packed = coat.partition(" of ")[2] if coat.startswith(("base64", "bytes")) else ""
        told = coat if packed or coat.startswith("text") else f"list of {np.size(vector_in(first))} numbers"
        return Column(path, "vector", type_ if type_ and not packed else told, coat == "whole numbers", packed=packed)
    if isinstance(first, str):
        return Column(path, "odd" if looks_encoded(cells) else "text", type_ or "text")
    kind = "odd" if hasattr(first, "__len__") else "text"
    size = f" of {len(first)}" if isinstance(first, list | tuple) else ""
    return Column(path, kind, type_ or f"{type(first).__name__}{size}")


def _dimensions(columns: Sequence[Column], batches: Batches, what: str, named: bool) -> Iterator[Member]:
    """Columns of numbers as members: groups whose names count, or all that are fractions."""
    numbers = [one for one in columns if one.kind == "number" or (one.kind == "" and NUMBERED.match(one.name))]
    numbers = [one for one in numbers if not BESIDE.match(one.last)]
    counted: dict[tuple[str, ...], list[tuple[int, Column]]] = {}
    for one in numbers if named else ():
        if match := NUMBERED.match(one.last):
            counted.setdefault((*one.path[:-1], match[1]), []).append((int(match[2]), one))
    groups = {prefix: [one for _, one in sorted(group, key=lambda two: two[0])] for prefix, group in counted.items()}
    groups = {prefix: group for prefix, group in groups.items() if len(group) > 1}
    in_groups = {one.path for group in groups.values() for one in group}
    loose = [one for one in numbers if one.path not in in_groups and len(one.path) == 1]
    loose = [one for one in loose if one.kind == "number" and not (len(one.head) > 2 and counts_on(one.head))]
    fractions = [one for one in loose if not one.whole or (one.head == one.head[0]).all()]
    least = max(map(len, groups.values()), default=0)
    if least <= len(fractions) and not any(one.kind in ("odd", "arrays", "bytes", "vector") for one in columns):
        varied = [one for one in fractions if not one.whole]
        alone = len(loose) == len(columns) - sum(bool(BESIDE.match(one.last)) for one in columns) and not groups
        chosen = fractions if varied else loose if alone else []
        if len(chosen) > 1:
            groups[("columns",)] = chosen
    for prefix, group in groups.items():
        names = [one.name for one in group]
        first, last = (_last_name(name) for name in (names[0], names[-1]))
        part = f"columns {first} to {last}"
        numbered = [int(match[2]) for name in names if (match := NUMBERED.match(name))]
        if len(numbered) == len(names) and prefix != ("columns",) and numbered[-1] - numbered[0] + 1 != len(names):
            part += f" ({len(names)} of them)"
        paths = [one.path for one in group]
        name = ".".join(filter(None, prefix)) or "columns"
        told = f"{len(names)} columns of numbers ({first} to {last})"
        take = partial(_beside, batches, paths, what)
        yield Member(name, told, take, False, part=part, columns=tuple(names))


def _last_name(name: str) -> str:
    return name or "''"


def _beside(batches: Batches, paths: Sequence[Path], what: str) -> Any:
    """The matrix of columns that hold a dimension each."""

    def pieces() -> Iterator[Any]:
        for batch in batches(paths):
            size = len(next(iter(batch.values()), ()))
            columns = [_numbers(batch.get(path), size) for path in paths]
            yield np.stack(columns, -1).astype(np.result_type("float32", *columns), copy=False)

    return spooled(pieces(), what)
