"""One cell as a vector: a list, an array, a tensor, or text of numbers as JSON, numpy, torch and Postgres write it."""

from __future__ import annotations

import contextlib
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from isonb.errors import DtypeError, ShapeError, fail
from isonb.runtime.files import DiskError

VECTOR = re.compile(r"[\w.]{0,12}[\[{(<].*[\]})>]", re.DOTALL)  # in brackets, after a word such as "tensor" or not
SCALAR = re.compile(r"\b[A-Za-z_][\w.]*\('?([^()\[\]',]*)'?\)")  # np.float32(0.1), Decimal('0.1')
NAME, OPEN, CLOSE = (
    r"(?:[A-Za-z_][\w.]*\s*(?=[\[{(<]))?",
    r"[\[{(<]*",
    r"(?:\]?,\s*(?:dtype|device|grad_fn)=.*|[\]})>]*)",
)
BODY = re.compile(NAME + OPEN + r"([^\[\]{}()<>]*?)" + CLOSE, re.DOTALL)
DECIMAL = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")  # with a comma
BARE = 3  # numbers of a text without brackets that make it a vector
CODE = 40  # letters without a blank, from which text is a code and no word
BASE64 = re.compile(r"[A-Za-z0-9+/]{22,}={0,2}")  # of four floats or more


def is_missing(cell: Any) -> bool:
    """None, NaN, blank text or an empty list."""
    if isinstance(cell, str):
        return not cell.strip()
    nan = isinstance(cell, float) and math.isnan(cell)
    return cell is None or nan or (getattr(cell, "ndim", 1) > 0 and hasattr(cell, "__len__") and len(cell) == 0)


def as_numpy(value: Any) -> Any:
    """A tensor or what numpy takes as an array; floats of a tensor but float64 as float32; nested objects as one."""
    if isinstance(value, torch.Tensor):
        dense = value.to_dense() if value.layout != torch.strided else value
        floats = dense.float() if dense.dtype in (torch.bfloat16, torch.float16) else dense
        return floats.detach().resolve_neg().resolve_conj().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        fail(ShapeError, "a cell must hold one vector", "lists of several lengths", "Keep one of them.")
    if array.dtype == object and array.ndim and not all(isinstance(item, str | bytes) for item in array.flat):
        numbers = [float("nan") if item is None else as_numpy(item) for item in array]
        return np.asarray(numbers) if len({np.shape(item) for item in numbers}) < 2 else array
    return array


def vector_in(cell: Any) -> Any:
    """The numbers of a cell as an array; axes of length 1 go."""
    array = np.asarray(numbers_in(cell)) if isinstance(cell, str) else as_numpy(cell)
    return array.reshape([size for size in array.shape if size != 1]) if array.ndim > 1 else array


def kind_of(cells: Sequence[Any]) -> str:
    """What these cells, none of them missing, are.

    "vectors", "whole vectors" of integers, "numbers", "whole numbers", "text"; "arrays" of tokens, "bytes", "base64"
    and "8-bit vectors" hold numbers that have to be made vectors first; "odd" is anything that may hold some.
    """
    first = cells[0]
    if isinstance(first, bool | np.bool_):
        return "text"
    if isinstance(first, int | float | np.number) or hasattr(first, "as_integer_ratio"):
        return "whole numbers" if all(isinstance(cell, int | np.integer) for cell in cells) else "numbers"
    if isinstance(first, bytes):
        return "bytes"
    if isinstance(first, str):
        if looks_like_vector(first):
            return "vectors"
        if all(isinstance(cell, str) and len(cell) % 4 == 0 and BASE64.fullmatch(cell) for cell in cells):
            return "base64"
        return "odd" if _looks_encoded(first.strip()) else "text"
    if not np.ndim(first) and isinstance(first, np.ndarray | torch.Tensor):
        return "numbers"
    if not hasattr(first, "__len__"):
        return "text"
    try:
        arrays = [vector_in(cell) for cell in cells] if not isinstance(first, dict) else []
    except (ShapeError, ValueError, TypeError):
        return "odd"
    kinds = {item.dtype.kind for item in arrays}
    if not arrays or not kinds <= set("fiubcO") or (kinds == {"O"} and not all(map(_is_of_numbers, arrays))):
        return "odd"
    if "O" in kinds or any(item.ndim > 1 for item in arrays):
        return "arrays"
    if all(item.dtype.itemsize == 1 for item in arrays):
        return "8-bit vectors"
    return "whole vectors" if kinds <= set("iub") else "vectors"


