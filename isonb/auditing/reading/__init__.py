"""The one way to vectors: a path, an array, a frame, a data set, lists, as a matrix (n, d) that is read by rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.reading.arrays import of_arrays
from isonb.auditing.reading.columns import as_numpy, stacked
from isonb.auditing.reading.described import Described, refuse, single
from isonb.auditing.reading.places import describe, readable
from isonb.auditing.reading.rows import RowSource, changed, pieces, usable
from isonb.errors import DtypeError, ShapeError


def vectors_of(vectors: Any, name: str | None = None) -> Tensor:
    """The rows (m, d) that an audit counts, finite and not zero, as float32 (float64 if they are that).

    ``vectors``: whatever :func:`isonb.audit` takes, a path too; ``name``: which array or column, where there are
    several. Raises what :func:`isonb.audit` raises.

    >>> vectors_of([[0.0, 1.0], [float("nan"), 1.0], [2.0, 2.0]]).tolist()
    [[0.0, 1.0], [2.0, 2.0]]
    """
    rows = (piece for _, piece in pieces(matrix(vectors, name=name)))
    return torch.cat([piece[usable(piece)] for piece in rows])


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
    hint = what.removesuffix("ies")
    if not isinstance(vectors, str | Path):
        return _described(vectors, what).matrix(name, hint)
    path = Path(vectors).expanduser()
    with readable(path):
        return describe(path, name).matrix(name, hint)


def _described(thing: Any, what: str) -> Described:
    """An object in memory by its members."""
    import numpy as np

    module = type(thing).__module__.partition(".")[0]
    held, code = thing, what
    if isinstance(thing, Tensor) and thing.layout != torch.strided:
        flat: Tensor = thing.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
        every = torch.arange(len(flat))
        held = RowSource(flat.shape, lambda rows: flat.index_select(0, every[rows]).to_dense())
    elif hasattr(thing, "tocsr") and hasattr(thing, "nnz"):  # scipy, sparse
        held, code = changed(thing.tocsr(), lambda rows: rows.toarray()), f"{what}.toarray()"
    elif isinstance(thing, np.ma.MaskedArray) and thing.dtype.kind in "fiu":
        wide = thing.dtype if thing.dtype.kind == "f" else "float64"
        held = changed(thing, lambda rows: rows.astype(wide).filled(float("nan")))
    elif module in ("pandas", "polars", "pyarrow", "datasets"):
        return _of_table(thing, module, what)
    elif isinstance(thing, Mapping):
        return _of_mapping(thing, what)
    elif isinstance(thing, Sequence) and not isinstance(thing, str | bytes):
        return _of_list(thing, what)
    elif not isinstance(thing, Tensor):
        held = as_numpy(thing)
        if held.dtype.kind in "OUST" and held.ndim == 1:
            return _of_list(held.tolist(), what)
    if not hasattr(held, "shape") or held.shape == ():
        lines = (f"x = numpy.asarray({what}, dtype='float32')", "print(isonb.audit(x))")
        got = f"{type(thing).__name__}, which has no rows of numbers"
        refuse(ShapeError, f"{what} must be an array (n, d) of d >= 2", got, "Stack them: one row a text.", lines)
    return single(what, "", lambda: held, code)


def _of_table(thing: Any, module: str, what: str) -> Described:
    """Frames, series, tables, columns and data sets, all by way of Arrow."""
    import pyarrow as pa

    from isonb.auditing.reading.tables import of_dataset, scanned

    told = f"{what} ({module}.{type(thing).__name__})"
    if module == "datasets":
        return of_dataset(thing, told, what)
    if isinstance(thing, pa.Array | pa.ChunkedArray):
        thing = pa.table({"vector": thing})
    elif hasattr(thing, "to_frame"):  # a series
        thing = thing.to_frame("vector")
    elif hasattr(thing, "collect"):  # a lazy frame
        thing = thing.collect()
    try:
        if module == "pandas":
            frame = thing.set_axis([*map(str, thing.columns)], axis=1)
            thing = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        must, got = f"{told} must have columns of one type each", " ".join(str(error).split())[:120]
        lines = (f"x = numpy.stack({what}['embedding'])", "print(isonb.audit(x))")
        refuse(DtypeError, must, got, "Keep the vectors alone.", lines, error)
    return scanned(thing if isinstance(thing, pa.RecordBatch) else pa.table(thing), told, what)


def _of_mapping(thing: Mapping[Any, Any], what: str) -> Described:
    """A dictionary of arrays, of columns, or of one vector an id."""
    held = {str(key): as_numpy(value) for key, value in thing.items() if value is not None}
    arrays = {key: array for key, array in held.items() if array.ndim}
    return of_arrays(arrays, arrays.__getitem__, f"{what} (a dictionary)", what)


def _of_list(rows: Sequence[Any], what: str) -> Described:
    """Vectors, each a list, an array, a tensor or text; or records."""
    if rows and isinstance(rows[0], Mapping):
        from isonb.auditing.reading.tables import records

        return records(lambda: rows, f"{what} (a list of records)", f"pandas.DataFrame({what})")
    return single(what, "", lambda: stacked(rows, what, what), f"numpy.stack({what})")
