"""Tensors on disk: .pt and .safetensors, HDF5, and FAISS indexes that keep their vectors whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.reading.array_files import PIECE, pickled, sized, stacked
from isonb.auditing.reading.described import Described, Member, VectorsError, library, refuse, saving, single
from isonb.auditing.reading.rows import spooled
from isonb.errors import DtypeError


def torch_file(path: Path) -> Described:
    """Tensors of torch.save, without their pickled company."""
    import pickle

    code = f"torch.load({str(path)!r}, weights_only=True)"
    try:
        try:
            held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except (RuntimeError, ValueError):  # the format before 1.6, and some others, can't be mapped
            held = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        pickled(path, f"torch.load({str(path)!r}, weights_only=False)")
    return _of_tensors(held, f"{path.name} (torch)", code)


def safetensors(path: Path) -> Described:
    from safetensors import safe_open

    file: Any = safe_open(str(path), framework="pt")
    held = {name: file.get_tensor(name) for name in list(file.keys())}
    return _of_tensors(held, f"{path.name} (safetensors)", f"safetensors.torch.load_file({str(path)!r})")


def _of_tensors(held: Any, what: str, code: str) -> Described:
    """A tensor, a list of tensors, or a dictionary of them by their path."""
    if isinstance(held, list | tuple) and held and all(isinstance(one, torch.Tensor) for one in held):
        if held[0].ndim == 1:
            alike = len({one.shape for one in held}) == 1
            held, code = torch.stack(list(held)) if alike else held[0], f"torch.stack({code})"
        else:
            held = {str(i): one for i, one in enumerate(held)}
    if isinstance(held, torch.Tensor):
        return Described(what, [sized("", held.shape, held.dtype, lambda: held)], code)
    flat = dict(_flat(held)) if isinstance(held, dict) else {}
    members = _of_several(flat, lambda name: flat[name], what)
    others = [Member(str(key), type(one).__name__) for key, one in (held.items() if isinstance(held, dict) else ())]
    if members and members[0].name not in flat:
        return Described(what, members, f"torch.stack([*{code}.values()])", f"torch.stack([*{code}.values()])")
    return Described(what, members or others, code)


def _flat(held: dict[Any, Any], before: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    for key, value in held.items():
        if isinstance(value, torch.Tensor):
            yield f"{before}{key}", value
        elif isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")


def _of_several(arrays: dict[str, Any], take: Any, what: str) -> list[Member]:
    """Arrays by name; where all are vectors of one length, the rows of one matrix. The only matrix is certain."""
    shapes = {tuple(one.shape) for one in arrays.values()}
    if len(arrays) > 1 and len(shapes) == 1 and len(next(iter(shapes))) == 1:
        return [stacked(list(arrays), take, what)]
    two = sum(one.ndim == 2 for one in arrays.values())
    return [
        sized(name, one.shape, one.dtype, partial(take, name), one.ndim == 2 or two != 1)
        for name, one in arrays.items()
    ]


def hdf5(path: Path) -> Described:
    code = f"h5py.File({str(path)!r})"
    h5py = library("h5py", path, "h5py", (f"x = {code}['NAME'][()]", saving("x")))
    file = h5py.File(path)
    arrays: dict[str, Any] = {}

    def note(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and node.ndim and node.dtype.kind in "fiubV":
            arrays[name] = node

    file.visititems(note)

    def take(name: str) -> Any:
        node = arrays[name]
        if node.ndim != 2 or node.dtype.kind != "f":
            return node[()]
        step = max(1, PIECE // max(1, node.shape[1]))
        return spooled((node[i : i + step] for i in range(0, len(node), step)), path.name)

    return Described(f"{path.name} (HDF5)", _of_several(arrays, take, path.name), code, code + "[{name!r}][()]")


def faiss_index(path: Path) -> Described:
    """A FAISS index that keeps its vectors whole."""
    code = f"faiss.read_index({str(path)!r})"
    rebuilt = (f"index = {code}", "numpy.save('vectors.npy', index.reconstruct_n(0, index.ntotal))")
    faiss = library("faiss", path, "faiss-cpu", rebuilt)
    with path.open("rb") as file:
        if file.read(2) == b"IB":
            lines = (
                f"index = faiss.read_index_binary({str(path)!r})",
                "x = numpy.unpackbits(faiss.vector_to_array(index.xb).reshape(-1, index.d // 8), axis=-1) * 2.0 - 1",
            )
            refuse(DtypeError, f"{path.name} must hold numbers", "an index of packed bits", "Unpack them:", lines)
    whole: Any = faiss.read_index(str(path))
    index: Any = faiss.downcast_index(whole)
    while type(index).__name__.startswith(("IndexIDMap", "IndexHNSWFlat", "IndexRefine")):
        mapped = type(index).__name__.startswith("IndexIDMap")
        inner = index.index if mapped else getattr(index, "storage", None) or index.refine_index
        index = faiss.downcast_index(inner)
    kind = type(index).__name__
    if kind.startswith("IndexIVFFlat"):
        index.make_direct_map()
    elif not kind.startswith("IndexFlat"):
        fix = "Audit what was put in; what it gives back was compressed."
        lines = (rebuilt[0], f"{rebuilt[1]}  # rounded ones")
        refuse(VectorsError, f"{path.name} must keep its vectors whole, as IndexFlat does", kind, fix, lines)
    n, d = index.ntotal, index.d
    step = max(1, PIECE // d)

    def pieces() -> Iterator[Any]:
        for i in range(0, whole.ntotal, step):  # the whole owns its members
            yield index.reconstruct_n(i, min(step, n - i))

    told = f"float32 of shape {(n, d)}"
    return single(f"{path.name} (FAISS, {kind})", told, lambda: spooled(pieces(), path.name), code)
