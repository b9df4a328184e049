"""The table of formats, and what a path holds: by its first bytes, then its suffix; folders of shards, data sets."""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from isonb.auditing.reading import arrays, tables
from isonb.auditing.reading.described import Described, Member, VectorsError, refuse
from isonb.auditing.reading.rows import RowSource, joined
from isonb.errors import InputError, needs

Reader = Callable[[Path], Described]
# What reads a format, the suffixes of its files, and how they may begin.
FORMATS: tuple[tuple[Reader, tuple[str, ...], tuple[bytes, ...]], ...] = (
    (arrays.npy, (".npy",), (b"\x93NUMPY",)),
    (arrays.npz, (".npz",), ()),
    (tables.parquet, (".parquet",), (b"PAR1",)),
    (tables.arrow, (".feather", ".arrow", ".ipc"), (b"ARROW1", b"\xff\xff\xff\xff")),
    (tables.separated, (".csv", ".tsv"), ()),
    (tables.json_file, (".jsonl", ".ndjson", ".json"), ()),
    (arrays.torch_file, (".pt", ".pth"), ()),
    (arrays.safetensors, (".safetensors",), ()),
    (arrays.hdf5, (".h5", ".hdf5"), (b"\x89HDF",)),
    (arrays.faiss_index, (".faiss", ".index"), (b"IxF", b"IxM", b"IHN", b"Iw", b"IxP", b"IxR", b"IxS", b"IB")),
    (arrays.words, (".txt", ".vec", ".glove"), ()),
    (tables.sql_dump, (".sql",), ()),
)
SUFFIXES = {suffix: reader for reader, suffixes, _ in FORMATS for suffix in suffixes}
PACKED = (".gz", ".bz2", ".zst", ".lz4")
UNPACKED = (tables.separated, tables.json_file, arrays.words)  # while they are read
OURS = ("dataset_info.json", "state.json", "dataset_dict.json")  # what describes a data set, and holds no row
BESIDE = (".json", ".txt")
ARRAY = "numpy.save('vectors.npy', numpy.stack([numpy.frombuffer(row[-1], 'float32') for row in rows]))"
SAVED = "numpy.save('vectors.npy', x)"
# What is not read, by how a file begins or by what a folder has, and the lines that take the vectors out of {path}.
STRANGE = {
    b"SQLite format 3": (
        "an SQLite database",
        "rows = sqlite3.connect({path!r}).execute('select * from TABLE').fetchall()",
        ARRAY,
    ),
    b"PK\x03\x04": (
        "an archive or a spreadsheet",
        "table = pandas.read_excel({path!r})",
        "table.to_parquet('vectors.parquet')",
    ),
    b"\x1f\x8b": ("a compressed file of numbers", "x = numpy.load(gzip.open({path!r}))", SAVED),
    b"\x80": (
        "pickled objects, which are never loaded, since they can run any code",
        "x = pandas.read_pickle({path!r})  # if you trust the file",
        "numpy.save('vectors.npy', numpy.stack(list(x)))",
    ),
    b"": (
        "a file of an unknown kind",
        "x = numpy.fromfile({path!r}, 'float32').reshape(-1, 384)  # its type, and your model's dimensions",
        SAVED,
    ),
}
MODEL = ("a model", "texts = open('texts.txt').read().splitlines()", "print(isonb.audit({path!r}, texts))")
FOLDERS = {
    "chroma.sqlite3": (
        "a database of Chroma",
        "collection = chromadb.PersistentClient({path!r}).get_collection('NAME')",
        "numpy.save('vectors.npy', collection.get(include=['embeddings'])['embeddings'])",
    ),
    "_versions": ("a table of Lance", "table = lance.dataset({path!r}).to_table()", "print(isonb.audit(table))"),
    "*.lance": (
        "a database of LanceDB",
        "table = lancedb.connect({path!r}).open_table('NAME').to_arrow()",
        "print(isonb.audit(table))",
    ),
    "config.json": MODEL,
    "modules.json": MODEL,
}


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """What a damaged file makes a library raise is an error of isonb."""
    try:
        with needs(f"reading {path.suffix or path.name}", "lab"):
            yield
    except (InputError, ImportError):
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        lines = (
            f"print(pathlib.Path({str(path)!r}).stat(), pathlib.Path({str(path)!r}).open('rb').read(64))",
            "numpy.save('vectors.npy', x)  # from the program that has the vectors",
        )
        told = "If it is whole, its own program can take the vectors out; else copy it once more."
        refuse(VectorsError, f"{path.name} must be readable", reason[:200], told, lines, error)


