"""One walk over a value of Python: arrays, lists and dictionaries in each other, with the path to what holds vectors.

JSON, dictionaries in memory, archives of arrays and files of tensors are all such values. Wherever the walk meets rows
(a list, or a dictionary whose values are alike), they are a table; wherever it meets an array (n, d), that is a member.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.cells import as_numpy, stacked
from isonb.auditing.reading.columns import METADATA, NUMBERED, ROWS, Batches, Path, members_of_table
from isonb.auditing.reading.described import LOOKED, Member, VectorsError, named_below
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


def members_of(value: Any, title: str) -> list[Member]:
    """Whatever holds vectors in a value, by its path; a list of one list is a step of it."""
    if isinstance(value, Mapping):
        return _of_mapping({str(key): child for key, child in value.items()}, title)
    if is_array(value):
        return _of_array(value, title)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not len(value):
        return []
    if len(value) == 1 and isinstance(value[0], list | tuple) and _length(value[0]) is None:
        return [named_below("[0]", member) for member in members_of(value[0], title)]
    return members_of_rows(lambda: value, title)


def is_array(value: Any) -> bool:
    """Whether something has rows and a type, as arrays and tensors do."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


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


def refuse_pickled(title: str) -> Any:
    """What only unpickling would read is never loaded."""
    fix = "They are never loaded here, since they can run any code: save the numbers alone, as by numpy.save."
    refuse(VectorsError, f"{title} must hold numbers", "pickled objects", fix)


def _of_array(array: Any, title: str) -> list[Member]:
    shape, kind = tuple(array.shape), str(array.dtype).removeprefix("torch.")
    if names := getattr(array.dtype, "names", None):  # records of numpy
        whole = array.load() if isinstance(array, Stored) else array
        return members_of_table(lambda paths: [{(name,): whole[name] for name in names}], title)
    if kind == "object" and isinstance(array, Stored):
        return [Member("", "pickled objects", partial(refuse_pickled, title), False)]
    if len(shape) == 1 and (kind == "object" or kind.startswith(("<U", "|S", "StringDType", "str"))):
        return members_of_rows(as_numpy(rows_of_array(array)).tolist, title)
    if not shape:
        return []
    return [Member("", f"{kind} of shape {shape}", partial(rows_of_array, array), len(shape) == 2)]


def _of_mapping(children: Mapping[str, Any], title: str) -> list[Member]:
    """The members below each key; or rows, where the keys are those of rows or of columns."""
    names, data = children.get("columns"), children.get("data")
    if isinstance(names, list) and isinstance(data, list) and data and len(data[0]) == len(names):  # pandas, "split"
        return members_of_rows(lambda: (dict(zip(map(str, names), row, strict=True)) for row in data), title)
    alike = None
    if len(children) > 1:
        records = all(isinstance(child, Mapping) for child in children.values())
        alike = _of_records(children, title) if records else _of_vectors(children, title)
    if alike is not None:
        return alike
    return [named_below(key, member) for key, child in children.items() for member in members_of(child, title)]


def _of_records(children: Mapping[str, Any], title: str) -> list[Member] | None:
    """Records by an id, or the cells of columns by their row, as pandas writes them; None for records unlike."""
    first = next(iter(children.values()))
    inner = list(map(str, first))
    if not inner or not all(list(map(str, child)) == inner for child in children.values()):
        return None
    outer_runs, inner_runs = _count(list(children)), _count(inner)
    if inner_runs and not outer_runs:  # columns of cells by their row
        columns = [list(child.values()) for child in children.values()]
        return members_of_rows(
            lambda: (dict(zip(children, row, strict=True)) for row in zip(*columns, strict=True)), title
        )
    if outer_runs == inner_runs and all(_length([*child.values()]) for child in children.values()):
        return _either_way({key: list(child.values()) for key, child in children.items()}, len(inner), title)
    return members_of_rows(lambda: children.values(), title)


