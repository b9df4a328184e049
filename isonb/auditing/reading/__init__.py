"""The one way to vectors: a path, an array, a frame, a data set, lists, as a matrix (n, d) that is read by rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.reading.members import SHAPE, Holder, Member
from isonb.auditing.reading.values import is_array, members_of
from isonb.auditing.rows import RowSource, pieces, usable
from isonb.errors import DtypeError, ShapeError, fail, in_one_line


def vectors_of(vectors: Any, name: str | None = None) -> Any:
    """The rows (m, d) that an audit counts, finite and not zero, as float32 (float64 if they are that).

    Args:
        vectors: whatever :func:`isonb.audit` takes, a path too.
        name: which array or column, where there are several.

    Raises what :func:`isonb.audit` raises.

    >>> vectors_of([[0.0, 1.0], [float("nan"), 1.0], [2.0, 2.0]]).tolist()
    [[0.0, 1.0], [2.0, 2.0]]
    """
    rows = (piece for _, piece in pieces(matrix(vectors, name=name)))
    return torch.cat([piece[usable(piece)] for piece in rows])


def matrix(vectors: Any, title: str = "vectors", name: str | None = None, *, ids: bool = True) -> RowSource:
    """Vectors (n, d), d >= 2, that are read by rows, of whatever holds them; ``read`` says what was read.

    A path (:mod:`~isonb.auditing.reading.files` lists the formats); an array of numpy, masked or not (what is masked
    becomes NaN), of scipy (sparse) or of whatever has ``__array__``; a tensor, sparse or not; a frame or series of
    pandas or polars; a table or column of Arrow; a data set of ``datasets``, with splits or not; a list of vectors or
    of records; a dictionary of one of these. ``name``: which array or column, where there are several. Without
    ``ids`` every dimension of an object is taken, also one that counts the rows on.

    Raises :class:`~isonb.errors.ShapeError` for another shape, :class:`~isonb.errors.DtypeError` for what is no number
    or may be a code of numbers, VectorsError for what holds no vectors or several.
    """
    if isinstance(vectors, RowSource):
        return vectors
    hint = title.removesuffix("ies")
    if not isinstance(vectors, str | Path):
        return Holder(title, _members(vectors, title), title, ids).matrix(name, hint)
    from isonb.auditing.reading.files import describe, readable

    path = Path(vectors).expanduser()
    with readable(path):
        return describe(path).matrix(name, hint)


def _members(thing: Any, title: str) -> list[Member]:
    """The members of an object in memory."""
    module = type(thing).__module__.partition(".")[0]
    if module in ("pandas", "polars", "pyarrow", "datasets"):
        return _of_table(thing, module, title)
    if isinstance(thing, Mapping | Sequence) and not isinstance(thing, str | bytes):
        return members_of(thing, title)
    array = thing if is_array(thing) else as_numpy(thing)
    if not getattr(array, "shape", ()):
        got = f"{type(thing).__name__}, which has no rows of numbers"
        fail(ShapeError, f"{title} {SHAPE}", got, "Stack them: one row a text.")
    return members_of(array, title)


def _of_table(thing: Any, module: str, title: str) -> list[Member]:
    """Frames, series, tables, columns and data sets, all by way of Arrow."""
    import pyarrow as pa

    from isonb.auditing.reading.tables import of_arrow, of_dataset

    if module == "datasets":
        return of_dataset(thing, title)
    try:
        if isinstance(thing, pa.Array | pa.ChunkedArray):
            thing = pa.table({"vector": thing})
        elif hasattr(thing, "to_frame"):  # a series
            thing = thing.to_frame("vector")
        elif hasattr(thing, "collect"):  # a lazy frame
            thing = thing.collect()
        if module == "pandas":
            frame = thing.set_axis([*map(str, thing.columns)], axis=1)
            thing = pa.Table.from_pandas(frame, preserve_index=False)
        table = pa.table(thing)
    except (ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        must = f"{title} must be columns that Arrow can hold, each of one type and with a name of its own"
        fix = "Keep the column of the vectors alone, or pass to_numpy() of all."
        fail(DtypeError, must, in_one_line(error).rstrip("."), fix)
    return of_arrow(table, title)
