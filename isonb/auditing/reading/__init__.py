"""The one way to vectors: a path, an array, a frame, a data set, lists, as a matrix (n, d) that is read by rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.reading.described import Described
from isonb.auditing.reading.places import describe, readable
from isonb.auditing.reading.rows import RowSource, pieces, usable
from isonb.auditing.reading.values import is_array, members_of
from isonb.errors import DtypeError, ShapeError


def vectors_of(vectors: Any, name: str | None = None, *, raw: bool = False) -> Any:
    """The rows (m, d) that an audit counts, finite and not zero, as float32 (float64 if they are that).

    Args:
        vectors: whatever :func:`isonb.audit` takes, a path too.
        name: which array or column, where there are several.
        raw: what lies there instead, of any shape and type, as an array of numpy; as a list of them where they have
            several lengths.

    Raises what :func:`isonb.audit` raises.

    >>> vectors_of([[0.0, 1.0], [float("nan"), 1.0], [2.0, 2.0]]).tolist()
    [[0.0, 1.0], [2.0, 2.0]]
    >>> vectors_of([[True, False], [True, True]], raw=True).tolist()
    [[True, False], [True, True]]
    """
    if raw:
        return _read(vectors, "vectors", lambda described: described.raw(name))
    rows = (piece for _, piece in pieces(matrix(vectors, name=name)))
    return torch.cat([piece[usable(piece)] for piece in rows])


def matrix(vectors: Any, title: str = "vectors", name: str | None = None) -> RowSource:
    """Vectors (n, d), d >= 2, that are read by rows, of whatever holds them; ``read`` says what was read.

    A path (:mod:`~isonb.auditing.reading.places` lists the formats); an array of numpy, masked or not (what is masked
    becomes NaN), of scipy (sparse) or of whatever has ``__array__``; a tensor, sparse or not; a frame or series of
    pandas or polars; a table or column of Arrow; a data set of ``datasets``, with splits or not; a list of vectors or
    of records; a dictionary of one of these. ``name``: which array or column, where there are several.

    Raises :class:`~isonb.errors.ShapeError` for another shape, :class:`~isonb.errors.DtypeError` for what is no number
    or may be a code of numbers, VectorsError for what holds no vectors or several.
    """
    if isinstance(vectors, RowSource):
        return vectors
    source: RowSource = _read(vectors, title, lambda described: described.matrix(name, title.removesuffix("ies")))
    return source


def _read(thing: Any, title: str, read: Any) -> Any:
    if not isinstance(thing, str | Path):
        return read(_described(thing, title))
    path = Path(thing).expanduser()
    with readable(path):
        return read(describe(path))


def _described(thing: Any, title: str) -> Described:
    """An object in memory by its members."""
    module = type(thing).__module__.partition(".")[0]
    if module in ("pandas", "polars", "pyarrow", "datasets"):
        return _of_table(thing, module, title)
    for type_, kind in ((Mapping, "a dictionary"), (Sequence, "a list")):
        if isinstance(thing, type_) and not isinstance(thing, str | bytes):
            return Described(title, kind, members_of(thing, title), title)
    array = thing if is_array(thing) else as_numpy(thing)
    if not getattr(array, "shape", ()):
        got = f"{type(thing).__name__}, which has no rows of numbers"
        refuse(ShapeError, f"{title} must be an array (n, d) of d >= 2", got, "Stack them: one row a text.")
    return Described(title, "", members_of(array, title), title)


def _of_table(thing: Any, module: str, title: str) -> Described:
    """Frames, series, tables, columns and data sets, all by way of Arrow."""
    import pyarrow as pa

    from isonb.auditing.reading.tables import of_dataset, scanned

    kind = f"{module}.{type(thing).__name__}"
    if module == "datasets":
        return Described(title, kind, of_dataset(thing, title), title)
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
        must, got = f"{title} ({kind}) must have columns of one type each", " ".join(str(error).split())[:120]
        refuse(DtypeError, must, got, "Keep the column of the vectors alone.", cause=error)
    return scanned(thing if isinstance(thing, pa.RecordBatch) else pa.table(thing), title, kind, title)
