"""Files of arrays: .npy, .npz, .pt, .safetensors, HDF5, FAISS; nothing pickled is loaded."""

from __future__ import annotations

import importlib
import re
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.described import Described, Member, VectorsError
from isonb.auditing.reading.spool import PIECE, spooled
from isonb.auditing.reading.values import Stored, members_of
from isonb.errors import DtypeError

TRUST = "They are never loaded here, since they can run any code. If you trust the file:"
SPARSE = {"data", "format", "shape"}  # arrays of an archive that scipy.sparse.save_npz has written


def npy(path: Path) -> Described:
    """One array, mapped; the file must be as long as its header says."""
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            must, got = f"{path.name} must begin as numpy.save writes it", "other bytes"
            fix = "Raw numbers, as of numpy.memmap or tofile, don't say their shape: save them by numpy.save."
            refuse(VectorsError, must, got, fix)
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError as error:
        if "object" not in str(error).lower():
            raise
        members = [Member("", "pickled objects", refusal=(TRUST, "pickled array", {}))]
        return Described(path.name, "", members, path)
    size = path.stat().st_size - array.offset
    if size != array.nbytes:
        must, got = f"{path.name} must hold one array of {array.nbytes:,} bytes, as its header says", f"{size:,}"
        refuse(VectorsError, must, got, "Save each array in a file of its own.")
    return Described(path.name, "", members_of(array, path.name), path)


def npz(path: Path) -> Described:
    """A .npz archive: one array, one of several by name, or one vector an id; unpacked on the disk."""
    from numpy.lib import format as layout

    def load(name: str) -> Any:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="isonb-") as folder:
            return np.load(archive.extract(f"{name}.npy", folder), mmap_mode="r")  # the map keeps the file

    held = {}
    with zipfile.ZipFile(path) as archive:
        for member in (name for name in archive.namelist() if name.endswith(".npy")):
            with archive.open(member) as file:
                first = layout.read_magic(file) == (1, 0)
                shape, _, dtype = (layout.read_array_header_1_0 if first else layout.read_array_header_2_0)(file)
            name = member.removesuffix(".npy")
            held[name] = Stored(shape, dtype, partial(load, name))
    value: Any = held
    if set(held) >= SPARSE:
        import scipy.sparse

        value = scipy.sparse.load_npz(path)
    return Described(path.name, "npz", members_of(value, path.name), path)


def torch_file(path: Path) -> Described:
    """Tensors of torch.save, without their pickled company: one, a list, or a dictionary by their path."""
    import pickle

    try:
        held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        members = [Member("", "pickled objects", refusal=(TRUST, "pickled model", {}))]
        return Described(path.name, "torch", members, path)
    except (RuntimeError, NotImplementedError):  # sparse tensors can't be mapped
        held = torch.load(path, map_location="cpu", weights_only=True)
    return Described(path.name, "torch", members_of(held, path.name), path)


def safetensors(path: Path) -> Described:
    from safetensors.torch import load_file

    held = load_file(path)
    return Described(
        path.name, "safetensors", members_of({key: held[key] for key in sorted(held, key=counted)}, path.name), path
    )


def counted(name: str) -> list[tuple[int, str]]:
    """The order of names that count: 10 after 2."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def library(name: str, path: Path, package: str) -> Any:
    """A library that isonb doesn't bring, or a VectorsError that says so."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        fix = f"pip install {package}, or save the vectors by numpy.save where the file was made."
        refuse(VectorsError, f"{name} must be installed to read {path.name}", f"no {name}", fix, cause=error)


def hdf5(path: Path) -> Described:
    """The arrays of all groups, by their path."""
    file = library("h5py", path, "h5py").File(path)
    nodes: dict[str, Any] = {}
    file.visititems(nodes.__setitem__)
    arrays = {name: one for name, one in nodes.items() if getattr(one, "ndim", 0) and one.dtype.kind in "fiubV"}

    def load(name: str) -> Any:
        node = arrays[name]
        if node.ndim != 2:
            return node[()]
        step = max(1, PIECE // max(1, node.shape[1]))
        return spooled((node[i : i + step] for i in range(0, len(node), step)), path.name)

    names = sorted(arrays, key=counted)
    held = {name: Stored(arrays[name].shape, arrays[name].dtype, partial(load, name)) for name in names}
    return Described(path.name, "HDF5", members_of(held, path.name), path)


def faiss_index(path: Path) -> Described:
    """A FAISS index that keeps its vectors whole, in the order in which they were put in."""
    faiss = library("faiss", path, "faiss-cpu")
    with path.open("rb") as file:
        if file.read(2) == b"IB":
            must = f"{path.name} must hold numbers"
            refuse(DtypeError, must, "an index of packed bits", "Unpack them:", "index of bits", path=str(path))
    whole = faiss.read_index(str(path))  # it owns its members
    index = faiss.downcast_index(whole)
    while type(index).__name__.startswith(("IndexIDMap", "IndexHNSWFlat")):
        index = faiss.downcast_index(getattr(index, "index", None) or index.storage)
    kind = type(index).__name__
    told = f"float32 of shape {(index.ntotal, index.d)}"
    if kind.startswith("IndexIVFFlat"):
        return Described(path.name, f"FAISS, {kind}", _of_lists(faiss, index, told), path)
    if not kind.startswith("IndexFlat"):
        fix = "Audit what was put in; what it gives back was compressed:"
        must = f"{path.name} must keep its vectors whole, as IndexFlat does"
        refuse(VectorsError, must, kind, fix, "compressed index", path=str(path))
    members = [Member("", told, lambda: index.reconstruct_n(0, whole.ntotal))] if index.ntotal else []
    return Described(path.name, f"FAISS, {kind}", members, path)


def _of_lists(faiss: Any, index: Any, told: str) -> list[Member]:
    """The vectors of inverted lists in the order of their ids; two orders, where the ids don't rise in each list."""
    lists = [
        (
            faiss.rev_swig_ptr(index.invlists.get_ids(i), size).copy(),
            faiss.rev_swig_ptr(index.invlists.get_codes(i), size * index.code_size)
            .copy()
            .view("<f4")
            .reshape(size, -1),
        )
        for i in range(index.nlist)
        if (size := index.invlists.list_size(i))
    ]
    if not lists:
        return []
    ids, vectors = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    ordered = vectors[ids.argsort(kind="stable")]
    if all((np.diff(part) > 0).all() for part, _ in lists):
        return [Member("", told, lambda: ordered)]
    orders = {"ids": ordered, "lists": vectors}
    return [Member(name, f"{told} in the order of the {name}", partial(orders.get, name)) for name in orders]