def _of_vectors(children: Mapping[str, Any], title: str) -> list[Member] | None:
    """Vectors of one length, each by the key of its row or of its dimension; None where keys name different things."""
    metadata = [
        key for key, child in children.items() if METADATA.match(key) and not key.isdigit() and not _are_floats(child)
    ]
    vectors = {key: child for key, child in children.items() if key not in metadata}
    lengths = {_length(child) for child in vectors.values() if child is not None}
    if len(vectors) < 2 or len(lengths) != 1 or None in lengths:
        return None
    return [*_either_way(vectors, int(lengths.pop() or 0), title), *(Member(key, "beside it") for key in metadata)]


def _length(value: Any) -> int | None:
    """How many numbers a vector holds; None for anything else."""
    if is_array(value):
        kind = str(value.dtype).removeprefix("torch.")
        number = kind.startswith(("float", "bfloat", "int", "uint", ">", "<f", "<i"))
        return value.shape[0] if len(value.shape) == 1 and number else None
    numbers = isinstance(value, list | tuple) and all(isinstance(child, int | float | None) for child in value)
    return len(value) or None if numbers else None


def _are_floats(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, float) or "float" in str(getattr(value, "dtype", ""))


def _either_way(vectors: Mapping[str, Any], length: int, title: str) -> list[Member]:
    """Vectors of one length by their keys, which may be those of rows or of dimensions: the keys must say it."""
    names = list(vectors)
    matches = [NUMBERED.match(name) for name in names]
    prefixes = {match[1] if match else None for match in matches}
    prefix = prefixes.pop() if len(prefixes) == 1 else None
    columns = rows = False
    if prefix is None:
        rows = len(names) >= length
    elif DIMENSION.fullmatch(prefix) or (prefix and LETTER.fullmatch(prefix) and len(names) <= length):
        columns = True
    else:
        rows = len(prefix.rstrip("_- .")) > 1 or (prefix == "" and (len(names) > length or not _count(names)))
    if columns:
        names.sort(key=lambda name: int(name[len(prefix or "") :]))

    def stack(turned: bool) -> Any:
        cells = (as_numpy(rows_of_array(vectors[name])) if is_array(vectors[name]) else vectors[name] for name in names)
        if turned:
            return stacked(cells, title).T
        return spooled((stacked([cell], title) for cell in cells), title)

    sure, part = columns or rows, f"columns {names[0]} to {names[-1]}"
    by_key, by_dimension = ("", "") if sure else KEYS
    down = Member(by_key, f"{len(names)} vectors of {length}", partial(stack, False), False, KEYS[0], (*names,))
    across = Member(by_dimension, f"{len(names)} {part}", partial(stack, True), False, part, (*names,))
    return [*[across] * (not rows), *[down] * (not columns)]


def _count(names: Sequence[str]) -> bool:
    """Whether keys are the numbers of rows: from 0 or from 1 on."""
    return all(map(str.isdigit, names)) and [*map(int, names)] in (
        [*range(len(names))],
        [*range(1, len(names) + 1)],
    )


def members_of_rows(rows: Callable[[], Iterable[Any]], title: str) -> list[Member]:
    """The members of rows: vectors, records, or lists of unlike things, whose places are then their columns."""
    head = list(itertools.islice(rows(), LOOKED))
    if _are_mixed(head):
        placed = _batches(lambda: ({str(i): cell for i, cell in enumerate(row or ())} for row in rows()))
        return members_of_table(placed, title, named=False)
    return members_of_table(_batches(rows), title)


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
                        batch.setdefault(path, [None] * len(some))
                    if path in batch:
                        batch[path][i] = cell
            yield batch

    return batches


def leaves(row: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The cells of a row by their path; a list of one record is a step of it."""
    if isinstance(row, Mapping):
        for key, child in row.items():
            yield from leaves(child, (*path, str(key)))
    elif isinstance(row, list | tuple) and len(row) == 1 and isinstance(row[0], Mapping):
        yield from leaves(row[0], (*path[:-1], f"{path[-1] if path else ''}[0]"))
    else:
        yield path, row