def _is_of_numbers(array: Any) -> bool:
    """Whether an array of objects is of lists of numbers."""
    nested = all(isinstance(item, list | tuple | np.ndarray) for item in array.flat)
    return nested and all(as_numpy(item).dtype.kind in "fiu" for item in array.flat)


def _looks_encoded(text: str) -> bool:
    """Whether text is a code that holds something, such as numbers in an encoding that isn't known."""
    bracketed = VECTOR.fullmatch(text) is not None and re.search(r"\d", text) is not None
    return bracketed or (len(text) >= CODE and not re.search(r"\s|://", text))


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
    >>> numbers_in("[np.float32(0.5), np.float32(2.0)]")
    [0.5, 2.0]

    Raises DtypeError for other text, for numbers that may be read in two ways, and for what numpy has cut by "...".
    """
    match = BODY.fullmatch(SCALAR.sub(r"\1", cell.strip()) if "(" in cell else cell.strip())
    body = match[1].strip() if match else ""
    parts = body.replace(";", ",").split(",") if re.search("[,;]", body) else body.split()
    # the commas of "0,5, 1,5" and "0,5; 1,5" stand within numbers, too
    mixed = "," in body and (";" in body or ("." not in body and re.search(r",\s", body) and re.search(r",\S", body)))
    if parts and not mixed and "_" not in body:
        with contextlib.suppress(ValueError):
            return [math.nan if part.strip() in ("null", "None") else float(part) for part in parts]
    why = "numpy has cut it by '...' when it was printed" if "..." in cell else "it is no list of numbers"
    why = "are these decimal commas?" if DECIMAL.search(cell) and "." not in cell else why
    shown = cell if len(cell) < 60 else f"{cell[:40]}...{cell[-12:]}"
    return fail(DtypeError, "a cell of text must hold a vector", f"{shown!r}: {why}", "Keep lists, not printed arrays.")


def stacked(cells: Iterable[Any], title: str) -> Any:
    """Cells that hold a vector each as a matrix; a missing one becomes NaN, and (m, 0) where all are missing.

    Raises ShapeError for vectors of several lengths.
    """
    rows = [None if is_missing(cell) else vector_in(cell) for cell in cells]
    present = [row for row in rows if row is not None]
    shapes = Counter(row.shape for row in present).most_common()
    if len(shapes) > 1:
        got = ", ".join(f"{count:,} of length {'x'.join(map(str, shape)) or 0}" for shape, count in shapes[:4])
        odd = next(i for i, row in enumerate(rows) if row is not None and row.shape != shapes[0][0])
        must, fix = f"every row of {title} must hold a vector of one length", "Leave the others out, or pool them."
        fail(ShapeError, must, f"{got}, the first in row {odd}", fix)
    if len(present) == len(rows):
        return np.stack(present).reshape(len(rows), -1)
    nan = np.full(shapes[0][0] if shapes else 0, np.nan, np.result_type("float16", *(row.dtype for row in present[:1])))
    return np.stack([nan if row is None else row for row in rows]).reshape(len(rows), -1)


def spooled(pieces: Iterable[Any], title: str) -> Any:
    """Matrices (m, d) of a stream as one mapped array in a file without a name, which ends with the process.

    It is of float32, or of float64 where the first of them need that. A piece (m, 0) is m missing rows.
    """
    n, d, dtype = 0, 0, np.dtype("float32")
    with tempfile.TemporaryFile(prefix="isonb-") as file:
        for piece in pieces:
            if piece.shape[1] not in (0, d) and d:
                got = f"{d} numbers in the first row and {piece.shape[1]} about row {n:,}"
                fail(ShapeError, f"every row of {title} must hold a vector of one length", got, "Correct that row.")
            if piece.shape[1] and not d:
                d, dtype = piece.shape[1], np.result_type(piece.dtype, "float32")
                _write(file, np.full((n, d), np.nan, dtype), title)
            n += len(piece)
            if d:
                _write(file, np.full((len(piece), d), np.nan) if not piece.shape[1] else piece, title, dtype)
        if not d:
            fix = "Name another column." if n else "Look at the program that wrote it."
            fail(ShapeError, f"{title} must have rows", "missing values alone" if n else "none", fix)
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n, d))


def _write(file: Any, rows: Any, title: str, dtype: Any = None) -> None:
    try:  # written, not mapped: a full disk is then an error and no signal
        file.write(np.ascontiguousarray(rows, dtype).data)
    except OSError as error:
        must, fix = f"the disk must take {title} while it is read", "Free some space, or set TMPDIR."
        raise DiskError(f"{must}; got {error.strerror}. {fix}") from error
