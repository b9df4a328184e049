"""The lines of code below an error of the readers, by name. Tests run each until an audit reads what it leaves.

``{x}`` is Python for the numbers as they lie there, ``{path}`` the file, ``{d}`` a number of dimensions, ``{name}`` a
member. What has no line here says its sentence alone.
"""

from __future__ import annotations

from typing import NoReturn

from isonb.errors import CODE, InputError
from isonb.runtime.terminal import printable

_SAVED = "numpy.save('vectors.npy', {})"


def _of(value: str, load: str = "import isonb, numpy; x = {x}") -> tuple[str, str]:
    """Lines that load the numbers and save what becomes of them."""
    return load, _SAVED.format(value)


LINES: dict[str, tuple[str, ...]] = {
    "bool": _of("x * 2.0 - 1"),
    "packed bits": _of("numpy.unpackbits(x, axis=-1) * 2.0 - 1"),
    "int8": _of("x.astype('float32') / 127"),
    "bfloat16": _of("(x.astype('uint32') << 16).view('float32')"),
    "complex": _of("numpy.concatenate([x.real, x.imag], axis=-1)"),
    "float8": _of("x.astype('float32')"),
    "tokens": _of("x.mean(1)"),
    "tokens of texts": _of("numpy.stack([numpy.reshape(row, (-1, {d})).mean(0) for row in x])"),
    "empty dimensions": _of("numpy.delete(x, {dims}, axis=1)"),
    "pickled array": _of("numpy.stack(list(x))", "import numpy; x = numpy.load({path!r}, allow_pickle=True)"),
    "pickled model": (
        "import torch; x = torch.load({path!r}, weights_only=False)",
        "torch.save({{key: one for key, one in x.items() if isinstance(one, torch.Tensor)}}, 'vectors.pt')",
    ),
    "pickle": _of("numpy.stack(list(x))", "import numpy, pandas; x = pandas.read_pickle({path!r})"),
    "compressed array": _of("x", "import gzip, numpy; x = numpy.load(gzip.open({path!r}))"),
    "compressed index": _of(
        "index.reconstruct_n(0, index.ntotal)", "import faiss, numpy; index = faiss.read_index({path!r})"
    ),
    "index of bits": (
        "import faiss, numpy; index = faiss.read_index_binary({path!r})",
        "x = numpy.unpackbits(faiss.vector_to_array(index.xb).reshape(-1, index.d // 8), axis=-1)",
        _SAVED.format("x * 2.0 - 1"),
    ),
    "name": ("isonb audit {path} --name {name}",),
    "name in memory": ("isonb.audit({path}, name={name!r})",),
    "one kind of file": ("isonb audit {path}",),
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