def describe(path: Path, name: str | None = None) -> Described:
    """The members of a file, a folder or the files of a pattern. VectorsError for a place that is not there."""
    if path.is_dir():
        return _folder(path, name)
    if path.is_file():
        return _reader(path)(path)
    files = sorted(path.parent.glob(path.name), key=_counted) if set(path.name) & set("*?[") else []
    if not files:
        lines = (f"print(sorted(pathlib.Path({str(path.parent)!r}).iterdir()))", "isonb.audit('FILE')")
        refuse(VectorsError, "the vectors must be in a file", f"no file {path}", "Check the path.", lines)
    return _shards(files, path, name)


def _reader(path: Path) -> Reader:
    with path.open("rb") as file:
        head = file.read(64)
    for reader, _, starts in FORMATS:
        if head.startswith(starts):  # never by none
            return reader
    kind = _kind(path)
    if head.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        for member in zipfile.ZipFile(path).namelist():
            if member.endswith((".npy", "data.pkl")):
                return arrays.npz if member.endswith(".npy") else arrays.torch_file
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
        return arrays.safetensors
    if arrays.is_binary_word2vec(path):
        return arrays.word2vec_binary
    if kind in SUFFIXES and (SUFFIXES[kind] is not arrays.words or path.suffix in PACKED):
        return SUFFIXES[kind]
    for start, lines in STRANGE.items():
        if head.startswith(start) and (start or (b"\0" in head and kind not in SUFFIXES)):
            _take_out(f"the file must be one of {', '.join(SUFFIXES)}", path, lines)
    return _of_text(path)


def _take_out(must: str, path: Path, told: tuple[str, str, str]) -> NoReturn:
    what, *lines = told
    code = [line.format(path=str(path)) for line in lines]
    refuse(VectorsError, must, f"{path.name}, {what}", "Take the vectors out:", code)


def _kind(path: Path) -> str:
    """The suffix that says what a file is, without that of its packing."""
    inner = path.with_suffix("").suffix.lower()
    return inner if path.suffix in PACKED and SUFFIXES.get(inner) in UNPACKED else path.suffix.lower()


def _of_text(path: Path) -> Reader:
    """JSON by its first bracket, a table by its separators, else words or numbers."""
    head = tables.head_of(path).lstrip()
    first = tables.QUOTED.sub("", head.partition("\n")[0])
    if head.startswith("{") or re.match(r"\[\s*[\[{]", head):
        return tables.json_file
    return tables.separated if any(mark in first for mark in ",;\t|") or '"[' in head[:4096] else arrays.words


def _counted(path: Path) -> tuple[str, list[str | int]]:
    """Shard 10 after shard 2."""
    pieces = re.split(r"(\d+)", path.name)
    return path.parent.as_posix(), [int(piece) if piece.isdigit() else piece for piece in pieces]


def _folder(folder: Path, name: str | None) -> Described:
    names = {path.name for path in folder.iterdir()}
    if names & {"dataset_dict.json", "state.json"}:
        return tables.saved(folder)
    for known, lines in FOLDERS.items():
        if any(folder.glob(known)):
            _take_out(f"{folder.name} must hold vectors", folder, lines)
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*"), key=_counted):
        hidden = any(member.startswith((".", "_")) for member in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name not in OURS and _kind(path) in SUFFIXES:
            kinds.setdefault(_kind(path), []).append(path)
    if len(kinds) > 1:  # what stands beside the vectors tells about them
        kinds = {kind: files for kind, files in kinds.items() if kind not in BESIDE} or kinds
    if len(kinds) != 1:
        held = ", ".join(f"{len(files)} {kind}" for kind, files in kinds.items())
        held = held or ", ".join(sorted(names)[:8]) or "nothing"
        patterns = [f"isonb audit '{folder}/*{kind}'" for kind in (*kinds, ".npy", ".parquet")][:2]
        refuse(VectorsError, f"{folder.name} must hold files of vectors, of one kind", held, "Name one:", patterns)
    (files,) = kinds.values()
    return _shards(files, folder, name)


def _shards(files: list[Path], place: Path, name: str | None) -> Described:
    first = describe(files[0])
    if len(files) == 1:
        return first

    def take(member: Member) -> RowSource:
        matrices = [describe(file).matrix(member.name or None) for file in files]
        widths = {one.shape[1]: file.name for one, file in zip(matrices, files, strict=True)}
        if len(widths) > 1:
            told = ", ".join(f"{width} in {file}" for width, file in widths.items())
            lines = [f"isonb audit '{place}/{file}'" for file in list(widths.values())[:2]]
            refuse(VectorsError, f"the files of {place.name} must have one width", told, "Audit them apart:", lines)
        return joined(matrices)

    members = [replace(member, take=member.take and partial(take, member)) for member in first.members]
    code = f"isonb.auditing.vectors_of({str(place)!r}"
    return Described(f"{place.name} ({len(files)} files)", members, f"{code})", code + ", {name!r})")
