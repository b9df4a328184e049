"""Files by their suffix; folders of them, and data sets. Nothing pickled is loaded, and no suffix is guessed."""

from __future__ import annotations

import contextlib
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isonb.auditing.reading import tables, text
from isonb.auditing.reading.members import Holder, Member, VectorsError
from isonb.auditing.reading.values import members_of
from isonb.auditing.rows import RowSource, joined
from isonb.errors import CODE, InputError, fail, in_one_line, needs

PACKED = (".gz", ".bz2", ".zst", ".lz4")  # of text
SIDECARS = (".json", ".txt")
# Formats of other programs, and Python that makes vectors of such a file.
FOREIGN = {
    ".h5": "import h5py, numpy; numpy.save('vectors.npy', h5py.File({path!r})['NAME'][:])",
    ".faiss": "import faiss, numpy; numpy.save('vectors.npy', faiss.read_index({path!r}).reconstruct_n())",
    ".feather": "import pandas; pandas.read_feather({path!r}).to_parquet('vectors.parquet')",
    ".fvecs": "import numpy; x = numpy.fromfile({path!r}, '<i4')  # the length before each row is left out"
    f"{CODE}numpy.save('vectors.npy', x.reshape(-1, x[0] + 1)[:, 1:].view('<f4'))",
    ".fbin": "import numpy; size = numpy.fromfile({path!r}, '<i4', 2)  # rows and dimensions in the first 8 bytes"
    f"{CODE}numpy.save('vectors.npy', numpy.fromfile({{path!r}}, '<f4', offset=8).reshape(size))",
}
FOREIGN |= {".hdf5": FOREIGN[".h5"], ".index": FOREIGN[".faiss"], ".arrow": FOREIGN[".feather"]}


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """What a damaged file makes a library raise is an error of isonb."""
    try:
        with needs(f"reading {path.suffix or path.name}", "audit"):
            yield
    except (InputError, ImportError):
        raise
    except pickle.UnpicklingError:
        fix = "Objects are never loaded, since they can run any code: save the numbers alone, as by numpy.save."
        fail(VectorsError, f"{path.name} must hold numbers, and say so", "pickled objects, or bytes of no format", fix)
    except Exception as error:
        fix = "If it is whole, save the vectors from the program that made it; else copy it once more."
        fix = "Save it as UTF-8." if isinstance(error, UnicodeError) else fix
        reason = f"{type(error).__name__}: {in_one_line(error)}"
        fail(VectorsError, f"{path.name} must be readable", reason[:200], fix)


def describe(path: Path) -> Holder:
    """The members of a file, a folder or the files of a pattern. VectorsError for a place that is not there."""
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return Holder(path.name, _reader(path)(path), path)
    files = sorted(path.parent.glob(path.name), key=_order) if set(path.name) & set("*?[") else []
    if not files:
        model = "" if _kind(path) in READERS else " A model is audited on texts: add --texts FILE (in Python texts=)."
        fail(VectorsError, "the vectors must be in a file", f"no file {path}", f"Check the path.{model}")
    return _shards(files, path)


def _kind(path: Path) -> str:
    """The suffix that says what a file is, without that of its packing."""
    return (path.with_suffix("") if path.suffix.lower() in PACKED else path).suffix.lower()


def _reader(path: Path) -> Callable[[Path], list[Member]]:
    kind = _kind(path)
    if kind in READERS:
        return READERS[kind]
    fix = "Save the vectors by numpy.save where they were made."
    if kind in FOREIGN:
        fix = f"Make one of it:{CODE}{FOREIGN[kind].format(path=str(path))}"
    got = f"{path.name}, a file {f'of {kind}' if kind else 'without a suffix'}"
    return fail(VectorsError, f"the file must be one of {', '.join(READERS)}", got, fix)


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key that sorts names that count: 10 after 2."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", name)]


def _order(path: Path) -> list[list[tuple[int, str]]]:
    return [natural_order(part) for part in path.parts]


