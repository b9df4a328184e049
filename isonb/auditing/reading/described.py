"""What a file or an object holds, before any number is read: its parts, and the errors that are built from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from isonb.errors import CODE, DtypeError, InputError, ShapeError

__all__ = ["Described", "Part", "VectorsError", "check_dtype", "check_shape", "largest_of", "refuse", "saving"]

SHOWN = 8  # parts that an error names
LIBRARIES = (
    "numpy pandas torch isonb h5py faiss json pathlib sqlite3 safetensors.torch datasets chromadb gensim lance"
    " ml_dtypes sklearn.decomposition"
)
MODULES = re.compile(rf"\b({'|'.join(LIBRARIES.split())})\.")


class VectorsError(InputError):
    """Vectors that can't be taken from a file or an object; the message ends with the lines that would help."""


@dataclass(frozen=True)
class Part:
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
    """A file or an object by its parts. ``code``: Python that loads it, ``pick`` the same for the part {name!r}."""

    what: str
    parts: tuple[Part, ...]
    code: str
    pick: str

    def chosen(self, name: str | None, hint: str = "") -> Part:
        """The part with this name, or the only one that holds vectors (with ``hint`` in its name, if only one has).

        VectorsError where that isn't clear.
        """
        usable = [part for part in self.parts if part.take is not None]
        if name is not None:
            found = [part for part in usable if part.name == name]
            return found[0] if found else self._unclear(usable, name)
        sure = [part for part in usable if part.certain] or usable
        sure = [part for part in sure if hint and hint in part.name.lower()] or sure
        return sure[0] if len(sure) == 1 else self._unclear(sure, None)

    def _unclear(self, usable: Sequence[Part], name: str | None) -> NoReturn:
        told = ", ".join(map(str, usable[:SHOWN])) + (", ..." if len(usable) > SHOWN else "")
        if not usable:
            held = ", ".join(map(str, self.parts[:SHOWN])) or "nothing"
            raw = [part.name for part in self.parts if "binary" in part.type]
            if raw:
                lines = (
                    f"x = numpy.stack([numpy.frombuffer(cell, 'float32') for cell in {self.code}[{raw[0]!r}]])",
                    saving("x  # or numpy.unpackbits of 'uint8', of binary vectors"),
                )
                refuse(VectorsError, f"{self.what} must hold numbers", held, "Say what the bytes are.", lines)
            refuse(
                VectorsError,
                f"{self.what} must hold vectors, one a row",
                held,
                "None of it is numbers of one length.",
                (f"x = {self.code}", saving("numpy.stack(x)  # (n, d), one row a vector")),
            )
        got = f"{len(usable)} that may be them ({told})" if name is None else f"{name!r} of {told}"
        lines = (
            f"x = isonb.auditing.vectors_of({self.place}, {usable[0].name!r})  # or --name {usable[0].name}",
            "print(isonb.audit(x))",
        )
        refuse(VectorsError, f"--name must name the vectors in {self.what}", got, "Pass one of them.", lines)

    @property
    def place(self) -> str:
        """Python for what is read: the path in quotes, or the variable."""
        start, _, rest = self.code.partition("('")
        return f"'{rest.split(chr(39))[0]}'" if rest else start

    def code_of(self, part: Part) -> str:
        """Python that loads one part."""
        return self.pick.format(name=part.name) if part.name else self.code


def saving(code: str) -> str:
    """A line that saves an array.

    >>> saving("x.mean(1)  # or by the mask")
    "numpy.save('vectors.npy', x.mean(1))  # or by the mask"
    """
    value, mark, note = code.partition("  # ")
    return f"numpy.save('vectors.npy', {value}){mark}{note}"


def refuse(kind: type[InputError], must: str, got: object, fix: str, lines: Sequence[str]) -> NoReturn:
    """Raise ``kind``: what must hold, what came, what to do, and the lines of code that do it.

    >>> refuse(ShapeError, "vectors must be (n, d)", "shape (3,)", "Stack them.", ["x = numpy.stack(parts)"])
    Traceback (most recent call last):
    ...
    isonb.errors.ShapeError: vectors must be (n, d); got shape (3,). Stack them.
        import numpy; x = numpy.stack(parts)
    """
    first, *rest = lines
    modules = ", ".join(dict.fromkeys(MODULES.findall("\n".join(line.partition("#")[0] for line in lines))))
    shell = first.startswith("isonb audit")
    brought = f"import {modules}; {first}" if modules and not shell else first
    raise kind(CODE.join([f"{must}; got {got}. {fix}", brought, *rest]))


def check_shape(shape: Sequence[int], what: str, code: str) -> None:
    """ShapeError unless ``shape`` is (n, d) with d of 2 or more."""
    if len(shape) == 2 and shape[1] >= 2:
        return
    lines = ["x = " + code]
    if len(shape) > 2 and 1 in shape and len([size for size in shape if size != 1]) == 2:
        fix, line = "An axis of length 1 is left over.", "x.squeeze()"
    elif len(shape) == 3:
        fix, line = "Each row is a matrix, as of tokens: pool it.", "x.mean(1)  # or by the attention mask"
    elif len(shape) > 3:
        fix, line = "Each row is an array: pool or flatten it.", "x.reshape(len(x), -1)"
    elif len(shape) == 2:
        fix, line = "Rows are points.", "x.reshape(-1, 384)  # the dimensions of your model"
    else:
        fix, line = "Stack them: one row a text.", "x.reshape(-1, 384)  # the dimensions of your model"
    refuse(
        ShapeError,
        f"{what} must be an array (n, d) of d >= 2",
        f"shape {tuple(shape)}",
        fix,
        [*lines, saving(line)],
    )


def check_dtype(kind: str, size: int, name: str, largest: Callable[[], float], what: str, code: str) -> None:
    """DtypeError for what is no number, and for integers that may be codes of numbers: those are asked about.

    ``kind`` and ``size`` as numpy has them; ``largest``: the largest magnitude of some of the values.
    """
    lines = [f"x = {code}"]
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
    refuse(DtypeError, f"{what} must be numbers", got, fix, [*lines, saving(line)])


def largest_of(values: Any) -> float:
    """The largest magnitude of an array; 0 of none."""
    return float(abs(values.astype("float64")).max()) if math.prod(values.shape) else 0.0
