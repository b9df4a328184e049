"""Arrays of numpy on disk: .npy, .npz and .fvecs, read in pieces; nothing that is pickled is ever loaded."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from isonb.auditing.reading.described import Described, Member, VectorsError, refuse, single
from isonb.auditing.reading.rows import spooled
from isonb.errors import DtypeError

Take = Callable[[], Any]  # gives an array
PIECE = 2**22  # numbers read at a time


def npy(path: Path) -> Described:
    import numpy as np

    with path.open("rb") as file:
        shape, _, dtype = _header(file)
    if dtype.hasobject:
        pickled(path, f"numpy.load({str(path)!r}, allow_pickle=True)")
    members = array_members("", shape, dtype, lambda: np.load(path, mmap_mode="r", allow_pickle=False))
    return Described(f"{path.name} ({dtype} of shape {shape})", members, f"numpy.load({str(path)!r})")


def _header(file: Any) -> tuple[tuple[int, ...], bool, Any]:
    from numpy.lib import format as layout

    read = layout.read_array_header_1_0 if layout.read_magic(file) == (1, 0) else layout.read_array_header_2_0
    try:
        shape, fortran, dtype = read(file)
    except ValueError as error:
        if "'<f1'" not in str(error):
            raise
        lines = (
            f"raw = open('{getattr(file, 'name', 'vectors.npy')}', 'rb').read()[{file.tell()}:]",
            "x = numpy.frombuffer(raw, ml_dtypes.float8_e4m3fn).astype('float32').reshape(-1, 384)  # or float8_e5m2",
        )
        must, fix = "the array must have a type that numpy knows", "It is float8, of one kind or another:"
        refuse(DtypeError, must, "'<f1'", fix, lines)
    return shape, fortran, dtype


def sized(name: str, shape: Sequence[int], dtype: Any, take: Take | None, certain: bool = True) -> Member:
    """An array as a member: its type and shape are told."""
    return Member(name, f"{str(dtype).removeprefix('torch.')} of shape {tuple(shape)}", take, certain)


def array_members(name: str, shape: tuple[int, ...], dtype: Any, load: Take) -> list[Member]:
    """An array as one member, a structured one by its fields."""
    if dtype.names is None:
        return [sized(name, shape, dtype, load)]

    def described(field: str) -> Member:
        inner = dtype[field]
        return sized(field, (*shape, *inner.shape), inner.base, (lambda: load()[field]) if inner.shape else None)

    if all(dtype[field].kind == "f" and not dtype[field].shape for field in dtype.names):
        from numpy.lib.recfunctions import structured_to_unstructured

        told = f"{len(dtype.names)} fields of numbers"
        return [Member("columns", told, lambda: structured_to_unstructured(load()))]
    return [described(field) for field in dtype.names]


def npz(path: Path) -> Described:
    """A .npz archive: one array, one of several by name, or one vector an id. Arrays are read in pieces."""
    code = f"numpy.load({str(path)!r})"
    held: dict[str, tuple[tuple[int, ...], Any]] = {}
    members: list[Member] = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as file:
                    shape, _, dtype = _header(file)
                held[member.removesuffix(".npy")] = shape, dtype
    for name, (shape, dtype) in held.items():
        loaded = array_members(name, shape, dtype, partial(_member, path, name))
        members += [Member(name, "pickled objects")] if dtype.hasobject else loaded
    if held and not any(member.take for member in members):
        pickled(path, f"numpy.load({str(path)!r}, allow_pickle=True)['{next(iter(held))}']")
    vectors = all(len(shape) == 1 and dtype.kind in "fiu" for shape, dtype in held.values())
    if vectors and len(held) > 1 and len({shape for shape, _ in held.values()}) == 1:
        members = [stacked(list(held), partial(_member, path), path.name)]
    matrices = [member for member in members if member.take and len(held.get(member.name, ((), 0))[0]) == 2]
    if len(matrices) == 1:  # ids and labels stand beside the only matrix
        members = [replace(member, certain=member is matrices[0]) for member in members]
    return Described(f"{path.name} (npz)", members, code)


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


def stacked(names: list[str], get: Callable[[str], Any], what: str) -> Member:
    """One vector an id, as rows in the order of the ids."""
    told = f"{len(names)} vectors, one an id"
    return Member("vectors", told, lambda: spooled((as_numpy(get(name)).reshape(1, -1) for name in names), what))


def as_numpy(value: Any) -> Any:
    """A tensor or what numpy takes as an array; floats but float64 as float32."""
    import numpy as np

    if isinstance(value, torch.Tensor):
        return (value if value.dtype == torch.float64 else value.detach().float()).numpy()
    return np.asarray(value)


def pickled(path: Path, code: str) -> NoReturn:
    """Refuse pickled objects: loading them runs what they say."""
    got = "pickled objects, which are never loaded here, since they can run any code"
    lines = (f"x = {code}", "numpy.save('vectors.npy', numpy.stack(list(x)))  # objects as rows of numbers")
    refuse(VectorsError, f"{path.name} must hold numbers", got, "If you trust the file:", lines)


def fvecs(path: Path) -> Described:
    """The format of the TEXMEX sets: each row is its length in four bytes, and then float32."""
    import numpy as np

    raw = np.memmap(path, "<i4", mode="r")
    rows = raw.reshape(-1, int(raw[0]) + 1)
    code = f"numpy.fromfile({str(path)!r}, 'float32').reshape(-1, {rows.shape[1]})[:, 1:]"
    told = f"float32 of shape {(len(rows), rows.shape[1] - 1)}"
    return single(f"{path.name} (fvecs)", told, lambda: rows.view("<f4")[:, 1:], code)
