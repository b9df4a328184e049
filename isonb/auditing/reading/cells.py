"""One cell as a vector: a list, an array, a tensor, text of numbers, or packed floats as bytes or base64.

Text may be JSON, what numpy and torch print, and the text of pgvector and of Postgres arrays.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.spool import missing_rows
from isonb.errors import DtypeError, ShapeError

VECTOR = re.compile(r"[\w.]{0,12}[\[{(<].*[\]})>]", re.DOTALL)  # in brackets, after a word such as "tensor" or not
SCALAR = re.compile(r"\b[A-Za-z_][\w.]*\('?([^()\[\]',]*)'?\)")  # np.float32(0.1), Decimal('0.1')
BODY = re.compile(r"(?:[A-Za-z_][\w.]*\s*(?=[\[{(<]))?[\[{(<]*([^\[\]{}()<>]*)[\]})>]*")
ODD = ", dtype=", ", device=", ", shape=", ", grad_fn="  # what follows the numbers when an array is printed
NUMBER = r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Infinity|null|None)"
DECIMAL = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")  # with a comma
BARE = 3  # numbers of a text without brackets that make it a vector
BASE64 = re.compile(r"[A-Za-z0-9+/]{10,}={0,2}")
ENCODED = 40  # letters without a blank, from which text is a code and no word
USUAL = 1e-8, 1e5  # sizes of numbers of vectors: bytes that aren't floats are far outside when they are read as such
PACKED = {"float32": "<f4", "float64": "<f8"}  # of half of the bits any bytes would do


def is_missing(cell: Any) -> bool:
    """None, NaN, blank text or an empty list."""
    if isinstance(cell, str):
        return not cell.strip()
    nan = isinstance(cell, float) and math.isnan(cell)
    return cell is None or nan or (getattr(cell, "ndim", 1) > 0 and hasattr(cell, "__len__") and len(cell) == 0)


def as_floats(cells: Any) -> Any:
    """Cells of numbers, of Arrow or listed, as an array; a missing one is NaN."""
    values = cells.to_numpy() if hasattr(cells, "combine_chunks") else cells
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values
    return np.array([math.nan if is_missing(cell) else float(cell) for cell in values])


def as_numpy(value: Any) -> Any:
    """A tensor or what numpy takes as an array; floats of a tensor but float64 as float32; nested objects as one."""
    if isinstance(value, torch.Tensor):
        dense = value.to_dense() if value.layout != torch.strided else value
        floats = dense.float() if dense.dtype in (torch.bfloat16, torch.float16) else dense
        return floats.detach().resolve_neg().resolve_conj().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise ShapeError("a cell must hold one vector; got lists of several lengths. Keep one of them.") from error
    if array.dtype == object and array.ndim and not all(isinstance(item, str | bytes) for item in array.flat):
        numbers = [float("nan") if item is None else as_numpy(item) for item in array]
        return np.asarray(numbers) if len({np.shape(item) for item in numbers}) < 2 else array
    return array


def vector_in(cell: Any, packed: str = "") -> Any:
    """The numbers of a cell as an array; axes of length 1 go. ``packed``: the type of those in bytes or base64."""
    if packed:
        return np.frombuffer(_decoded(cell) if isinstance(cell, str) else cell, PACKED[packed])
    if isinstance(cell, str):
        return np.asarray(numbers_in(cell))
    array = as_numpy(cell)
    return array.reshape([size for size in array.shape if size != 1]) if array.ndim > 1 else array


def _decoded(cell: str) -> bytes:
    try:
        return base64.b64decode(cell, validate=True)
    except binascii.Error as error:
        must = "every cell must be base64, as the first is"
        raise DtypeError(f"{must}; got {cell[:40]!r}. Correct or drop it.") from error


def encoding_of(cells: Sequence[Any]) -> str:
    """How these cells, none of them missing, hold vectors: "numbers", "text", "base64 of float32", ...; "" for none.

    "arrays" of tokens and "bytes" of an unknown type hold numbers that have to be made vectors first.
    """
    first = cells[0]
    if isinstance(first, str):
        if looks_like_vector(first):
            return "text of numbers"
        if not all(isinstance(cell, str) and len(cell) % 4 == 0 and BASE64.fullmatch(cell) for cell in cells):
            return ""
        type_ = _packed_type([base64.b64decode(cell) for cell in cells])
        return f"base64 of {type_}" if type_ else ""
    if isinstance(first, bytes | bytearray):
        type_ = _packed_type([bytes(cell) for cell in cells])
        return f"bytes of {type_}" if type_ else "bytes"
    if not hasattr(first, "__len__") or isinstance(first, dict) or not len(first):
        return ""
    try:
        arrays = [vector_in(cell) for cell in cells]
    except (ShapeError, ValueError, TypeError):
        return ""
    if any(item.dtype.kind not in "fiubc" for item in arrays):
        return "arrays" if all(_is_of_numbers(item) for item in arrays) else ""
    if any(item.ndim > 1 for item in arrays):
        return "arrays"
    return "whole numbers" if all(item.dtype.kind in "iub" for item in arrays) else "numbers"


def _is_of_numbers(array: Any) -> bool:
    """Whether an array of objects is of lists of numbers."""
    nested = all(isinstance(item, list | tuple | np.ndarray) for item in array.flat)
    return array.dtype == object and nested and all(as_numpy(item).dtype.kind in "fiu" for item in array.flat)


def _packed_type(cells: Sequence[bytes]) -> str:
    """The type of numbers that bytes are; "" where no type gives numbers of a usual size."""
    for name, code in PACKED.items():
        size = np.dtype(code).itemsize
        if len({len(cell) for cell in cells}) == 1 and len(cells[0]) % size == 0 and len(cells[0]) >= 2 * size:
            values = np.abs(np.frombuffer(b"".join(cells), code))
            sizes = values[values > 0]
            if len(sizes) and np.isfinite(values).all() and USUAL[0] < sizes.min() and sizes.max() < USUAL[1]:
                return name
    return ""


def looks_encoded(text: str) -> bool:
    """Whether text is a code that holds something, such as numbers in an encoding that isn't known."""
    text = text.strip()
    bracketed = VECTOR.fullmatch(text) is not None and re.search(r"\d", text) is not None
    return bracketed or (len(text) >= ENCODED and not re.search(r"\s|://", text))


