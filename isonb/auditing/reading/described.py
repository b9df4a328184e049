"""What a file or an object holds, before any number is read: its members, and the errors that are built from them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from isonb.auditing.reading.rows import changed
from isonb.errors import CODE, DtypeError, InputError, ShapeError, fail
from isonb.runtime.files import DiskError

SHOWN = 8  # members that an error names
MODULES = re.compile(
    r"\b(numpy|pandas|torch|isonb|h5py|faiss|json|pathlib|sqlite3|safetensors\.torch|datasets|chromadb|lance|lancedb|gzip)\."
)
LEFT = "An axis of length 1 is left over."
POOL, STACK = "Each row is an array, as of tokens: pool it.", "Rows are points: stack them, one row a text."
# What may not be numbers, by the beginning of its type: what it looks like, what to do, and the line that does it.
CODED = {
    "bool": ("zeros and ones", "Binary vectors have the numbers -1 and 1.", "x * 2.0 - 1"),
    "uint8": (
        "which look like packed bits: each byte eight signs of a binary vector, not a number",
        "Unpack them; if each byte is a quantised number, x.astype('float32') * scale + lowest.",
        "numpy.unpackbits(x, axis=-1) * 2.0 - 1",
    ),
    "int8": (
        "which are quantised numbers, or packed bits of a binary vector (less 128)",
        "Dequantise: times the scale plus the middle of each dimension, where they differ. Of packed bits: "
        "numpy.unpackbits((x + 128).astype('uint8'), axis=-1) * 2.0 - 1.",
        "x.astype('float32') / 127",
    ),
    "uint16": (
        "which may be the bits of bfloat16, or quantised numbers",
        "View them as what they are; x.astype('float32') if they are plain numbers.",
        "(x.astype('uint32') << 16).view('float32')  # bfloat16",
    ),
    "complex": ("which have no cosines", "Pass real numbers.", "numpy.concatenate([x.real, x.imag], axis=-1)"),
    "void": ("bytes without a type", "Say their type.", "x.view('uint8')  # or ml_dtypes.float8_e4m3fn"),
    "": (
        "which are no numbers",
        "Pass the embeddings, not texts or objects.",
        "numpy.stack(list(x)).astype('float32')",
    ),
}
# What a member may hold that is no vector: what to do, and the two lines that do it, from {code}.
HELD = {
    "binary": (
        "Say what the bytes are.",
        "x = numpy.stack([numpy.frombuffer(cell, 'float32') for cell in {code}])",
        "numpy.save('vectors.npy', x)  # or numpy.unpackbits of 'uint8', of binary vectors",
    ),
    ": list<": (  # rows of rows
        POOL,
        "x = {code}",
        "numpy.save('vectors.npy', numpy.stack([numpy.stack(list(row)).mean(0) for row in x]))  # or by the mask",
    ),
    "pickled": (
        "They are never loaded here, since they can run any code. If you trust the file:",
        "x = {code}",
        "numpy.save('vectors.npy', numpy.stack(list(x)))  # objects as rows of numbers",
    ),
    "": (
        "None of it is numbers of one length.",
        "x = {code}",
        "numpy.save('vectors.npy', numpy.stack(x))  # (n, d), one row a vector",
    ),
}


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

    def matrix(self, name: str | None, hint: str = "") -> Any:
        """The checked matrix of the member with this name, or of the only one that holds vectors.

        ``hint``: it is in the member's name, if in that of one alone. VectorsError where that isn't clear.
        """
        usable = [member for member in self.members if member.take is not None]
        sure = [member for member in usable if member.name == name]
        if name is None:
            sure = [member for member in usable if member.certain] or usable
            sure = [member for member in sure if hint and hint in member.name.lower()] or sure
        if len(sure) != 1:
            self._unclear(usable, name)
        (member,) = sure
        assert member.take is not None
        return checked(member.take(), self.what, self._code_of(member))

    def _code_of(self, member: Member) -> str:
        pick = self.pick or self.code + "[{name!r}]"  # no format: a path may hold braces
        return pick.replace("{name!r}", repr(member.name)) if member.name else self.code

    def _unclear(self, usable: Sequence[Member], name: str | None) -> NoReturn:
        if not usable:
            held = ", ".join(map(str, self.members[:SHOWN])) or "nothing"
            key, member = next((key, one) for key in HELD for one in (*self.members, Member("", "")) if key in one.type)
            fix, *lines = HELD[key]
            code = self._code_of(member) if key else self.code
            must = f"{self.what} must hold {'numbers' if key else 'vectors, one a row'}"
            refuse(VectorsError, must, held, fix, [line.format(code=code) for line in lines])
        told = ", ".join(map(str, usable[:SHOWN])) + (", ..." if len(usable) > SHOWN else "")
        got = f"{len(usable)} that may be them ({told})" if name is None else f"{name!r} of {told}"
        path = re.search(r"\((['\"])(.*?)\1", self.code)
        place = repr(path[2]) if path else self.code
        first = usable[0].name
        lines = [f"x = isonb.auditing.vectors_of({place}, {first!r})  # or --name {first}", "print(isonb.audit(x))"]
        refuse(VectorsError, f"--name must name the vectors in {self.what}", got, "Pass one of them.", lines)


def single(what: str, type_: str, take: Callable[[], Any], code: str) -> Described:
    """What holds one matrix and nothing else."""
    return Described(what, (Member("", type_, take),), code)


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
    brought = f"import {modules}; {first}" if modules and not first.startswith("isonb audit") else first
    raise kind(CODE.join([f"{must}; got {got}. {fix}", brought, *rest])) from cause


def checked(matrix: Any, what: str, code: str) -> Any:
    """A matrix (n, d) with d of 2 or more, of numbers: what may be a code of numbers is asked about.

    Raises ShapeError and DtypeError with the lines that would make it one.
    """
    shape, dtype = tuple(matrix.shape), getattr(matrix, "dtype", None)
    if len(shape) != 2 or shape[1] < 2:
        fix, line = STACK, "x.reshape(-1, 384)  # the dimensions of your model"
        if len(shape) > 2:
            fix, line = (LEFT, "x.squeeze()") if 1 in shape else (POOL, "x.mean(1)  # or by the attention mask")
        must = f"{what} must be an array (n, d) of d >= 2"
        refuse(ShapeError, must, f"shape {shape}", fix, [f"x = {code}", _saved(line)])
    if dtype is None:  # rows that are made when they are read
        return matrix
    name = str(dtype).removeprefix("torch.") if isinstance(matrix, torch.Tensor) else dtype.name
    if name.startswith(("float", "bfloat", "int16", "int32", "int64", "uint32", "uint64")):
        return matrix.detach() if isinstance(matrix, torch.Tensor) else matrix
    if name == "void16":  # as ml_dtypes leaves bfloat16 in a .npy file
        return changed(matrix, lambda rows: (rows.copy().view("<u2").astype("uint32") << 16).view("float32"))
    key = next(key for key in CODED if name.startswith(key))
    if key in ("uint8", "int8") and {*map(abs, set(matrix[:1000].ravel().tolist()))} <= {0, 1}:
        key = "bool"
    told, fix, line = CODED[key]
    shown = name if isinstance(matrix, torch.Tensor) else dtype
    refuse(DtypeError, f"{what} must be numbers", f"{shown}, {told}", fix, [f"x = {code}", _saved(line)])


def _saved(code: str) -> str:
    value, mark, note = code.partition("  # ")
    return f"numpy.save('vectors.npy', {value}){mark}{note}"


def spooled(pieces: Iterable[Any], what: str, code: str) -> Any:
    """Arrays (m, d) of a stream as one mapped array in a file without a name, which ends with the process.

    Floats as in the first piece, integers as float64. A piece (m, 0) is m missing rows, which become NaN.
    """
    import numpy as np

    n, d, missing, dtype = 0, 0, 0, np.dtype("float64")
    with tempfile.TemporaryFile(prefix="isonb-") as file:

        def write(rows: Any) -> None:
            try:  # written, not mapped: a full disk is then an error and no signal
                file.write(np.ascontiguousarray(rows, dtype=dtype).data)
            except OSError as error:
                must, fix = f"the disk must take {what} while it is read", "Free some space, or set TMPDIR."
                raise DiskError(f"{must}; got {error.strerror}. {fix}") from error

        for piece in pieces:
            n += len(piece)
            if piece.shape[-1] == 0:
                missing += len(piece)
                continue
            if not d:
                d = checked(piece, what, code).shape[1]
                own = piece.dtype.kind == "f" and piece.dtype.itemsize < 8
                dtype = piece.dtype.newbyteorder("=") if own else dtype
            elif piece.shape[1] != d:
                got = f"{d} numbers in the first row and {piece.shape[1]} about row {n - len(piece):,}"
                fail(ShapeError, f"every row of {what} must hold a vector of one length", got, "Leave the others out.")
            write(np.full((missing, d), np.nan))
            write(piece)
            missing = 0
        if not n:
            fail(ShapeError, f"{what} must have rows", "none", "Look at the program that wrote it.")
        if not d:
            lines = (f"print({code}.count())", f"print({code}.head())")
            refuse(VectorsError, f"{what} must hold vectors", "missing values alone", "Name another column.", lines)
        write(np.full((missing, d), np.nan))
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=(n, d))
