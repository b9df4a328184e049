"""What a file or an object holds, before any number is read: its members, and the errors that are built from them."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from isonb.auditing.reading.rows import Changed, RowSource, bfloat16
from isonb.errors import CODE, DtypeError, InputError, ShapeError

SHOWN = 8  # members that an error names
LIBRARIES = (
    "numpy pandas torch isonb h5py faiss json pathlib sqlite3 safetensors.torch datasets chromadb gensim lance"
    " ml_dtypes sklearn.decomposition"
)
MODULES = re.compile(rf"\b({'|'.join(LIBRARIES.split())})\.")


class VectorsError(InputError):
    """Vectors that can't be taken from a file or an object; the message ends with the lines that would help."""


@dataclass(frozen=True)
class Member:
    """An array, a column or a group of columns. ``take`` gives its matrix (n, d); None: it holds no vectors.

    ``certain``: nothing but vectors looks like this; a list of integers or columns of numbers may be something else.
    """

    name: str
    type: str
    take: Callable[[], Any] | None = None
    certain: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" if self.name else self.type


@dataclass(frozen=True)
class Described:
    """A file or an object by its members. ``code``: Python that loads it, ``pick`` the same for the member {name!r}."""

    what: str
    members: Sequence[Member]
    code: str
    pick: str = ""

    def code_of(self, member: Member) -> str:
        return (self.pick or self.code + "[{name!r}]").format(name=member.name) if member.name else self.code

    def chosen(self, name: str | None, hint: str = "") -> Member:
        """The member with this name, or the only one that holds vectors (with ``hint`` in its name, if only one has).

        VectorsError where that isn't clear.
        """
        usable = [member for member in self.members if member.take is not None]
        if name is not None:
            named = [member for member in usable if member.name == name]
            return named[0] if named else self._unclear(usable, name)
        sure = [member for member in usable if member.certain] or usable
        sure = [member for member in sure if hint and hint in member.name.lower()] or sure
        return sure[0] if len(sure) == 1 else self._unclear(sure, None)

    def _unclear(self, usable: Sequence[Member], name: str | None) -> NoReturn:
        if not usable:
            self._nothing()
        told = ", ".join(map(str, usable[:SHOWN])) + (", ..." if len(usable) > SHOWN else "")
        got = f"{len(usable)} that may be them ({told})" if name is None else f"{name!r} of {told}"
        start, _, rest = self.code.partition("('")
        place = f"'{rest.split(chr(39))[0]}'" if rest else start  # the path in quotes, or the variable
        lines = (
            f"x = isonb.auditing.vectors_of({place}, {usable[0].name!r})  # or --name {usable[0].name}",
            "print(isonb.audit(x))",
        )
        refuse(VectorsError, f"--name must name the vectors in {self.what}", got, "Pass one of them.", lines)

    def _nothing(self) -> NoReturn:
        held = ", ".join(map(str, self.members[:SHOWN])) or "nothing"
        raw = [member.name for member in self.members if "binary" in member.type]
        if raw:
            lines = (
                f"x = numpy.stack([numpy.frombuffer(cell, 'float32') for cell in {self.code}[{raw[0]!r}]])",
                saving("x  # or numpy.unpackbits of 'uint8', of binary vectors"),
            )
            refuse(VectorsError, f"{self.what} must hold numbers", held, "Say what the bytes are.", lines)
        lines = (f"x = {self.code}", saving("numpy.stack(x)  # (n, d), one row a vector"))
        must, fix = f"{self.what} must hold vectors, one a row", "None of it is numbers of one length."
        refuse(VectorsError, must, held, fix, lines)


def single(what: str, type_: str, take: Callable[[], Any], code: str) -> Described:
    """What holds one matrix and nothing else."""
    return Described(what, (Member("", type_, take),), code)


def saving(code: str) -> str:
    """A line that saves an array.

    >>> saving("x.mean(1)  # or by the mask")
    "numpy.save('vectors.npy', x.mean(1))  # or by the mask"
    """
    value, mark, note = code.partition("  # ")
    return f"numpy.save('vectors.npy', {value}){mark}{note}"


def refuse(
    kind: type[InputError], must: str, got: object, fix: str, lines: Sequence[str], cause: Exception | None = None
) -> NoReturn:
    """Raise ``kind``: what must hold, what came, what to do, and the lines of code that do it.

    >>> refuse(ShapeError, "vectors must be (n, d)", "shape (3,)", "Stack them.", ["x = numpy.stack(members)"])
    Traceback (most recent call last):
    ...
    isonb.errors.ShapeError: vectors must be (n, d); got shape (3,). Stack them.
        import numpy; x = numpy.stack(members)
    """
    first, *rest = lines
    modules = ", ".join(dict.fromkeys(MODULES.findall("\n".join(line.partition("#")[0] for line in lines))))
    shell = first.startswith("isonb audit")
    brought = f"import {modules}; {first}" if modules and not shell else first
    raise kind(CODE.join([f"{must}; got {got}. {fix}", brought, *rest])) from cause


