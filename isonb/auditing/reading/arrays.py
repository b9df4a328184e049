"""Files of arrays: .npy, .npz, .pt, .safetensors, HDF5, FAISS, words with vectors; nothing pickled is loaded."""

from __future__ import annotations

import importlib
import itertools
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.reading.columns import as_numpy
from isonb.auditing.reading.described import Described, Member, VectorsError, refuse, single, spooled
from isonb.auditing.reading.tables import is_number, lines_of
from isonb.errors import DtypeError

PIECE = 2**22  # numbers read at a time
LINES = 4096  # lines of text read at a time
LOOKED = 20  # lines that show how many numbers follow a word
SIZE = re.compile(rb"\s*\d+\s+\d+\s*\n")  # rows and dimensions


def of_arrays(arrays: Mapping[str, Any], take: Callable[[str], Any], what: str, code: str, pick: str = "") -> Described:
    """Arrays by name, which have ``shape`` and ``dtype``; where all are vectors of one length, the rows of one matrix.

    The only matrix is certain: ids and labels stand beside it.
    """
    shapes = {tuple(one.shape) for one in arrays.values()}
    if len(arrays) > 1 and len(shapes) == 1 and len(next(iter(shapes))) == 1:
        stack = f"numpy.stack([*{code}.values()])"
        rows = (as_numpy(take(name)).reshape(1, -1) for name in arrays)
        return single(what, f"{len(arrays)} vectors, one an id", lambda: spooled(rows, what, stack), stack)
    two = sum(len(one.shape) == 2 for one in arrays.values())
    members = []
    for name, one in arrays.items():
        kind, shape = str(one.dtype).removeprefix("torch."), tuple(one.shape)
        certain = two != 1 or len(shape) == 2
        usable = Member(name, f"{kind} of shape {shape}", partial(take, name), certain)
        members.append(Member(name, "pickled objects") if kind == "object" else usable)
    return Described(what, members, code, pick)


def npy(path: Path) -> Described:
    import numpy as np

    code = f"numpy.load({str(path)!r})"
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError as error:
        if "object" not in str(error).lower():
            raise
        return Described(path.name, [Member("", "pickled objects")], f"{code[:-1]}, allow_pickle=True)")
    return single(path.name, "", lambda: array, code)


def npz(path: Path) -> Described:
    """A .npz archive: one array, one of several by name, or one vector an id; unpacked on the disk."""
    import numpy as np
    from numpy.lib import format as layout

    def take(name: str) -> Any:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(prefix="isonb-") as folder:
            return np.load(archive.extract(f"{name}.npy", folder), mmap_mode="r")  # the map keeps the file

    held = {}
    with zipfile.ZipFile(path) as archive:
        for member in (name for name in archive.namelist() if name.endswith(".npy")):
            with archive.open(member) as file:
                first = layout.read_magic(file) == (1, 0)
                shape, _, dtype = (layout.read_array_header_1_0 if first else layout.read_array_header_2_0)(file)
            held[member.removesuffix(".npy")] = np.broadcast_to(np.empty((), dtype), shape)  # takes no memory
    more = ", allow_pickle=True" if any(one.dtype.hasobject for one in held.values()) else ""
    return of_arrays(held, take, f"{path.name} (npz)", f"numpy.load({str(path)!r}{more})")


def torch_file(path: Path) -> Described:
    """Tensors of torch.save, without their pickled company: one, a list, or a dictionary by their path."""
    import pickle

    what, code = f"{path.name} (torch)", f"torch.load({str(path)!r})"
    try:
        held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError:
        return Described(what, [Member("", "pickled objects")], f"{code[:-1]}, weights_only=False)")
    if isinstance(held, torch.Tensor):
        return single(what, f"{held.dtype} of shape {tuple(held.shape)}", lambda: held, code)
    flat = dict(_flat(held))
    return of_arrays(flat, flat.__getitem__, what, code)


