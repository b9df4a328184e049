"""The table of formats, and what a path holds: by its first bytes, then its suffix; folders of shards, data sets."""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from isonb.auditing.reading import arrays, binary, tables, text
from isonb.auditing.reading.advice import refuse
from isonb.auditing.reading.described import Described, Member, VectorsError
from isonb.auditing.reading.rows import RowSource, joined
from isonb.errors import InputError, in_one_line, needs

Reader = Callable[[Path], Described]
# What reads a format, the suffixes of its files, and how they may begin.
FORMATS: tuple[tuple[Reader, tuple[str, ...], tuple[bytes, ...]], ...] = (
    (arrays.npy, (".npy",), (b"\x93NUMPY",)),
    (arrays.npz, (".npz",), ()),
    (tables.parquet, (".parquet",), (b"PAR1",)),
    (tables.arrow, (".feather", ".arrow", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")),
    (text.separated, (".csv", ".tsv"), ()),
    (text.json_file, (".jsonl", ".ndjson", ".json"), ()),
    (arrays.torch_file, (".pt", ".pth"), ()),
    (arrays.safetensors, (".safetensors",), ()),
    (arrays.hdf5, (".h5", ".hdf5"), (b"\x89HDF",)),
    (arrays.faiss_index, (".faiss", ".index"), (b"IxF", b"IxM", b"IHN", b"Iw", b"IxP", b"IxR", b"IxS", b"IB")),
    (binary.benchmark, tuple(binary.BENCHMARKS), ()),
    (text.words, (".txt", ".vec", ".glove"), ()),
    (text.sql_dump, (".sql",), ()),
)
SUFFIXES = {suffix: reader for reader, suffixes, _ in FORMATS for suffix in suffixes}
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")
STREAMED = (text.separated, text.json_file, text.words)  # while they are read
METADATA = ("dataset_info.json", "state.json", "dataset_dict.json")  # what describes a data set, and holds no row
SIDECARS = (".json", ".txt")


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """What a damaged file makes a library raise is an error of isonb."""
    try:
        with needs(f"reading {path.suffix or path.name}", "audit"):
            yield
    except (InputError, ImportError):
        raise
    except UnicodeDecodeError as error:
        got = f"byte {error.object[error.start]:#04x} at {error.start}"
        refuse(VectorsError, f"{path.name} must be text in UTF-8 or UTF-16", got, "Save it as UTF-8.", cause=error)
    except Exception as error:
        fix = "If it is whole, save the vectors from the program that made it; else copy it once more."
        reason = f"{type(error).__name__}: {in_one_line(error)}"
        refuse(VectorsError, f"{path.name} must be readable", reason[:200], fix, cause=error)


def describe(path: Path) -> Described:
    """The members of a file, a folder or the files of a pattern. VectorsError for a place that is not there."""
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return _reader(path)(path)
    files = sorted(path.parent.glob(path.name), key=_order) if set(path.name) & set("*?[") else []
    if not files:
        refuse(VectorsError, "the vectors must be in a file", f"no file {path}", "Check the path.")
    return _shards(files, path)


def _reader(path: Path) -> Reader:
    with path.open("rb") as file:
        head = file.read(64)
    for reader, _, starts in FORMATS:
        if head.startswith(starts) and (reader is not arrays.faiss_index or b"\0" in head):  # no word as "IBM"
            return reader
    kind = _kind(path)
    if head.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        for member in zipfile.ZipFile(path).namelist():
            if member.endswith((".npy", "data.pkl")):
                return arrays.npz if member.endswith(".npy") else arrays.torch_file
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
        return arrays.safetensors
    if binary.is_binary_word2vec(path):
        return binary.word2vec
    if kind in SUFFIXES and (SUFFIXES[kind] is not text.words or path.suffix in COMPRESSED):
        return SUFFIXES[kind]
    if b"\0" in head and not text.ENCODINGS.get(head[:2]):
        fix, got = "Save the vectors by numpy.save where it was made.", f"{path.name}, a file of an unknown kind"
        refuse(VectorsError, f"the file must be one of {', '.join(SUFFIXES)}", got, fix)
    return _of_text(path)


def _kind(path: Path) -> str:
    """The suffix that says what a file is, without that of its packing."""
    inner = path.with_suffix("").suffix.lower()
    return inner if path.suffix in COMPRESSED and SUFFIXES.get(inner) in STREAMED else path.suffix.lower()


def _of_text(path: Path) -> Reader:
    """JSON by its first bracket, a table by its separators, else words or numbers."""
    head = text.head_of(path).lstrip()
    first = text.QUOTED.sub("", head.partition("\n")[0])
    if head.startswith("{") or re.match(r"\[\s*[\[{]", head):
        return text.json_file
    return text.separated if any(mark in first for mark in ",;\t|") or '"[' in head[:4096] else text.words


def _order(path: Path) -> list[list[tuple[int, str]]]:
    """Shard 10 after shard 2, in folders too."""
    return [arrays.natural_order(part) for part in path.parts]


def _folder(folder: Path) -> Described:
    names = {path.name for path in folder.iterdir()}
    if names & {"dataset_dict.json", "state.json"}:
        return tables.saved(folder)
    if names & {"config.json", "modules.json"}:
        fix = "Name texts for it, as by --texts texts.txt."
        refuse(VectorsError, f"{folder.name} must hold vectors", f"{folder.name}, a model", fix)
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*"), key=_order):
        hidden = any(member.startswith((".", "_")) for member in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name not in METADATA and _kind(path) in SUFFIXES:
            kinds.setdefault(_kind(path), []).append(path)
    if len(kinds) > 1:  # what stands beside the vectors tells about them
        kinds = {kind: files for kind, files in kinds.items() if kind not in SIDECARS} or kinds
    if len(kinds) != 1:
        got = ", ".join(f"{len(files)} {kind}" for kind, files in kinds.items())
        got = got or ", ".join(sorted(names)[:8]) or "nothing"
        fix = "Name files of one kind, as by the pattern 'FOLDER/*.npy'."
        refuse(VectorsError, f"{folder.name} must hold files of vectors, of one kind", got, fix)
    (files,) = kinds.values()
    return _shards(files, folder)


def _shards(files: list[Path], place: Path) -> Described:
    first = describe(files[0])
    if len(files) == 1:
        return first

    def take(member: Member) -> RowSource:
        matrices = [describe(file).matrix(member.name or None) for file in files]
        widths = {item.shape[1]: file.name for item, file in zip(matrices, files, strict=True)}
        if len(widths) > 1:
            got = ", ".join(f"{width} in {file}" for width, file in widths.items())
            refuse(VectorsError, f"the files of {place.name} must have one width", got, "Audit them one by one.")
        return joined(matrices)

    members = [replace(member, take=member.take and partial(take, member)) for member in first.members]
    return Described(f"{place.name} ({len(files)} files)", first.kind, members, place)