def library(name: str, path: Path, package: str, lines: Sequence[str]) -> Any:
    """A library that isonb doesn't bring, or a VectorsError that says how to get on without it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        must, fix = f"{name} must be installed to read {path.name}", f"pip install {package}, or where it was made:"
        refuse(VectorsError, must, f"no {name}", fix, lines, error)


def check_shape(shape: Sequence[int], what: str, code: str) -> None:
    """ShapeError unless ``shape`` is (n, d) with d of 2 or more."""
    if len(shape) == 2 and shape[1] >= 2:
        return
    if len(shape) > 2 and 1 in shape and len([size for size in shape if size != 1]) == 2:
        fix, line = "An axis of length 1 is left over.", "x.squeeze()"
    elif len(shape) == 3:
        fix, line = "Each row is a matrix, as of tokens: pool it.", "x.mean(1)  # or by the attention mask"
    elif len(shape) > 3:
        fix, line = "Each row is an array: pool or flatten it.", "x.reshape(len(x), -1)"
    else:
        fix = "RowSource are points." if len(shape) == 2 else "Stack them: one row a text."
        line = "x.reshape(-1, 384)  # the dimensions of your model"
    must, got = f"{what} must be an array (n, d) of d >= 2", f"shape {tuple(shape)}"
    refuse(ShapeError, must, got, fix, [f"x = {code}", saving(line)])


def check_dtype(kind: str, size: int, name: str, largest: Callable[[], float], what: str, code: str) -> None:
    """DtypeError for what is no number, and for integers that may be codes of numbers: those are asked about.

    ``kind`` and ``size`` as numpy has them; ``largest``: the largest magnitude of some of the values.
    """
    if kind == "f" or (kind in "iu" and size > 2) or (kind == "i" and size == 2):
        return
    if kind == "b" or (kind in "iu" and size == 1 and largest() <= 1):
        got, fix, line = f"{name}, zeros and ones", "Binary vectors have the numbers -1 and 1.", "x * 2.0 - 1"
    elif (kind, size) == ("u", 1):
        got = "uint8, which look like packed bits: each byte eight signs of a binary vector, not a number"
        fix = "Unpack them; if each byte is a quantised number, x.astype('float32') * scale + lowest."
        line = "numpy.unpackbits(x, axis=-1) * 2.0 - 1"
    elif (kind, size) == ("i", 1):
        got = "int8, which are quantised numbers, or packed bits of a binary vector (less 128)"
        fix = "Dequantise: times the scale plus the middle of each dimension, where they differ. Of packed bits: " + (
            "numpy.unpackbits((x + 128).astype('uint8'), axis=-1) * 2.0 - 1."
        )
        line = "x.astype('float32') / 127"
    elif (kind, size) == ("u", 2):
        got = "uint16, which may be the bits of bfloat16, or quantised numbers"
        fix = "View them as what they are; x.astype('float32') if they are plain numbers."
        line = "(x.astype('uint32') << 16).view('float32')  # bfloat16"
    elif kind == "c":
        got, fix, line = name, "Real numbers have cosines.", "numpy.concatenate([x.real, x.imag], axis=-1)"
    elif kind == "V":
        got, fix, line = name, "Bytes without a type: name it.", "x.view('uint8')  # or ml_dtypes.float8_e4m3fn"
    else:
        got, fix = name, "Pass the embeddings, not texts or objects."
        line = "numpy.stack(list(x)).astype('float32')"
    refuse(DtypeError, f"{what} must be numbers", got, fix, [f"x = {code}", saving(line)])


def largest_of(values: Any) -> float:
    """The largest magnitude of an array; 0 of none."""
    return float(abs(values.astype("float64")).max()) if math.prod(values.shape) else 0.0


def matrix_in(described: Described, name: str | None, hint: str = "") -> Any:
    """The matrix of a member, whose shape and type are checked."""
    member = described.chosen(name, hint)
    assert member.take is not None
    matrix, what, code = member.take(), described.what, described.code_of(member)
    check_shape(matrix.shape, what, code)
    if isinstance(matrix, torch.Tensor):
        return _checked_tensor(matrix.detach(), what, code)
    if isinstance(matrix, RowSource):
        return matrix
    kind, size, name = matrix.dtype.kind, matrix.dtype.itemsize, matrix.dtype.name
    if kind == "V" and size == 2 and name.startswith("void"):
        return Changed(matrix, bfloat16)
    if kind == "V" and not name.startswith("void"):  # the types of ml_dtypes, which torch doesn't know
        return Changed(matrix, lambda rows: rows.astype("float32"))
    check_dtype(kind, size, str(matrix.dtype), lambda: largest_of(matrix[:1000]), what, code)
    return matrix


def _checked_tensor(x: torch.Tensor, what: str, code: str) -> Any:
    if x.is_quantized:
        return x.dequantize()
    name = str(x.dtype).removeprefix("torch.")
    kind = "f" if x.is_floating_point() else "c" if x.is_complex() else "b" if name == "bool" else name[0]
    dense = x[:1000].to_dense() if x.layout == torch.strided else None
    check_dtype(kind, x.element_size(), name, lambda: 2.0 if dense is None else largest_of(dense.numpy()), what, code)
    if x.layout == torch.strided:
        return x
    flat: torch.Tensor = x.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]

    class _Sparse(RowSource):
        shape = tuple(x.shape)

        def __getitem__(self, rows: Any) -> torch.Tensor:
            index = torch.arange(len(flat))[rows] if isinstance(rows, slice) else torch.as_tensor(rows)
            return flat.index_select(0, index).to_dense()

    return _Sparse()
