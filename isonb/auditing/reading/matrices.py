"""The one way to vectors: a path, an array, a frame, a data set, lists, as a matrix (n, d) that is read by rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.reading import array_files as arrays
from isonb.auditing.reading.checked import matrix_in
from isonb.auditing.reading.described import Described, Part, refuse
from isonb.auditing.reading.places import describe
from isonb.auditing.reading.sources import Changed, Rows
from isonb.errors import DtypeError, ShapeError

__all__ = ["matrix"]


def matrix(vectors: Any, what: str = "vectors", name: str | None = None) -> Any:
    """Vectors (n, d), d >= 2, that are read by rows, of whatever holds them.

    A path (:mod:`~isonb.auditing.reading.places` lists the formats); an array of numpy, masked or not (what is masked
    becomes NaN), of scipy (sparse) or of whatever has ``__array__``; a tensor, sparse or not; a frame or series of
    pandas or polars; a table or column of Arrow; a data set of ``datasets``; a list of vectors or of records; a
    dictionary of one of these. ``name``: which array or column, where there are several.

    Raises :class:`~isonb.errors.ShapeError` for another shape, :class:`~isonb.errors.DtypeError` for what is no number
    or may be a code of numbers, VectorsError for what holds no vectors or several.
    """
    if isinstance(vectors, Rows):
        return vectors
    if isinstance(vectors, str | Path):
        described = describe(Path(vectors).expanduser(), name)
    else:
        described = _described(vectors, what)
    return matrix_in(described, name, hint=what.removesuffix("ies"))


def _described(thing: Any, what: str) -> Described:
    """An object in memory by its parts."""
    kind = f"{type(thing).__module__.partition('.')[0]}.{type(thing).__name__}"
    told = f"{what} ({kind})"
    if isinstance(thing, torch.Tensor):
        return _one(thing, what, what)
    if hasattr(thing, "tocsr") and hasattr(thing, "nnz"):  # scipy, sparse
        rows = thing.tocsr()
        if rows.dtype.kind not in "fiu":
            rows = rows.astype("float32")
        return _one(Changed(rows, lambda part: part.toarray()), what, f"{what}.toarray()")
    if hasattr(thing, "filled") and hasattr(thing, "mask"):  # numpy's masked arrays
        if thing.dtype.kind not in "fiu":
            return _one(thing.data, what, what)
        wide = thing.dtype if thing.dtype.kind == "f" else "float64"
        return _one(Changed(thing, lambda part: part.astype(wide).filled(float("nan"))), what, what)
    if hasattr(thing, "dtype") and hasattr(thing, "__getitem__") and type(thing).__module__.startswith("numpy"):
        return _of_array(thing, what)
    table = _table(thing, what, told)
    if table is not None:
        return table
    if isinstance(thing, Mapping):
        return _of_mapping(thing, what)
    if hasattr(thing, "__array__"):
        import numpy as np

        return _of_array(np.asarray(thing), f"numpy.asarray({what})")
    if isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        return _of_list(thing, what)
    lines = (f"x = numpy.asarray({what}, dtype='float32')", "print(isonb.audit(x))")
    got = f"{type(thing).__name__}, which has no rows of numbers"
    return refuse(ShapeError, f"{what} must be an array (n, d) of d >= 2", got, "Stack them: one row a text.", lines)


def _one(found: Any, what: str, code: str) -> Described:
    return Described(what, (Part("", "", lambda: found),), code, code)


def _of_array(array: Any, what: str) -> Described:
    import numpy as np

    if array.dtype.kind in "OUST" and array.ndim == 1 and len(array):
        return _of_list(array.tolist(), what)
    if type(array) is not np.ndarray and not isinstance(array, np.memmap):
        array = np.asarray(array)
    parts = arrays.array_parts("", array.shape, array.dtype, lambda: array)
    return Described(what, parts, what, what + "[{name!r}]")


def _table(thing: Any, what: str, told: str) -> Described | None:
    """Frames, series, tables, columns and data sets, all by way of Arrow; None for anything else."""
    module = type(thing).__module__.partition(".")[0]
    if module not in ("pandas", "polars", "pyarrow", "datasets") and not hasattr(thing, "__arrow_c_stream__"):
        return None
    import pyarrow as pa

    from isonb.auditing.reading.table_files import of_arrow, of_dataset

    code = what
    if module == "datasets":
        return of_dataset(thing, told, what)
    if module == "pandas":
        if thing.ndim == 1:
            thing = thing.to_frame("vector")
        if len(thing.columns) and all(dtype.kind in "fiubc" for dtype in thing.dtypes if hasattr(dtype, "kind")):
            numbers = thing.to_numpy()
            if numbers.dtype.kind in "fiubc" and not _mixed(thing):
                return _of_array(numbers, f"{what}.to_numpy()")
        thing = thing.set_axis([str(name) for name in thing.columns], axis=1)
        try:
            thing = pa.Table.from_pandas(thing, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            got, fix = " ".join(str(error).split())[:120], "Keep the vectors alone."
            lines = (f"x = numpy.stack({what}['embedding'])", "print(isonb.audit(x))")
            try:
                refuse(DtypeError, f"{told} must have columns of one type each", got, fix, lines)
            except DtypeError as said:
                raise said from error
    elif module == "polars":
        thing = thing.collect() if hasattr(thing, "collect") else thing
        thing = (thing.to_frame("vector") if hasattr(thing, "to_frame") else thing).to_arrow()
    elif isinstance(thing, pa.RecordBatch):
        thing = pa.Table.from_batches([thing])
    elif isinstance(thing, pa.Array | pa.ChunkedArray):
        thing = pa.table({"vector": thing})
    elif not isinstance(thing, pa.Table):
        thing = pa.table(thing)
    return of_arrow(thing, told, code)


def _mixed(frame: Any) -> bool:
    """Whether integers stand beside fractions: an id among the dimensions."""
    kinds = {dtype.kind for dtype in frame.dtypes}
    return bool(kinds & set("iu")) and "f" in kinds


def _of_mapping(thing: Mapping[Any, Any], what: str) -> Described:
    """A dictionary of arrays, of columns, or of one vector an id."""
    import numpy as np

    held = {str(key): value for key, value in thing.items() if value is not None}
    tensors = {key: _array(value) for key, value in held.items()}
    whole = {key: value for key, value in tensors.items() if value is not None}
    shapes = {value.shape for value in whole.values()}
    if len(whole) == len(held) > 1 and len(shapes) == 1 and len(next(iter(shapes))) == 1:
        return _one(np.stack(list(whole.values())), what, f"numpy.stack([*{what}.values()])")
    parts = tuple(_held(key, held[key], whole.get(key)) for key in held)
    return Described(f"{what} (a dictionary)", parts, what, what + "[{name!r}]")


def _held(key: str, value: Any, array: Any) -> Part:
    if array is None:
        return Part(key, type(value).__name__)
    return Part(key, f"{array.dtype} of shape {array.shape}", lambda: array, array.ndim == 2)


def _array(value: Any) -> Any:
    """An array of numbers, or None."""
    import numpy as np

    if isinstance(value, torch.Tensor):
        return arrays.as_numpy(value)
    try:
        found = np.asarray(value)
    except (ValueError, TypeError):
        return None
    return found if found.dtype.kind in "fiu" and found.ndim else None


def _of_list(rows: Sequence[Any], what: str) -> Described:
    """Vectors, each a list, an array or a tensor; or records."""
    import numpy as np

    if rows and isinstance(rows[0], Mapping):
        import pyarrow as pa

        from isonb.auditing.reading.table_files import of_arrow

        return of_arrow(pa.Table.from_pylist(list(rows)), f"{what} (a list of records)", f"pandas.DataFrame({what})")
    if rows and isinstance(rows[0], str):
        from isonb.auditing.reading.cells import looks_like_vector, numbers_in

        if looks_like_vector(rows):
            return _of_list([numbers_in(cell) for cell in rows], what)
    plain = [arrays.as_numpy(row) if isinstance(row, torch.Tensor) else row for row in rows]
    try:
        found = np.asarray(plain)
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in plain]
        ((usual, _),) = Counter(lengths).most_common(1)
        odd = next(i for i, length in enumerate(lengths) if length != usual)
        got, fix = f"{usual} numbers and, in row {odd}, {lengths[odd]}", "Leave the others out."
        lines = (f"x = [row for row in {what} if len(row) == {usual}]", "print(isonb.audit(numpy.stack(x)))")
        refuse(ShapeError, f"every row of {what} must hold a vector of one length", got, fix, lines)
    return _one(found, what, f"numpy.stack({what})")
