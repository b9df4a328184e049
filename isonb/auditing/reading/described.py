"""What a file or an object holds, before any number is read: its members, the choice among them, what is refused."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.reading.rows import SHOWN, Read, RowSource, changed
from isonb.errors import DtypeError, InputError, ShapeError

LOOKED = 50  # rows that show what a column holds
NUMBERS = ("float16", "float32", "float64", "float128", "bfloat", "int16", "int32", "int64", "uint32", "uint64")
# What may not be numbers, by the beginning of its type: what it looks like, what to do, and the lines that do it.
CODED = {
    "bool": ("zeros and ones", "Binary vectors have the numbers -1 and 1.", "bool"),
    "uint8": (
        "which look like packed bits: each byte eight signs of a binary vector, not a number",
        "Unpack them; if each byte is a quantised number, dequantise it.",
        "packed bits",
    ),
    "int8": (
        "which are quantised numbers, or packed bits of a binary vector (less 128)",
        "Dequantise: times the scale plus the middle of each dimension, where they differ.",
        "int8",
    ),
    "uint16": ("which may be the bits of bfloat16, or quantised numbers", "View them as what they are.", "bfloat16"),
    "complex": ("which have no cosines", "Put the real and the imaginary parts side by side.", "complex"),
    "float8": ("which numpy doesn't know", "Take them as float32.", "float8"),
    "void": ("bytes without a type", "Say their type: ml_dtypes has float8.", ""),
    "bytes": ("bytes without a type", "Say what the bytes are, as by numpy.frombuffer, and save the numbers.", ""),
    "": ("which are no numbers", "Pass the embeddings, not texts or objects.", ""),
}


class VectorsError(InputError):
    """Vectors that can't be taken from a file or an object; the message ends with the lines that would help."""


@dataclass(frozen=True)
class Member:
    """An array, a column or a group of columns.

    ``take`` gives what lies there, a matrix (n, d) where it holds vectors; None says that it holds none. ``certain``:
    nothing but vectors looks like this. ``part``: what it is called in the first line of an audit. ``columns``: the
    names it consists of.
    """

    name: str
    type: str
    take: Callable[[], Any] | None = None
    certain: bool = True
    part: str = ""
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" if self.name else self.type


@dataclass(frozen=True)
class Described:
    """A file or an object by its members.

    ``place``: its name; ``kind``: what it is; ``source``: its path, or the name of the argument that it is.
    """

    place: str
    kind: str
    members: Sequence[Member]
    source: str | Path

    @property
    def title(self) -> str:
        return f"{self.place} ({self.kind})" if self.kind else self.place

    def matrix(self, name: str | None, hint: str = "") -> RowSource:
        """The checked matrix of the member with this name, or of the only one that holds vectors.

        ``hint``: it is in the member's name, if in that of one alone. VectorsError where that isn't clear.
        """
        member, value = self._taken(name, hint)
        matrix, excluded = checked(value, self.title, self._code(member))
        others = [item.name for item in self.members if item.name not in (member.name, *member.columns) and item.name]
        part = member.part or (f"array {member.name}" if member.name else "")
        read = Read((matrix.shape[0], matrix.shape[1]), self.place, part, (*others, *excluded))
        return RowSource(matrix.shape, lambda rows: matrix[rows], [matrix], read)

    def raw(self, name: str | None) -> Any:
        """What lies in a member, of any shape and type: an array of numpy, or a list of them."""
        value = self._taken(name, "")[1]
        value = value[:] if isinstance(value, RowSource) else value
        return value if isinstance(value, list) else as_numpy(value)

    def _taken(self, name: str | None, hint: str) -> tuple[Member, Any]:
        """The member that is meant, and what lies there."""
        usable = [member for member in self.members if member.take is not None]
        if name is not None:
            sure = [member for member in usable if member.name == name]
        else:
            sure = [member for member in usable if member.certain] or usable
            sure = [member for member in sure if hint and hint in member.name.lower()] or sure
        if len(sure) != 1:
            self._unclear(usable, name)
        assert sure[0].take is not None
        return sure[0], sure[0].take()

    def _code(self, member: Member) -> str:
        """Python for the numbers of a member, as they lie there."""
        source = repr(str(self.source)) if isinstance(self.source, Path) else self.source
        return f"isonb.auditing.vectors_of({source}{f', {member.name!r}' * bool(member.name)}, raw=True)"

    def _unclear(self, usable: Sequence[Member], name: str | None) -> NoReturn:
        shown = usable or self.members
        listed = ", ".join(map(str, shown[:SHOWN])) + (", ..." if len(shown) > SHOWN else "")
        if not usable:
            fix = "None of it is numbers of one length."
            refuse(VectorsError, f"{self.title} must hold vectors, one a row", listed or "nothing", fix)
        got = f"{len(usable)} that may be them ({listed})" if name is None else f"{name!r} of {listed}"
        first = usable[0].name
        in_memory = isinstance(self.source, str)
        path, word = (str(self.source), first) if in_memory else (shlex.quote(str(self.source)), shlex.quote(first))
        advice = ("name in memory" if in_memory else "name") if first else ""
        must = f"--name must name the vectors in {self.title}"
        refuse(VectorsError, must, got, "Pass one of them.", advice, path=path, name=word)