def _folder(folder: Path) -> Holder:
    names = {path.name for path in folder.iterdir()}
    if names & {"dataset_dict.json", "state.json"}:
        import datasets

        return Holder(folder.name, tables.of_dataset(datasets.load_from_disk(str(folder)), folder.name), folder)
    if names & {"config.json", "modules.json"}:
        fix = "Name texts for it, as by --texts texts.txt."
        fail(VectorsError, f"{folder.name} must hold vectors", f"{folder.name}, a model", fix)
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*"), key=_order):
        hidden = any(member.startswith((".", "_")) for member in path.relative_to(folder).parts)
        if path.is_file() and not hidden and _kind(path) in READERS:
            kinds.setdefault(_kind(path), []).append(path)
    if len(kinds) > 1:  # what stands beside the vectors tells about them
        kinds = {kind: files for kind, files in kinds.items() if kind not in SIDECARS} or kinds
    if len(kinds) != 1:
        got = ", ".join(f"{len(files)} {kind}" for kind, files in kinds.items())
        got = got or ", ".join(sorted(names)[:8]) or "nothing"
        fix = "Name files of one kind, as by the pattern 'FOLDER/*.npy'."
        fail(VectorsError, f"{folder.name} must hold files of vectors, of one kind", got, fix)
    (files,) = kinds.values()
    return _shards(files, folder)


def _shards(files: list[Path], place: Path) -> Holder:
    first = describe(files[0])
    if len(files) == 1:
        return first

    def matrix(file: Path, member: Member) -> RowSource:
        holder = describe(file)
        columns = next((item.columns for item in holder.members if item.name == member.name), ())
        odd = [pair for pair in zip(member.columns, columns, strict=False) if pair[0] != pair[1]]
        numbered = [*columns] == sorted(filter(str.isdecimal, columns), key=int)  # as in a file without a header
        if odd and not numbered and member.part.startswith("columns "):
            must = f"the files of {place.name} must have the same columns in one order"
            got = f"{odd[0][0]} in {files[0].name} and {odd[0][1]} in {file.name}"
            fail(VectorsError, must, got, "Save them all as the first.")
        return holder.matrix(member.name or None)

    def take(member: Member) -> RowSource:
        matrices = [matrix(file, member) for file in files]
        widths = {item.shape[1]: file.name for item, file in zip(matrices, files, strict=True)}
        if len(widths) > 1:
            got = ", ".join(f"{width} in {file}" for width, file in widths.items())
            fail(VectorsError, f"the files of {place.name} must have one width", got, "Audit them one by one.")
        return joined(matrices)

    members = [replace(member, take=member.take and partial(take, member)) for member in first.members]
    return Holder(f"{place.name} ({len(files)} files)", members, place)


def _npy(path: Path) -> list[Member]:
    """One array, mapped; the file must be as long as its header says."""
    array = _loaded(partial(np.load, path, mmap_mode="r"))
    size = path.stat().st_size - array.offset
    if size != array.nbytes:
        must = f"{path.name} must hold one array of {array.nbytes:,} bytes, as its header says"
        fail(VectorsError, must, f"{size:,}", "Save each array in a file of its own.")
    return members_of(array, path.name)


def _loaded(load: Callable[[], Any]) -> Any:
    """An array of numpy; objects, which it would unpickle, are an error of pickle."""
    try:
        return load()
    except ValueError as error:
        raise pickle.UnpicklingError if re.search("pickle|objects", str(error)) else error from error


def _npz(path: Path) -> list[Member]:
    """A .npz archive: one array, one of several by name, or one vector an id; a sparse matrix of scipy."""
    arrays: Any = {}
    with np.load(path) as archive:
        for name in archive:
            arrays[name] = None  # for objects, where there is something else
            with contextlib.suppress(pickle.UnpicklingError) if len(archive) > 1 else contextlib.nullcontext():
                arrays[name] = _loaded(partial(archive.__getitem__, name))
    if arrays.keys() >= {"data", "format", "shape"}:
        import scipy.sparse

        arrays = scipy.sparse.load_npz(path)
    return members_of(arrays, path.name)


def _torch(path: Path) -> list[Member]:
    """Tensors of torch.save, without their pickled company: one, a list, or a dictionary by their path."""
    try:
        value = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (RuntimeError, NotImplementedError):  # sparse tensors can't be mapped
        value = torch.load(path, map_location="cpu", weights_only=True)
    return members_of(value, path.name)


def _safetensors(path: Path) -> list[Member]:
    """Tensors by name; the names that count in their order."""
    from safetensors.torch import load_file

    return members_of(dict(sorted(load_file(path).items(), key=lambda item: natural_order(item[0]))), path.name)


READERS: dict[str, Callable[[Path], list[Member]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".parquet": tables.parquet,
    ".csv": text.separated,
    ".tsv": text.separated,
    ".jsonl": text.json_file,
    ".ndjson": text.json_file,
    ".json": text.json_file,
    ".pt": _torch,
    ".pth": _torch,
    ".safetensors": _safetensors,
    ".txt": text.words,
    ".vec": text.words,
    ".glove": text.words,
    ".bin": text.word2vec,
}
