"""The one way to vectors: a path, an array, a frame, a data set, lists, as a matrix (n, d) that is read by rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.reading.array_files import array_members, as_numpy, sized
from isonb.auditing.reading.columns import looks_like_vector, numbers_in
from isonb.auditing.reading.described import Described, Member, matrix_in, refuse, single
from isonb.auditing.reading.places import describe
from isonb.auditing.reading.rows import Changed, RowSource, pieces
from isonb.errors import DtypeError, ShapeError


def vectors_of(vectors: Any, name: str | None = None) -> Tensor:
    """The rows (m, d) that an audit counts, finite and not zero, as float32 (float64 if they are that).

    ``vectors``: whatever :func:`isonb.audit` takes, a path too; ``name``: which array or column, where there are
    several. Raises what :func:`isonb.audit` raises.

    >>> vectors_of([[0.0, 1.0], [float("nan"), 1.0], [2.0, 2.0]]).tolist()
    [[0.0, 1.0], [2.0, 2.0]]
    """
    rows = (piece for _, piece in pieces(matrix(vectors, name=name)))
    return torch.cat([piece[piece.isfinite().all(-1) & (piece != 0).any(-1)] for piece in rows])


def matrix(vectors: Any, what: str = "vectors", name: str | None = None) -> Any:
    """Vectors (n, d), d >= 2, that are read by rows, of whatever holds them.

    A path (:mod:`~isonb.auditing.reading.places` lists the formats); an array of numpy, masked or not (what is masked
    becomes NaN), of scipy (sparse) or of whatever has ``__array__``; a tensor, sparse or not; a frame or series of
    pandas or polars; a table or column of Arrow; a data set of ``datasets``; a list of vectors or of records; a
    dictionary of one of these. ``name``: which array or column, where there are several.

    Raises :class:`~isonb.errors.ShapeError` for another shape, :class:`~isonb.errors.DtypeError` for what is no number
    or may be a code of numbers, VectorsError for what holds no vectors or several.
    """
    if isinstance(vectors, RowSource):
        return vectors
    path = isinstance(vectors, str | Path)
    described = describe(Path(vectors).expanduser(), name) if path else _described(vectors, what)
    return matrix_in(described, name, hint=what.removesuffix("ies"))


def _described(thing: Any, what: str) -> Described:
    """An object in memory by its members."""
    module = type(thing).__module__.partition(".")[0]
    if isinstance(thing, torch.Tensor):
        return _one(thing, what, what)
    if hasattr(thing, "tocsr") and hasattr(thing, "nnz"):  # scipy, sparse
        rows = thing.tocsr() if thing.dtype.kind in "fiu" else thing.tocsr().astype("float32")
        return _one(Changed(rows, lambda rows: rows.toarray()), what, f"{what}.toarray()")
    if hasattr(thing, "filled") and hasattr(thing, "mask"):  # numpy's masked arrays
        if thing.dtype.kind not in "fiu":
            return _one(thing.data, what, what)
        wide = thing.dtype if thing.dtype.kind == "f" else "float64"
        return _one(Changed(thing, lambda rows: rows.astype(wide).filled(float("nan"))), what, what)
    if module == "numpy" and hasattr(thing, "dtype"):
        return _of_array(thing, what)
    if module in ("pandas", "polars", "pyarrow", "datasets") or hasattr(thing, "__arrow_c_stream__"):
        return _of_table(thing, module, what)
    if isinstance(thing, Mapping):
        return _of_mapping(thing, what)
    if hasattr(thing, "__array__"):
        return _of_array(as_numpy(thing), f"numpy.asarray({what})")
    if isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        return _of_list(thing, what)
    lines = (f"x = numpy.asarray({what}, dtype='float32')", "print(isonb.audit(x))")
    got = f"{type(thing).__name__}, which has no rows of numbers"
    return refuse(ShapeError, f"{what} must be an array (n, d) of d >= 2", got, "Stack them: one row a text.", lines)


def _one(held: Any, what: str, code: str) -> Described:
    return single(what, "", lambda: held, code)


def _of_array(array: Any, what: str) -> Described:
    import numpy as np

    if array.dtype.kind in "OUST" and array.ndim == 1 and len(array):
        return _of_list(array.tolist(), what)
    if type(array) is not np.ndarray and not isinstance(array, np.memmap):
        array = np.asarray(array)
    return Described(what, array_members("", array.shape, array.dtype, lambda: array), what)


def _of_table(thing: Any, module: str, what: str) -> Described:
    """Frames, series, tables, columns and data sets, all by way of Arrow."""
    import pyarrow as pa

    from isonb.auditing.reading.table_files import of_arrow, of_dataset

    told = f"{what} ({module}.{type(thing).__name__})"
    if module == "datasets":
        return of_dataset(thing, told, what)
    if module == "pandas":
        frame = thing.to_frame("vector") if thing.ndim == 1 else thing
        kinds = {getattr(dtype, "kind", "O") for dtype in frame.dtypes}
        id_beside_fractions = bool(kinds & set("iu")) and "f" in kinds
        if kinds and kinds <= set("fiubc") and not id_beside_fractions:
            numbers = frame.to_numpy()
            if numbers.dtype.kind in "fiubc":
                return _of_array(numbers, f"{what}.to_numpy()")
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            must, got = f"{told} must have columns of one type each", " ".join(str(error).split())[:120]
            lines = (f"x = numpy.stack({what}['embedding'])", "print(isonb.audit(x))")
            refuse(DtypeError, must, got, "Keep the vectors alone.", lines, error)
    elif module == "polars":
        frame = thing.collect() if hasattr(thing, "collect") else thing
        table = (frame.to_frame("vector") if hasattr(frame, "to_frame") else frame).to_arrow()
    elif isinstance(thing, pa.RecordBatch):
        table = pa.Table.from_batches([thing])
    elif isinstance(thing, pa.Array | pa.ChunkedArray):
        table = pa.table({"vector": thing})
    else:
        table = thing if isinstance(thing, pa.Table) else pa.table(thing)
    return of_arrow(table, told, what)


def _of_mapping(thing: Mapping[Any, Any], what: str) -> Described:
    """A dictionary of arrays, of columns, or of one vector an id."""
    import numpy as np

    held = {str(key): value for key, value in thing.items() if value is not None}
    arrays = {key: array for key, value in held.items() if (array := _array(value)) is not None}
    shapes = {array.shape for array in arrays.values()}
    if len(arrays) == len(held) > 1 and len(shapes) == 1 and len(next(iter(shapes))) == 1:
        return _one(np.stack(list(arrays.values())), what, f"numpy.stack([*{what}.values()])")

    def described(key: str) -> Member:
        array = arrays.get(key)
        if array is None:
            return Member(key, type(held[key]).__name__)
        return sized(key, array.shape, array.dtype, lambda: array, array.ndim == 2)

    return Described(f"{what} (a dictionary)", [described(key) for key in held], what)


def _array(value: Any) -> Any:
    """An array of numbers, or None."""
    try:
        array = as_numpy(value)
    except (ValueError, TypeError):
        return None
    return array if array.dtype.kind in "fiu" and array.ndim else None


def _of_list(rows: Sequence[Any], what: str) -> Described:
    """Vectors, each a list, an array or a tensor; or records."""
    import numpy as np

    if rows and isinstance(rows[0], Mapping):
        import pyarrow as pa

        from isonb.auditing.reading.table_files import of_arrow

        return of_arrow(pa.Table.from_pylist(list(rows)), f"{what} (a list of records)", f"pandas.DataFrame({what})")
    if rows and isinstance(rows[0], str) and looks_like_vector(rows):
        rows = [numbers_in(cell) for cell in rows]
    plain = [as_numpy(row) if isinstance(row, torch.Tensor) else row for row in rows]
    try:
        return _one(np.asarray(plain), what, f"numpy.stack({what})")
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in plain]
        ((usual, _),) = Counter(lengths).most_common(1)
        odd = next(i for i, length in enumerate(lengths) if length != usual)
        must, got = f"every row of {what} must hold a vector of one length", f"{usual} numbers and, in row {odd}, "
        lines = (f"x = [row for row in {what} if len(row) == {usual}]", "print(isonb.audit(numpy.stack(x)))")
        refuse(ShapeError, must, f"{got}{lengths[odd]}", "Leave the others out.", lines)