def _flat(held: Any, before: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    for key, value in held.items() if isinstance(held, dict) else enumerate(held if isinstance(held, list) else ()):
        if isinstance(value, torch.Tensor):
            yield f"{before}{key}", value
        else:
            yield from _flat(value, f"{before}{key}.")


def safetensors(path: Path) -> Described:
    from safetensors.torch import load_file

    held = load_file(path)
    code = f"safetensors.torch.load_file({str(path)!r})"
    return of_arrays(held, held.__getitem__, f"{path.name} (safetensors)", code)


def library(name: str, path: Path, package: str, lines: tuple[str, str]) -> Any:
    """A library that isonb doesn't bring, or a VectorsError that says how to get on without it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        must, fix = f"{name} must be installed to read {path.name}", f"pip install {package}, or where it was made:"
        refuse(VectorsError, must, f"no {name}", fix, lines, error)


def hdf5(path: Path) -> Described:
    code = f"h5py.File({str(path)!r})"
    file = library("h5py", path, "h5py", (f"x = {code}['NAME'][()]", "numpy.save('vectors.npy', x)")).File(path)
    nodes: dict[str, Any] = {}
    file.visititems(nodes.__setitem__)
    arrays = {name: one for name, one in nodes.items() if getattr(one, "ndim", 0) and one.dtype.kind in "fiubV"}

    def take(name: str) -> Any:
        node = arrays[name]
        if node.ndim != 2:
            return node[()]
        step = max(1, PIECE // max(1, node.shape[1]))
        rows = (node[i : i + step] for i in range(0, len(node), step))
        return spooled(rows, path.name, f"{code}[{name!r}][()]")

    return of_arrays(arrays, take, f"{path.name} (HDF5)", code, code + "[{name!r}][()]")


def faiss_index(path: Path) -> Described:
    """A FAISS index that keeps its vectors whole."""
    code = f"faiss.read_index({str(path)!r})"
    lines = (f"index = {code}", "numpy.save('vectors.npy', index.reconstruct_n(0, index.ntotal))")
    faiss = library("faiss", path, "faiss-cpu", lines)
    with path.open("rb") as file:
        if file.read(2) == b"IB":
            lines = (
                f"index = faiss.read_index_binary({str(path)!r})",
                "x = numpy.unpackbits(faiss.vector_to_array(index.xb).reshape(-1, index.d // 8), axis=-1) * 2.0 - 1",
            )
            refuse(DtypeError, f"{path.name} must hold numbers", "an index of packed bits", "Unpack them:", lines)
    whole = faiss.read_index(str(path))  # it owns its members
    index = faiss.downcast_index(whole)
    while type(index).__name__.startswith(("IndexIDMap", "IndexHNSWFlat")):
        index = faiss.downcast_index(getattr(index, "index", None) or index.storage)
    kind = type(index).__name__
    if kind.startswith("IndexIVFFlat"):
        index.make_direct_map()
    elif not kind.startswith("IndexFlat"):
        fix = "Audit what was put in; what it gives back was compressed."
        must = f"{path.name} must keep its vectors whole, as IndexFlat does"
        refuse(VectorsError, must, kind, fix, (lines[0], f"{lines[1]}  # rounded ones"))
    told = f"float32 of shape {(index.ntotal, index.d)}"
    return single(f"{path.name} (FAISS, {kind})", told, lambda: index.reconstruct_n(0, whole.ntotal), code)


def words(path: Path) -> Described:
    """Text with a word and its numbers a line, below a line "rows dimensions" or not; or numbers alone."""
    head = list(itertools.islice(lines_of(path), LOOKED))
    counted = bool(head) and SIZE.fullmatch(head[0].rstrip() + b"\n") is not None
    body = head[1:] if counted else head
    runs = [_numbers_at_end(line.split()) for line in body]
    if not runs or min(runs) < 2:
        texts = f"texts = open({str(path)!r}).read().splitlines()"
        fix = "Texts are audited through a model: isonb audit MODEL --texts FILE."
        got = f"text, as {body[0].decode('utf-8', 'replace').rstrip()[:40]!r}" if body else "an empty file"
        must, model = f"{path.name} must hold vectors, a line each", "print(isonb.audit('minilm', texts))  # or yours"
        refuse(VectorsError, must, got, fix, (texts, model))
    bare = all(run == len(line.split()) for run, line in zip(runs, body, strict=True)) and not counted
    usual = max(sorted(set(runs)), key=runs.count)  # a word that is a number makes its line longer
    d = int(head[0].split()[1]) if counted else min(runs) if bare else usual

    def pieces() -> Iterator[Any]:
        import numpy as np

        every = itertools.islice(lines_of(path), int(counted), None)
        while some := list(itertools.islice(every, LINES)):
            yield np.array([line.split()[-d:] for line in some if line.strip()], dtype="float32")

    loaded = f"numpy.loadtxt({str(path)!r}, comments=None)"
    code = loaded if bare else f"pandas.read_table({str(path)!r}, sep=' ', header=None)"
    what = f"{path.name} ({'numbers' if bare else 'words and numbers'})"
    return single(what, f"text of {d} numbers a line", lambda: spooled(pieces(), path.name, code), code)


def _numbers_at_end(parts: list[bytes]) -> int:
    return len(list(itertools.takewhile(is_number, reversed(parts))))


def is_binary_word2vec(path: Path) -> bool:
    """Whether a file begins with a line "rows dimensions" and goes on with bytes that no text has."""
    with path.open("rb") as file:
        line, rest = file.readline(64), file.read(512)
    return SIZE.fullmatch(line) is not None and min(rest, default=9) < 9


def word2vec_binary(path: Path) -> Described:
    def pieces() -> Iterator[Any]:
        import numpy as np

        with path.open("rb") as file:
            n, d = map(int, file.readline().split())
            for _ in range(n):
                while file.read(1) not in (b" ", b""):
                    pass
                yield np.frombuffer(file.read(4 * d), "<f4").reshape(1, d)

    code = f"gensim.models.KeyedVectors.load_word2vec_format({str(path)!r}, binary=True).vectors"
    what = f"{path.name} (binary word2vec)"
    return single(what, "words and float32", lambda: spooled(pieces(), path.name, code), code)