def named_below(key: str, member: Member) -> Member:
    """A member of what lies at ``key`` in something larger."""

    def below(name: str) -> str:
        return f"{key}{'' if name.startswith('[') else '.'}{name}" if name else key

    part = f"column {below(member.name)}" if member.part == f"column {member.name}" else member.part
    return replace(member, name=below(member.name), part=part, columns=tuple(map(below, member.columns)))


def checked(matrix: Any, title: str, x: str) -> tuple[Any, tuple[str, ...]]:
    """A matrix (n, d) with d of 2 or more, of numbers, and what was left out of it: axes of length 1, row numbers.

    Raises ShapeError and DtypeError with the lines that would make it one; what may be a code of numbers is asked
    about. ``x``: Python that loads it.
    """
    excluded: list[str] = []
    if isinstance(matrix, list):
        _refuse_cells(matrix, title, x)
    shape = tuple(matrix.shape)
    if len(shape) > 2 and sum(size != 1 for size in shape) == 2 and hasattr(matrix, "reshape"):
        excluded.append(f"axis of length 1 of {shape}")
        matrix = matrix.reshape([size for size in shape if size != 1])
    if len(matrix.shape) == 3:
        _refuse_tokens(title, f"shape {shape}", shape[-1], x)
    if len(matrix.shape) != 2 or matrix.shape[1] < 2:
        fix = "Rows are points: stack them, one row a text."
        refuse(ShapeError, f"{title} must be an array (n, d) of d >= 2", f"shape {shape}", fix)
    if not matrix.shape[0]:
        refuse(ShapeError, f"{title} must have rows", "none", "Look at the program that wrote it.")
    matrix = _of_numbers(matrix, title, x)
    number = _row_numbers(matrix)
    if 0 < len(number) < matrix.shape[1] / 2:
        keep = np.delete(np.arange(matrix.shape[1]), number)
        whole = matrix
        matrix = RowSource((whole.shape[0], len(keep)), lambda rows: whole[rows][..., keep], [whole])
        excluded += [f"dimension {item} (numbers of rows)" for item in number]
    return matrix, tuple(excluded)


def _refuse_cells(rows: list[Any], title: str, x: str) -> NoReturn:
    """Refuse cells that each hold something else than a vector: bytes of an unknown type, or tokens."""
    if isinstance(rows[0], bytes):
        _refuse_code("bytes", f"{len(rows[0])} in the first row", title, x)
    deepest = max(rows, key=np.ndim)
    width = np.shape(deepest if deepest.ndim > 1 else as_numpy(deepest[0]))[-1]
    _refuse_tokens(title, f"{len(rows):,} arrays, one of shape {deepest.shape}", width, x)


def _refuse_tokens(title: str, got: str, width: int, x: str) -> NoReturn:
    fix = "Each row is an array, as of tokens: pool it."
    refuse(ShapeError, f"{title} must be an array (n, d) of d >= 2", got, fix, "tokens", x=x, d=width)


def _of_numbers(matrix: Any, title: str, x: str) -> Any:
    dtype = getattr(matrix, "dtype", None)
    if dtype is None:  # rows that are made when they are read
        return matrix
    name = str(dtype).removeprefix("torch.") if isinstance(matrix, torch.Tensor) else dtype.name
    if name.startswith(NUMBERS):
        return matrix.detach() if isinstance(matrix, torch.Tensor) else matrix
    if name == "void16":  # as ml_dtypes leaves bfloat16 in a .npy file
        return changed(matrix, lambda rows: (rows.copy().view("<u2").astype("uint32") << 16).view("float32"))
    bits = name in ("uint8", "int8") and {*map(abs, set(matrix[:1000].ravel().tolist()))} <= {0, 1}
    return _refuse_code("bool" if bits else name, name if isinstance(matrix, torch.Tensor) else dtype, title, x)


def _refuse_code(name: str, shown: object, title: str, x: str) -> NoReturn:
    looks, fix, advice = CODED[next(key for key in CODED if name.startswith(key))]
    refuse(DtypeError, f"{title} must be numbers", f"{shown}, {looks}", fix, advice, x=x)


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
