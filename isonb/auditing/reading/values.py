"""One walk over a value of Python: arrays, lists and dictionaries in each other, with the path to what holds vectors.

JSON, dictionaries in memory, archives of arrays and files of tensors are all such values. Wherever the walk meets rows
(a list, or a dictionary whose values are alike), they are a table; wherever it meets an array (n, d), that is a member.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.reading.columns import BESIDE, NUMBERED, ROWS, Batches, Path, members_of_table
from isonb.auditing.reading.described import LOOKED, Member, named_below
from isonb.auditing.reading.rows import RowSource, changed
from isonb.auditing.reading.spool import spooled

DIMENSION = re.compile(r"(dim|dimension|feat|feature|col|column|component|pc|emb|embedding)s?[_\- .]?", re.IGNORECASE)
LETTER = re.compile(r"[a-z]?[_\- .]?", re.IGNORECASE)  # which may count dimensions as well as rows
KEYS = "one vector a key", "one dimension a key"


@dataclass(frozen=True)
class Stored:
    """An array that is read when it is needed."""

    shape: tuple[int, ...]
    dtype: Any
    load: Callable[[], Any]


def members_of(value: Any, what: str) -> list[Member]:
    """Whatever holds vectors in a value, by its path; a list of one list is a step of it."""
    if isinstance(value, Mapping):
        return _of_mapping({str(key): one for key, one in value.items()}, what)
    if is_array(value):
        return _of_array(value, what)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not len(value):
        return []
    if len(value) == 1 and isinstance(value[0], list | tuple) and _length(value[0]) is None:
        return [named_below("[0]", member) for member in members_of(value[0], what)]
    return members_of_rows(lambda: value, what)


def is_array(value: Any) -> bool:
    """Whether something has rows and a type, as arrays and tensors do."""
    return isinstance(value, Stored) or (hasattr(value, "shape") and hasattr(value, "dtype"))


def rows_of_array(array: Any) -> Any:
    """An array whose rows can be read: sparse ones become dense then, and what is masked is NaN."""
    if isinstance(array, Stored):
        return rows_of_array(array.load())
    if isinstance(array, torch.Tensor) and array.layout != torch.strided:
        flat: torch.Tensor = array.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
        every = torch.arange(len(flat))
        return RowSource(flat.shape, lambda rows: flat.index_select(0, every[rows]).to_dense())
    if hasattr(array, "tocsr") and hasattr(array, "nnz"):  # scipy, sparse
        return changed(array.tocsr(), lambda rows: rows.toarray())
    if isinstance(array, np.ma.MaskedArray) and array.dtype.kind in "fiu":
        wide = array.dtype if array.dtype.kind == "f" else "float64"
        return changed(array, lambda rows: rows.astype(wide).filled(float("nan")))
    return array if isinstance(array, torch.Tensor) else np.asarray(array)


def _of_array(array: Any, what: str) -> list[Member]:
    shape, kind = tuple(array.shape), str(array.dtype).removeprefix("torch.")
    names = getattr(array.dtype, "names", None)
    if names:  # records of numpy
        whole = array.load() if isinstance(array, Stored) else array
        return members_of_table(lambda paths: [{(name,): whole[name] for name in names}], what)
    if kind == "object" and isinstance(array, Stored):
        fix = "They are never loaded here, since they can run any code. If you trust the file:"
        return [Member("", "pickled objects", refusal=(fix, "pickled array", {}))]
    if len(shape) == 1 and (kind == "object" or kind.startswith(("<U", "|S", "StringDType", "str"))):
        return members_of_rows(as_numpy(rows_of_array(array)).tolist, what)
    if not shape:
        return []
    return [Member("", f"{kind} of shape {shape}", partial(rows_of_array, array), len(shape) == 2)]


def _of_mapping(children: Mapping[str, Any], what: str) -> list[Member]:
    """The members below each key; or rows, where the keys are those of rows or of columns."""
    if list(map(type, children.values())).count(list) and {"columns", "data"} <= set(children):  # pandas, "split"
        names, data = children["columns"], children["data"]
        if isinstance(names, list) and data and len(data[0]) == len(names):
            return members_of_rows(lambda: (dict(zip(map(str, names), row, strict=True)) for row in data), what)
    alike = _keyed(children, what)
    if alike is not None:
        return alike
    return [named_below(key, member) for key, one in children.items() for member in members_of(one, what)]


def _keyed(children: Mapping[str, Any], what: str) -> list[Member] | None:
    """The table whose rows or columns have the keys as their names; None where the keys name different things."""
    if len(children) > 1 and all(isinstance(one, Mapping) for one in children.values()):
        return _keyed_records(children, what)
    beside = [key for key, one in children.items() if BESIDE.match(key) and not key.isdigit() and not _are_floats(one)]
    vectors = {key: one for key, one in children.items() if key not in beside}
    lengths = {_length(one) for one in vectors.values() if one is not None}
    if len(vectors) < 2 or len(lengths) != 1 or None in lengths:
        return None
    (length,) = lengths
    left = [Member(key, "beside it") for key in beside]
    return [*_either_way(vectors, int(length or 0), what), *left]


def _length(value: Any) -> int | None:
    """How many numbers a vector holds; None for anything else."""
    if is_array(value):
        kind = str(value.dtype).removeprefix("torch.")
        number = kind.startswith(("float", "bfloat", "int", "uint", ">", "<f", "<i")) and not kind.startswith("<U")
        return value.shape[0] if len(value.shape) == 1 and number else None
    if isinstance(value, list | tuple) and value and all(isinstance(one, int | float | None) for one in value):
        return len(value)
    return None


def _are_floats(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, float) or "float" in str(getattr(value, "dtype", ""))


def _either_way(vectors: Mapping[str, Any], length: int, what: str) -> list[Member]:
    """Vectors of one length by their keys, which may be those of rows or of dimensions: the keys must say it."""
    names = list(vectors)
    matches = [NUMBERED.match(name) for name in names]
    prefixes = {match[1] if match else None for match in matches}
    (prefix,) = prefixes if len(prefixes) == 1 else (None,)
    columns = prefix is not None and (
        DIMENSION.fullmatch(prefix) is not None
        or (bool(prefix) and LETTER.fullmatch(prefix) is not None and len(names) <= length)
    )
    rows = not columns and (
        (prefix is None and len(names) >= length)
        or (prefix is not None and len(prefix.rstrip("_- .")) > 1)
        or (prefix == "" and (len(names) > length or not _counts(names)))
    )
    if columns:
        assert prefix is not None
        order = sorted(names, key=lambda name: int(name[len(prefix) :]))
        return [_across(vectors, order, length, "")]
    take = partial(_down, vectors, what)
    down = Member(KEYS[0], f"{len(names)} vectors of {length}", take, False, part=KEYS[0], columns=tuple(names))
    return [replace(down, name="")] if rows else [down, _across(vectors, names, length, KEYS[1])]


def _counts(names: Sequence[str]) -> bool:
    return [*map(int, names)] in ([*range(len(names))], [*range(1, len(names) + 1)])


def _across(vectors: Mapping[str, Any], names: Sequence[str], length: int, called: str) -> Member:
    def take() -> Any:
        columns = (vectors[name] for name in names)
        return np.stack([np.full(length, np.nan) if one is None else _as_floats(one) for one in columns], -1)

    told = f"{len(names)} columns of numbers ({names[0]} to {names[-1]})"
    return Member(called, told, take, False, part=f"columns {names[0]} to {names[-1]}", columns=tuple(names))


def _down(vectors: Mapping[str, Any], what: str) -> Any:
    empty = np.empty((1, 0))
    return spooled((empty if one is None else _as_floats(one).reshape(1, -1) for one in vectors.values()), what)


def _as_floats(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return np.array([float("nan") if one is None else one for one in value], "float64")
    return as_numpy(rows_of_array(value))


def _keyed_records(children: Mapping[str, Any], what: str) -> list[Member] | None:
    """Records by an id, or the cells of columns by their row, as pandas writes them."""
    first = next(iter(children.values()))
    inner = list(map(str, first))
    if not inner or not all(len(one) == len(first) and list(map(str, one)) == inner for one in children.values()):
        return None
    numbers = all(isinstance(cell, int | float | None) for one in children.values() for cell in one.values())
    if numbers:
        outer_runs, inner_runs = (all(map(str.isdigit, names)) and _counts(names) for names in (list(children), inner))
        if inner_runs and not outer_runs:  # columns of cells by their row
            return members_of_rows(lambda: map(dict, map(partial(zip, children), _turned(children))), what)
        if outer_runs and not inner_runs:
            return members_of_rows(lambda: children.values(), what)
        return _either_way({key: list(one.values()) for key, one in children.items()}, len(inner), what)
    if all(map(str.isdigit, inner)) and _counts(inner):  # columns
        columns = {key: list(one.values()) for key, one in children.items()}
        return [named_below(key, one) for key, column in columns.items() for one in members_of(column, what)]
    return members_of_rows(lambda: children.values(), what)


def _turned(children: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*(one.values() for one in children.values()), strict=True)


def members_of_rows(rows: Callable[[], Iterable[Any]], what: str) -> list[Member]:
    """The members of rows: vectors, records, or lists of unlike things, whose places are then their columns."""
    head = list(itertools.islice(rows(), LOOKED))
    if _are_mixed(head):
        placed = _batches(lambda: ({str(i): cell for i, cell in enumerate(row or ())} for row in rows()))
        return members_of_table(placed, what, named=False)
    return members_of_table(_batches(rows), what)


def _are_mixed(rows: Sequence[Any]) -> bool:
    """Whether rows are lists of numbers with an id, a label or a text among them."""
    rows = [row for row in rows if row is not None]
    if not rows or not all(isinstance(row, list | tuple) for row in rows) or len({len(row) for row in rows}) > 1:
        return False
    kinds = set()
    for column in zip(*rows, strict=True):
        if all(isinstance(cell, int) for cell in column):
            kinds |= {"int"} if len(set(column)) > 1 and not isinstance(column[0], bool) else set()
            continue
        number = all(isinstance(cell, int | float | None) for cell in column)
        kinds.add("float" if number else "text" if isinstance(column[0], str) else "other")
    return len(kinds) > 1


def _batches(rows: Callable[[], Iterable[Any]]) -> Batches:
    def batches(paths: Sequence[Path] | None) -> Iterator[Mapping[Path, list[Any]]]:
        every = iter(rows())
        while some := list(itertools.islice(every, ROWS)):
            batch: dict[Path, list[Any]] = {path: [None] * len(some) for path in paths or ()}
            for i, row in enumerate(some):
                for path, cell in leaves(row):
                    if paths is None:
                        batch.setdefault(path, [None] * len(some))[i] = cell
                    elif path in batch:
                        batch[path][i] = cell
            yield batch

    return batches


def leaves(row: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The cells of a row by their path; a list of one record is a step of it."""
    if isinstance(row, Mapping):
        for key, one in row.items():
            yield from leaves(one, (*path, str(key)))
    elif isinstance(row, list | tuple) and len(row) == 1 and isinstance(row[0], Mapping):
        yield from leaves(row[0], (*path[:-1], f"{path[-1] if path else ''}[0]"))
    else:
        yield path, row
