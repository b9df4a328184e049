"""The lines of code below an error of the readers, by name. Tests run each until an audit reads what it leaves.

``{x}`` is Python for the numbers as they lie there, ``{path}`` the file, ``{d}`` a number of dimensions, ``{name}`` a
member. What has no line here says its sentence alone.
"""

from __future__ import annotations

from typing import NoReturn

from isonb.errors import CODE, InputError
from isonb.runtime.terminal import printable


def _saved(value: str) -> tuple[str, str]:
    """Lines that load the numbers and save what becomes of them."""
    return "import isonb, numpy; x = {x}", f"numpy.save('vectors.npy', {value})"


LINES: dict[str, tuple[str, ...]] = {
    "bool": _saved("x * 2.0 - 1"),
    "packed bits": _saved("numpy.unpackbits(x, axis=-1) * 2.0 - 1"),
    "int8": _saved("x.astype('float32') / 127"),
    "bfloat16": _saved("(x.astype('uint32') << 16).view('float32')"),
    "complex": _saved("numpy.concatenate([x.real, x.imag], axis=-1)"),
    "float8": _saved("x.astype('float32')"),
    "tokens": _saved("numpy.stack([numpy.reshape(row, (-1, {d})).mean(0) for row in x])"),
    "empty dimensions": _saved("numpy.delete(x, {dims}, axis=1)"),
    "name": ("isonb audit {path} --name {name}",),
    "name in memory": ("isonb.audit({path}, name={name!r})",),
    "texts": ("isonb audit minilm --texts {path}",),
}


def refuse(
    kind: type[InputError],
    must: str,
    got: object,
    fix: str,
    advice: str = "",
    cause: Exception | None = None,
    **names: object,
) -> NoReturn:
    """Raise ``kind``: what must hold, what came, what to do, and the lines of this name that do it.

    >>> refuse(InputError, "vectors must be numbers", "bool", "Take -1 and 1.", "bool", x="numpy.load('a.npy')")
    Traceback (most recent call last):
    ...
    isonb.errors.InputError: vectors must be numbers; got bool. Take -1 and 1.
        import isonb, numpy; x = numpy.load('a.npy')
        numpy.save('vectors.npy', x * 2.0 - 1)
    """
    lines = [line.format(**names) for line in LINES[advice]] if advice else []
    raise kind(CODE.join([f"{must}; got {printable(str(got))}. {fix}", *lines])) from cause
