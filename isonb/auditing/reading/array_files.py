"""Arrays on disk: .npy and .npz, .pt and .safetensors, HDF5, FAISS indexes, .fvecs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from isonb.auditing.reading.described import Described, Part, VectorsError, refuse
from isonb.auditing.reading.sources import Changed, bfloat16, spooled
from isonb.errors import DtypeError

__all__ = [
    "array_parts",
    "as_numpy",
    "fvecs",
    "npy",
    "npz",
    "pickled",
    "stacked",
    "without_type",
]

PIECE = 2**22  # numbers read at a time


def npy(path: Path) -> Described:
    """A .npy file, mapped."""
    import numpy as np

    code = f"numpy.load({str(path)!r})"
    with path.open("rb") as file:
        shape, _, dtype = _header(file)
    if dtype.hasobject:
        pickled(path, f"numpy.load({str(path)!r}, allow_pickle=True)")
    parts = array_parts("", shape, dtype, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    return Described(f"{path.name} ({dtype} of shape {shape})", parts, code, code + "[{name!r}]")


def _header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    from numpy.lib import format as layout

    version = layout.read_magic(file)
    read = layout.read_array_header_1_0 if version == (1, 0) else layout.read_array_header_2_0
    try:
        found: tuple[tuple[int, ...], bool, Any] = read(file)
    except ValueError as error:
        if "'<f1'" not in str(error):
            raise
        lines = (
            f"raw = open('{getattr(file, 'name', 'vectors.npy')}', 'rb').read()[{file.tell()}:]",
            "x = numpy.frombuffer(raw, ml_dtypes.float8_e4m3fn).astype('float32').reshape(-1, 384)  # or float8_e5m2",
        )
        must, fix = (
            "the array must have a type that numpy knows",
            "It is float8, of one kind or another:",
        )
        refuse(DtypeError, must, "'<f1'", fix, lines)
    return found


def array_parts(name: str, shape: tuple[int, ...], dtype: Any, load: Callable[[], Any]) -> tuple[Part, ...]:
    """An array as one part, a structured one by its fields."""
    if dtype.names is None:
        return (Part(name, f"{dtype} of shape {shape}", load),)
    found = []
    for field in dtype.names:
        inner = dtype[field]
        told = f"{inner.base} of shape {(*shape, *inner.shape)}"
        take = partial(_field, load, field) if inner.shape else None
        found.append(Part(field, told, take))
    if not any(part.take for part in found) and all(dtype[field].kind == "f" for field in dtype.names):
        from numpy.lib.recfunctions import structured_to_unstructured

        names = f"{len(dtype.names)} fields of numbers"
        return (Part("columns", names, lambda: structured_to_unstructured(load())),)
    return tuple(found)


def _field(load: Callable[[], Any], field: str) -> Any:
    return load()[field]


def npz(path: Path) -> Described:
    """A .npz archive: one array, one of several by name, or one vector an id. Arrays are read in pieces."""
    code = f"numpy.load({str(path)!r})"
    pick = code + "[{name!r}]"
    found: dict[str, tuple[tuple[int, ...], Any]] = {}
    parts: list[Part] = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as file:
                    shape, _, dtype = _header(file)
                found[member.removesuffix(".npy")] = shape, dtype
    for name, (shape, dtype) in found.items():
        if dtype.hasobject:
            parts.append(Part(name, "pickled objects"))
        else:
            parts += array_parts(name, shape, dtype, partial(_member, path, name))
    vectors = {name for name, (shape, dtype) in found.items() if len(shape) == 1 and dtype.kind in "fiu"}
    if len(vectors) == len(found) > 1 and len({shape for shape, _ in found.values()}) == 1:
        parts = [stacked(list(found), lambda name: _member(path, name), path.name)]
    whole = [part for part in parts if part.take and len(found.get(part.name, ((), 0))[0]) == 2]
    if len(whole) == 1:  # ids and labels stand beside the only matrix
        parts = [p if p is whole[0] else Part(p.name, p.type, p.take, certain=False) for p in parts]
    if found and not any(part.take for part in parts):
        pickled(path, f"numpy.load({str(path)!r}, allow_pickle=True)['{next(iter(found))}']")
    return Described(f"{path.name} (npz)", tuple(parts), code, pick)


def _member(path: Path, name: str) -> Any:
    """One array of an archive, by way of a file without a name."""
    import numpy as np

    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        shape, fortran, dtype = _header(file)
        if len(shape) != 2 or fortran or dtype.kind not in "f" or dtype.itemsize < 2:
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
        step = max(1, PIECE // max(1, shape[1]))

        def pieces() -> Iterator[Any]:
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                yield np.frombuffer(file.read(rows * shape[1] * dtype.itemsize), dtype).reshape(rows, shape[1])

        return spooled(pieces(), f"{path.name}, {name}")


def stacked(names: list[str], get: Callable[[str], Any], what: str) -> Part:
    """One vector an id, as rows in the order of the ids."""

    def pieces() -> Iterator[Any]:
        for name in names:
            yield as_numpy(get(name)).reshape(1, -1)

    return Part("vectors", f"{len(names)} vectors, one an id", lambda: spooled(pieces(), what))


def as_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, torch.Tensor):
        return (value if value.dtype == torch.float64 else value.detach().float()).numpy()
    return np.asarray(value)


def pickled(path: Path, code: str) -> NoReturn:
    """Refuse pickled objects: loading them runs what they say."""
    refuse(
        VectorsError,
        f"{path.name} must hold numbers",
        "pickled objects, which are never loaded here, since they can run any code",
        "If you trust the file:",
        (f"x = {code}", "numpy.save('vectors.npy', numpy.stack(list(x)))  # objects as rows of numbers"),
    )


def fvecs(path: Path) -> Described:
    """The format of the TEXMEX sets: each row is its length in four bytes, and then float32."""
    import numpy as np

    raw = np.memmap(path, "<i4", mode="r")
    d = int(raw[0])
    rows = raw.reshape(-1, d + 1)
    code = f"numpy.fromfile({str(path)!r}, 'float32').reshape(-1, {d + 1})[:, 1:]"
    part = Part("", f"float32 of shape {(len(rows), d)}", lambda: rows.view("<f4")[:, 1:])
    return Described(f"{path.name} (fvecs)", (part,), code, code)


def without_type(array: Any) -> Any:
    """An array whose type torch doesn't know as one that gives float32: bfloat16, float8, wide floats."""
    kind, name = array.dtype.kind, array.dtype.name
    if kind == "V" and array.dtype.itemsize == 2 and not name.startswith("float"):
        return Changed(array, bfloat16 if name.startswith("void") else lambda rows: rows.astype("float32"))
    if kind == "V" and not name.startswith("void"):  # the types of ml_dtypes
        return Changed(array, lambda rows: rows.astype("float32"))
    return array
