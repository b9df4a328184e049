"""Files of arrays: .npy, .npz, .pt, .safetensors, HDF5, FAISS; nothing pickled is loaded."""

from __future__ import annotations

import importlib
import re
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.described import Described, Member, VectorsError
from isonb.auditing.reading.spool import PIECE, spooled
from isonb.auditing.reading.values import Stored, members_of, refuse_pickled

SPARSE = {"data", "format", "shape"}  # arrays of an archive that scipy.sparse.save_npz has written


def npy(path: Path) -> Described:
    """One array, mapped; the file must be as long as its header says."""
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            fix = "Raw numbers, as of numpy.memmap or tofile, don't say their shape: save them by numpy.save."
            refuse(VectorsError, f"{path.name} must begin as numpy.save writes it", "other bytes", fix)
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError as error:
        if "object" in str(error).lower():
            refuse_pickled(path.name)
        raise
    size = path.stat().st_size - array.offset
    if size != array.nbytes:
        must = f"{path.name} must hold one array of {array.nbytes:,} bytes, as its header says"
        refuse(VectorsError, must, f"{size:,}", "Save each array in a file of its own.")
    return Described(path.name, "", members_of(array, path.name), path)


def npz(path: Path) -> Described:
    """A .npz archive: one array, one of several by name, or one vector an id; unpacked on the disk."""
    from numpy.lib import format as layout

    def load(name: str) -> Any:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="isonb-") as folder:
            return np.load(archive.extract(f"{name}.npy", folder), mmap_mode="r")  # the map keeps the file

    arrays: Any = {}
    with zipfile.ZipFile(path) as archive:
        for member in (name for name in archive.namelist() if name.endswith(".npy")):
            with archive.open(member) as file:
                first = layout.read_magic(file) == (1, 0)
                shape, _, dtype = (layout.read_array_header_1_0 if first else layout.read_array_header_2_0)(file)
            name = member.removesuffix(".npy")
            arrays[name] = Stored(shape, dtype, partial(load, name))
    if set(arrays) >= SPARSE:
        import scipy.sparse

        arrays = scipy.sparse.load_npz(path)
    return Described(path.name, "npz", members_of(arrays, path.name), path)


def torch_file(path: Path) -> Described:
    """Tensors of torch.save, without their pickled company: one, a list, or a dictionary by their path."""
    import pickle

    try:
        value = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        refuse_pickled(path.name)
    except (RuntimeError, NotImplementedError):  # sparse tensors can't be mapped
        value = torch.load(path, map_location="cpu", weights_only=True)
    return Described(path.name, "torch", members_of(value, path.name), path)


def safetensors(path: Path) -> Described:
    """Tensors by name; the names that count in their order."""
    from safetensors.torch import load_file

    tensors = dict(sorted(load_file(path).items(), key=lambda item: natural_order(item[0])))
    return Described(path.name, "safetensors", members_of(tensors, path.name), path)


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts names that count: 10 after 2."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def _library(name: str, path: Path, package: str) -> Any:
    """A library that isonb doesn't bring, or a VectorsError that says so."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        fix = f"pip install {package}, or save the vectors by numpy.save where the file was made."
        refuse(VectorsError, f"{name} must be installed to read {path.name}", f"no {name}", fix, cause=error)


def hdf5(path: Path) -> Described:
    """The arrays of all groups, by their path."""
    file = _library("h5py", path, "h5py").File(path)
    nodes: dict[str, Any] = {}
    file.visititems(nodes.__setitem__)

    def load(node: Any) -> Any:
        if node.ndim != 2:
            return node[()]
        step = max(1, PIECE // max(1, node.shape[1]))
        return spooled((node[i : i + step] for i in range(0, len(node), step)), path.name)

    arrays = {
        name: Stored(nodes[name].shape, nodes[name].dtype, partial(load, nodes[name]))
        for name in sorted(nodes, key=natural_order)
        if getattr(nodes[name], "ndim", 0) and nodes[name].dtype.kind in "fiubV"
    }
    return Described(path.name, "HDF5", members_of(arrays, path.name), path)


def faiss_index(path: Path) -> Described:
    """A FAISS index that keeps its vectors whole, in the order in which they were put in, or of their ids."""
    faiss = _library("faiss", path, "faiss-cpu")
    with path.open("rb") as file:
        whole: Any = None if file.read(2) == b"IB" else faiss.read_index(str(path))  # it owns its members
    kind, index = "an index of packed bits", whole
    while whole is not None:
        index = faiss.downcast_index(index)
        kind = type(index).__name__
        if not kind.startswith(("IndexIDMap", "IndexHNSWFlat")):
            break
        index = getattr(index, "index", None) or index.storage
    in_lists = kind.startswith("IndexIVFFlat")
    if not in_lists and not kind.startswith("IndexFlat"):
        fix = "What it gives back was compressed: audit what was put in, saved by numpy.save."
        refuse(VectorsError, f"{path.name} must keep its vectors whole, as IndexFlat does", kind, fix)
    members = []
    if index.ntotal:
        orders = _of_lists(faiss, index) if in_lists else {"": lambda: index.reconstruct_n(0, whole.ntotal)}
        type_ = f"float32 of shape {(index.ntotal, index.d)}"
        members = [
            Member(name, f"{type_} in the order of the {name}" if name else type_, orders[name]) for name in orders
        ]
    return Described(path.name, f"FAISS, {kind}", members, path)


def _of_lists(faiss: Any, index: Any) -> dict[str, Callable[[], Any]]:
    """The vectors of inverted lists in the order of their ids; two orders, where the ids don't rise in each list."""
    lists = [
        (
            faiss.rev_swig_ptr(index.invlists.get_ids(i), size).copy(),
            faiss.rev_swig_ptr(index.invlists.get_codes(i), size * index.code_size).copy(),
        )
        for i in range(index.nlist)
        if (size := index.invlists.list_size(i))
    ]
    ids, codes = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    vectors = codes.view("<f4").reshape(len(ids), -1)
    by_ids = vectors[ids.argsort(kind="stable")]
    if all((np.diff(part) > 0).all() for part, _ in lists):
        return {"": lambda: by_ids}
    return {"ids": lambda: by_ids, "lists": lambda: vectors}
