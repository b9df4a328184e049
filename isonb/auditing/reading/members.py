"""What a file or an object holds, before any number is read: its members, the choice among them, what is refused."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.rows import SHOWN, Read, RowSource, changed
from isonb.errors import CODE, DtypeError, InputError, ShapeError, fail
from isonb.runtime.terminal import printable

LOOKED = 50  # rows that show what a column holds
SHAPE = "must be an array (n, d) of d >= 2"
NUMBERS = ("float16", "float32", "float64", "float128", "bfloat", "int16", "int32", "int64", "uint32", "uint64")
# What may not be numbers, by the beginning of its type: what it looks like, and what to do with it, as ``x``.
CODED = {
    "bool": ("zeros and ones", "Binary vectors have the numbers -1 and 1: take x * 2.0 - 1."),
    "uint8": (
        "which look like packed bits: each byte eight signs of a binary vector, not a number",
        "Dequantise them, or take numpy.unpackbits(x, axis=-1) * 2.0 - 1.",
    ),
    "int8": (
        "which are quantised numbers, or packed bits of a binary vector (less 128)",
        "Dequantise: times the scale plus the middle of each dimension; where these are one, take x / 127.0.",
    ),
    "uint16": ("which may be the bits of bfloat16", "Then take (x.astype('uint32') << 16).view('float32')."),
    "complex": ("which have no cosines", "Take numpy.concatenate([x.real, x.imag], axis=-1)."),
    "float8": ("which numpy doesn't know", "Take x.astype('float32')."),
    "": ("which are no numbers", "Pass the embeddings, not texts, objects or bytes without a type."),
}
# What may hold vectors in a column, and what to do with it.
UNCLEAR = {
    "arrays": "Each row is an array, as of tokens: pool it.",
    "8-bit vectors": "They look like packed bits or quantised numbers: unpack or dequantise them.",
    "bytes": "Say what the bytes are; of float32 numpy.frombuffer(cell, 'float32') is the vector.",
    "base64": "Of float32 numpy.frombuffer(base64.b64decode(cell), 'float32') is the vector.",
}


class VectorsError(InputError):
    """Vectors that can't be taken from a file or an object; the message says what would help."""


@dataclass(frozen=True)
class Member:
    """An array, a column or a group of columns.

    ``take`` gives the matrix (n, d) that lies there; None says that it holds none. ``certain``: nothing but vectors
    looks like this. ``part``: what it is called in the first line of an audit. ``columns``: the names it consists of.
    """

    name: str
    type: str
    take: Callable[[], Any] | None = None
    certain: bool = True
    part: str = ""
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" if self.name else self.type

    def below(self, key: str) -> Member:
        """The same as a member of something larger, which has this at ``key``."""
        name, *columns = (f"{key}.{name}" if name else key for name in (self.name, *self.columns))
        part = f"column {name}" if self.part == f"column {self.name}" else self.part
        return replace(self, name=name, part=part, columns=tuple(columns))


@dataclass(frozen=True)
class Holder:
    """A file or an object by its members. ``source``: its path, or the name of the argument that it is.

    ``ids``: whether a dimension that counts the rows on is taken for an id of theirs, and left out.
    """

    title: str
    members: Sequence[Member]
    source: str | Path
    ids: bool = True

    def matrix(self, name: str | None, hint: str = "") -> RowSource:
        """The checked matrix of the member with this name, or of the only one that holds vectors.

        ``hint``: it is in the member's name, if in that of one alone. VectorsError where that isn't clear.
        """
        usable = [member for member in self.members if member.take is not None]
        if name is not None:
            chosen = [member for member in usable if member.name == name]
        else:
            chosen = [member for member in usable if member.certain] or usable
            chosen = [member for member in chosen if hint and hint in member.name.lower()] or chosen
        if len(chosen) != 1 or chosen[0].take is None:
            self._refuse(usable, name)
        member = chosen[0]
        matrix, excluded = checked(chosen[0].take(), self.title, self.ids)
        others = [item.name for item in self.members if item.name not in (member.name, *member.columns) and item.name]
        part = member.part or (f"array {member.name}" if member.name else "")
        read = Read((matrix.shape[0], matrix.shape[1]), self.title, part, (*others, *excluded))
        return RowSource(matrix.shape, lambda rows: matrix[rows], [matrix], read)

    def _refuse(self, usable: Sequence[Member], name: str | None) -> NoReturn:
        shown = usable or self.members
        listed = printable(", ".join(map(str, shown[:SHOWN])) + (", ..." if len(shown) > SHOWN else ""))
        if not usable:
            fixes = [UNCLEAR[member.type] for member in self.members if member.type in UNCLEAR]
            fix = fixes[0] if fixes else "Pass numbers of one length a row, as a matrix (n, d)."
            fail(VectorsError, f"{self.title} must hold vectors, one a row", listed or "nothing", fix)
        got = f"{len(usable)} that may be them ({listed})" if name is None else f"{name!r} of {listed}"
        line = f"isonb.audit({self.source}, name={usable[0].name!r})"
        if isinstance(self.source, Path):
            line = shlex.join(["isonb", "audit", str(self.source), "--name", usable[0].name])
        must = f"--name must name the vectors in {self.title}"
        fail(VectorsError, must, got, f"Pass one of them.{CODE}{line}" if usable[0].name else "Leave the name out.")


