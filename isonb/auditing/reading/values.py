"""One walk over a value of Python: arrays, lists and dictionaries in each other, with the path to what holds vectors.

JSON, dictionaries in memory, archives of arrays and files of tensors are all such values. Wherever the walk meets rows
(a list, or a dictionary whose values are alike), they are a table; wherever it meets an array (n, d), that is a member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading.cells import kind_of
from isonb.auditing.reading.columns import METADATA, NUMBERED, VECTORS, columns_of_rows, members_of_table
from isonb.auditing.reading.members import Member, each_once
from isonb.auditing.rows import RowSource, changed

DIMENSION = re.compile(r"(dim|dimension|feat|feature|col|column|component|pc|emb|embedding)s?[_\- .]?", re.IGNORECASE)


def members_of(value: Any, title: str) -> list[Member]:
    """Whatever holds vectors in a value, by its path; a list of one list is a step of it."""
    if isinstance(value, Mapping):
        each_once([*map(str, value)], title)
        return _of_mapping({str(key): child for key, child in value.items()}, title)
    if is_array(value):
        return _of_array(value, title)
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not len(value):
        return []
    if len(value) == 1 and isinstance(value[0], list | tuple) and value[0] and isinstance(value[0][0], list | tuple):
        return [member.below("[0]") for member in members_of(value[0], title)]
    return members_of_table(columns_of_rows(lambda: value), title)


def is_array(value: Any) -> bool:
    """Whether something has rows and a type, as arrays and tensors do."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _of_array(array: Any, title: str) -> list[Member]:
    shape, kind = tuple(array.shape), str(array.dtype).removeprefix("torch.")
    if names := getattr(array.dtype, "names", None):  # records of numpy
        return members_of_table(lambda paths: [{(name,): array[name] for name in names}], title)
    if len(shape) == 1 and kind.startswith(("object", "<U", "|S", "StringDType", "str")):
        return members_of_table(columns_of_rows(array.tolist), title)
    take = partial(_rows_of, array)
    return [Member("", f"{kind} of shape {shape}", take, len(shape) == 2)] if shape else []


def _rows_of(array: Any) -> Any:
    """An array whose rows can be read: sparse ones become dense then, and what is masked is NaN."""
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


def _of_mapping(children: Mapping[str, Any], title: str) -> list[Member]:
    """Vectors or records by the key of their row, else the members below each key.

    What only rows or only dimensions can be called is asked about, and so are cells by the number of their row.
    """
    values = [*children.values()]
    if len(values) > 1 and all(isinstance(child, Mapping) for child in values):
        inner = {str(key) for child in values for key in child}
        if inner and all(map(str.isdigit, inner)):
            return [Member("", f"cells by the number of their row, of {', '.join([*children][:3])}, ...")]
        members = members_of_table(columns_of_rows(lambda: values), title)
        if any(member.take and (member.certain or member.columns) for member in members):
            return members
    lengths = {_length(child) for child in values}
    if len(values) > 1 and len(lengths) == 1 and None not in lengths and not any(map(METADATA.match, children)):
        length = lengths.pop() or 0
        prefixes = {match[1] if (match := NUMBERED.match(key)) else "rows" for key in children}
        dimensions = any(map(DIMENSION.fullmatch, prefixes))
        if dimensions or (len(values) <= length and all(len(prefix.rstrip("_- .")) < 2 for prefix in prefixes)):
            return [Member("", f"{len(values)} lists of {length} numbers by key, which may be rows or dimensions")]
        (member,) = members_of_table(columns_of_rows(lambda: values), title)
        return [Member("", f"{len(values)} vectors", member.take, False, "one vector a key", tuple(children))]
    return [member.below(key) for key, child in children.items() for member in members_of(child, title)]


def _length(value: Any) -> int | None:
    """How many numbers a vector holds; None for anything else."""
    if is_array(value):
        flat = len(value.shape) == 1
    else:
        flat = isinstance(value, list) and len(value) > 0 and isinstance(value[0], int | float)
    return len(value) if flat and kind_of([value]) in VECTORS else None
