"""Tensors on disk: .pt and .safetensors, HDF5, and FAISS indexes that keep their vectors whole."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.reading.array_files import PIECE, pickled, stacked
from isonb.auditing.reading.described import Described, Part, VectorsError, refuse
from isonb.auditing.reading.sources import spooled
from isonb.errors import DtypeError, needs

__all__ = ["faiss_index", "hdf5", "safetensors", "torch_file"]


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
    return of_tensors(held, f"{path.name} (torch)", code)


def of_tensors(held: Any, what: str, code: str) -> Described:
    """A tensor, a list of tensors, or a dictionary of them by their path."""
    if isinstance(held, torch.Tensor):
        return Described(what, (_tensor_part("", held),), code, code)
    if isinstance(held, list | tuple) and held and all(isinstance(one, torch.Tensor) for one in held):
        if held[0].ndim == 1:
            held = torch.stack(list(held)) if len({one.shape for one in held}) == 1 else held[0]
            return Described(what, (_tensor_part("", held),), f"torch.stack({code})", code)
        held = {str(i): one for i, one in enumerate(held)}
    flat = dict(_flat(held)) if isinstance(held, dict) else {}
    vectors = [name for name, one in flat.items() if one.ndim == 1]
    if len(vectors) == len(flat) > 1 and len({one.shape for one in flat.values()}) == 1:
        return Described(what, (stacked(vectors, flat.__getitem__, what),), f"torch.stack([*{code}.values()])", code)
    two = sum(one.ndim == 2 for one in flat.values())
    parts = [_tensor_part(name, one, certain=one.ndim == 2 or two != 1) for name, one in flat.items()]
    others = [Part(str(key), type(one).__name__) for key, one in (held.items() if isinstance(held, dict) else ())]
    return Described(what, tuple(parts or others), code, code + "[{name!r}]")


def _flat(held: dict[Any, Any], before: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    for key, value in held.items():
        if isinstance(value, torch.Tensor):
            yield f"{before}{key}", value
        elif isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")


def _tensor_part(name: str, tensor: torch.Tensor, certain: bool = True) -> Part:
    told = f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
    return Part(name, told, lambda: tensor, certain)


def safetensors(path: Path) -> Described:
    """A .safetensors file, mapped."""
    with needs("reading .safetensors", "lab"):
        from safetensors import safe_open
    file: Any = safe_open(str(path), framework="pt")
    held = {name: file.get_tensor(name) for name in list(file.keys())}
    return of_tensors(held, f"{path.name} (safetensors)", f"safetensors.torch.load_file({str(path)!r})")


def hdf5(path: Path) -> Described:
    """The arrays of an HDF5 file by their path."""
    with needs("reading HDF5", "lab"):
        try:
            import h5py
        except ImportError as error:
            raise VectorsError(
                f"h5py must be installed to read {path.name}; got no h5py. pip install h5py, or save the array as .npy."
            ) from error
    file = h5py.File(path)
    found: dict[str, Any] = {}
    file.visititems(lambda name, node: found.update({name: node}) if isinstance(node, h5py.Dataset) else None)

    def take(node: Any) -> Any:
        if node.ndim != 2 or node.dtype.kind != "f":
            return node[()]
        step = max(1, PIECE // max(1, node.shape[1]))
        return spooled((node[i : i + step] for i in range(0, len(node), step)), path.name)

    numbers = {name: node for name, node in found.items() if node.ndim and node.dtype.kind in "fiubV"}
    two = sum(node.ndim == 2 for node in numbers.values())
    parts = [
        Part(name, f"{node.dtype} of shape {node.shape}", partial(take, node), node.ndim == 2 or two != 1)
        for name, node in numbers.items()
    ]
    vectors = [name for name, node in numbers.items() if node.ndim == 1 and node.dtype.kind == "f"]
    if len(vectors) == len(numbers) > 1 and len({node.shape for node in numbers.values()}) == 1:
        parts = [stacked(vectors, lambda name: numbers[name][()], path.name)]
    code = f"h5py.File({str(path)!r})"
    return Described(f"{path.name} (HDF5)", tuple(parts), code, code + "[{name!r}][()]")


def faiss_index(path: Path) -> Described:
    """A FAISS index that keeps its vectors whole."""
    code = f"faiss.read_index({str(path)!r})"
    try:
        import faiss
    except ImportError as error:
        fix = "pip install faiss-cpu, or where it was made:"
        lines = (f"index = {code}", "numpy.save('vectors.npy', index.reconstruct_n(0, index.ntotal))")
        try:
            refuse(VectorsError, f"faiss must be installed to read {path.name}", "no faiss", fix, lines)
        except VectorsError as told:
            raise told from error
    with path.open("rb") as file:
        if file.read(2) == b"IB":
            lines = (
                f"index = faiss.read_index_binary({str(path)!r})",
                "x = numpy.unpackbits(faiss.vector_to_array(index.xb).reshape(-1, index.d // 8), axis=-1) * 2.0 - 1",
            )
            refuse(DtypeError, f"{path.name} must hold numbers", "an index of packed bits", "Unpack them:", lines)
    whole: Any = faiss.read_index(str(path))
    index: Any = faiss.downcast_index(whole)
    kind = type(index).__name__
    while kind.startswith(("IndexIDMap", "IndexHNSWFlat", "IndexRefine")):
        inner = index.index if kind.startswith("IndexIDMap") else getattr(index, "storage", None) or index.refine_index
        index = faiss.downcast_index(inner)
        kind = type(index).__name__
    if kind.startswith("IndexIVFFlat"):
        index.make_direct_map()
    elif not kind.startswith("IndexFlat"):
        lines = (f"index = {code}", "numpy.save('vectors.npy', index.reconstruct_n(0, index.ntotal))  # rounded ones")
        fix = "Audit what was put in; what it gives back was compressed."
        refuse(VectorsError, f"{path.name} must keep its vectors whole, as IndexFlat does", kind, fix, lines)
    n, d = index.ntotal, index.d
    step = max(1, PIECE // d)

    def pieces() -> Iterator[Any]:
        for i in range(0, whole.ntotal, step):  # the whole owns its parts
            yield index.reconstruct_n(i, min(step, n - i))

    part = Part("", f"float32 of shape {(n, d)}", lambda: spooled(pieces(), path.name))
    return Described(f"{path.name} (FAISS, {kind})", (part,), code, code)