def each_once(names: Sequence[str], title: str) -> None:
    """Raises ShapeError for a name that comes twice: only one of the two would be read."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        fail(ShapeError, f"{title} must have each name once", f"{twice!r} twice", "Rename or drop one of them.")


def checked(matrix: Any, title: str, ids: bool = True) -> tuple[Any, tuple[str, ...]]:
    """A matrix (n, d) with d of 2 or more, of numbers, and what was left out of it: axes of length 1, row numbers.

    Raises ShapeError and DtypeError; what may be a code of numbers is asked about.
    """
    excluded: list[str] = []
    shape = tuple(matrix.shape)
    if len(shape) > 2 and sum(size != 1 for size in shape) == 2 and hasattr(matrix, "reshape"):
        excluded.append(f"axis of length 1 of {shape}")
        matrix = matrix.reshape([size for size in shape if size != 1])
    if len(matrix.shape) != 2 or matrix.shape[1] < 2:
        fix = UNCLEAR["arrays"] if len(shape) == 3 else "Rows are points: stack them, one row a text."
        fail(ShapeError, f"{title} {SHAPE}", f"shape {shape}", fix)
    if not matrix.shape[0]:
        fail(ShapeError, f"{title} must have rows", "none", "Look at the program that wrote it.")
    matrix = _of_numbers(matrix, title)
    number = _row_numbers(matrix) if ids else []
    if 0 < len(number) < matrix.shape[1] / 2:
        keep, whole = np.delete(np.arange(matrix.shape[1]), number), matrix
        matrix = RowSource((whole.shape[0], len(keep)), lambda rows: whole[rows][..., keep], [whole])
        excluded += [f"dimension {item} (numbers of rows)" for item in number]
    return matrix, tuple(excluded)


def _of_numbers(matrix: Any, title: str) -> Any:
    dtype = getattr(matrix, "dtype", None)
    if dtype is None:  # rows that are made when they are read
        return matrix
    name = str(dtype).removeprefix("torch.") if isinstance(matrix, torch.Tensor) else dtype.name
    if name.startswith(NUMBERS):
        return matrix.detach() if isinstance(matrix, torch.Tensor) else matrix
    if name == "void16":  # as ml_dtypes leaves bfloat16 in a .npy file
        return changed(matrix, lambda rows: (rows.copy().view("<u2").astype("uint32") << 16).view("float32"))
    bits = name in ("uint8", "int8") and {*map(abs, set(matrix[:1000].ravel().tolist()))} <= {0, 1}
    looks, fix = CODED["bool" if bits else next(key for key in CODED if name.startswith(key))]
    return fail(DtypeError, f"{title} must be numbers", f"{dtype}, {looks}", fix)


def _row_numbers(matrix: Any) -> list[int]:
    """Dimensions that count the rows on, by one step: an id that was stacked beside the vectors."""
    if matrix.shape[0] < 3 or matrix.shape[1] < 3:
        return []
    head = as_numpy(matrix[: min(LOOKED, matrix.shape[0])]).astype("float64")
    return [int(item) for item in np.flatnonzero(counts_on(head))]


def counts_on(values: Any) -> Any:
    """Which columns of numbers (m, ...) are whole and rise by one step: 0, 1, 2, ... or 1000, 1007, 1014, ..."""
    with np.errstate(invalid="ignore"):
        steps = np.diff(values, axis=0)
        whole = (values == np.floor(values)).all(0) & (steps == steps[:1]).all(0) & (steps[:1] != 0).all(0)
    return whole & (len(values) > 2)