def looks_like_vector(text: str) -> bool:
    """Whether text reads as two numbers or more in brackets, or several without."""
    bracketed = VECTOR.fullmatch(text.strip()) is not None
    if bracketed and "..." in text:
        return True
    try:
        numbers = numbers_in(text)
    except DtypeError:
        return False
    fractions = any(number != int(number) for number in numbers if math.isfinite(number))
    return len(numbers) > 1 and (bracketed or (len(numbers) >= BARE and fractions))


def numbers_in(cell: str) -> list[float]:
    """The numbers of a cell, in brackets or without.

    >>> numbers_in("[0.5, -1]"), numbers_in("2.5 1"), numbers_in("tensor([1., 2.], dtype=torch.float16)")
    ([0.5, -1.0], [2.5, 1.0], [1.0, 2.0])
    >>> numbers_in("[np.float32(0.5), np.float32(2.0)]"), numbers_in("0,5; 1,25")
    ([0.5, 2.0], [0.5, 1.25])

    Raises DtypeError for other text, for numbers that may be read in two ways, and for what numpy has cut by "...".
    """
    two_commas = "." not in cell and re.search(r",\s", cell) and re.search(r",\S", cell)  # "0,5, 1,5"
    try:
        if not two_commas and isinstance(value := json.loads(cell), list):
            return [float("nan") if item is None else float(item) for item in value]
    except (ValueError, TypeError):
        pass
    body = SCALAR.sub(r"\1", cell.strip())
    for mark in ODD:
        body = body.partition(mark)[0]
    body = match[1].strip() if (match := BODY.fullmatch(body)) else ""
    parts = re.split(r"\s*;\s*", body) if ";" in body else re.split(r"\s*,\s*", body) if "," in body else body.split()
    if ";" in body and all(DECIMAL.fullmatch(part) or "," not in part for part in parts):
        parts = [part.replace(",", ".") for part in parts]
    if parts and not two_commas and all(re.fullmatch(NUMBER, part) for part in parts):
        return [float("nan") if part in ("null", "None") else float(part) for part in parts]
    why = "numpy has cut it by '...' when it was printed" if "..." in cell else "it is no list of numbers"
    why = "are these decimal commas?" if DECIMAL.search(cell) and "." not in cell else why
    shown = cell if len(cell) < 60 else f"{cell[:40]}...{cell[-12:]}"
    must = "a cell of text must hold a vector"
    raise DtypeError(f"{must}; got {shown!r}: {why}. Keep lists, not printed arrays.") from None


def stacked(cells: Iterable[Any], title: str, packed: str = "") -> Any:
    """Cells that hold a vector each as a matrix; a missing one becomes NaN, and (m, 0) where all are missing.

    Raises ShapeError for vectors of several lengths.
    """
    rows = [None if is_missing(cell) else vector_in(cell, packed) for cell in cells]
    present = [row for row in rows if row is not None]
    shapes = Counter(row.shape for row in present).most_common()
    if len(shapes) > 1:
        got = ", ".join(f"{count:,} of length {'x'.join(map(str, shape)) or 0}" for shape, count in shapes[:4])
        odd = next(i for i, row in enumerate(rows) if row is not None and row.shape != shapes[0][0])
        must = f"every row of {title} must hold a vector of one length"
        refuse(ShapeError, must, f"{got}, the first in row {odd}", "Leave the others out, or pool what is longer.")
    if not present:
        return np.empty((len(rows), 0), "float32")
    values = np.stack(present).reshape(len(present), -1)
    if len(present) == len(rows):
        return values
    whole = missing_rows(len(rows), values.shape[1], values.dtype)
    whole[[row is not None for row in rows]] = values
    return whole
