"""What a path holds: by its first bytes, then by its suffix; folders of shards, saved data sets and Lance tables."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from isonb.auditing.reading import array_files as arrays
from isonb.auditing.reading import table_files as tables
from isonb.auditing.reading import tensor_files as tensors
from isonb.auditing.reading import text_files as texts
from isonb.auditing.reading.described import Described, Member, VectorsError, matrix_in, refuse
from isonb.auditing.reading.rows import Joined
from isonb.errors import InputError, needs

Reader = Callable[[Path], Described]
MAGIC: tuple[tuple[bytes, Reader], ...] = (
    (b"\x93NUMPY", arrays.npy),
    (b"PAR1", tables.parquet),
    (b"ARROW1", tables.arrow),
    (b"\xff\xff\xff\xff", tables.arrow),
    (b"\x89HDF", tensors.hdf5),
    *((start, tensors.faiss_index) for start in (b"IxF", b"IxM", b"IHN", b"Iw", b"IxP", b"IxR", b"IxS", b"IB")),
)
READERS: dict[Reader, tuple[str, ...]] = {
    arrays.npy: (".npy",),
    arrays.npz: (".npz",),
    tables.parquet: (".parquet",),
    tables.arrow: (".feather", ".arrow", ".ipc"),
    tables.separated: (".csv", ".tsv"),
    texts.json_file: (".jsonl", ".ndjson", ".json"),
    tensors.torch_file: (".pt", ".pth"),
    tensors.safetensors: (".safetensors",),
    tensors.hdf5: (".h5", ".hdf5"),
    tensors.faiss_index: (".faiss", ".index"),
    arrays.fvecs: (".fvecs",),
    texts.words: (".txt", ".vec", ".glove"),
    texts.sql_dump: (".sql",),
}
SUFFIXES = {suffix: reader for reader, suffixes in READERS.items() for suffix in suffixes}
PACKED = (".gz", ".bz2", ".zst", ".lz4")
OURS = ("dataset_info.json", "state.json", "dataset_dict.json")  # what describes a data set, and holds no row
BESIDE = (".json", ".txt")
TEXTS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".txt", ".vec", ".glove", ".tab")
FIXES = {
    b"SQLite format 3": (
        "an SQLite database",
        "rows = sqlite3.connect({path!r}).execute('select * from TABLE').fetchall()",
        "numpy.save('vectors.npy', numpy.stack([numpy.frombuffer(row[-1], 'float32') for row in rows]))",
    ),
    b"PK\x03\x04": (
        "an archive or a spreadsheet",
        "table = pandas.read_excel({path!r})",
        "table.to_parquet('vectors.parquet')",
    ),
}
MODEL = (
    "a model",
    "A model is audited on texts.",
    "texts = open('texts.txt').read().splitlines()",
    "print(isonb.audit('{folder}', texts))",
)
FOLDERS = {
    "chroma.sqlite3": (
        "a database of Chroma",
        "Take them out:",
        "collection = chromadb.PersistentClient('{folder}').get_collection('NAME')",
        "numpy.save('vectors.npy', collection.get(include=['embeddings'])['embeddings'])",
    ),
    "config.json": MODEL,
    "modules.json": MODEL,
}


def describe(path: Path, name: str | None = None) -> Described:
    """The members of a file or folder. VectorsError for a place that is not there or that nothing here reads."""
    try:
        there = path.exists()
    except (OSError, ValueError):  # a name too long, a zero byte
        there = False
    if not there and any(mark in path.name for mark in "*?["):
        return _shards(sorted(path.parent.glob(path.name), key=_counted), path, name)
    if not there:
        lines = (
            f"print(sorted(pathlib.Path({str(path.parent)!r}).iterdir()))",
            f"isonb.audit(isonb.auditing.vectors_of({str(path)!r}))",
        )
        refuse(VectorsError, "the vectors must be in a file", f"no file {path}", "Check the path.", lines)
    try:
        with needs(f"reading {path.suffix or path.name}", "lab"):
            return _folder(path, name) if path.is_dir() else _reader(path)(path)
    except (InputError, ImportError):
        raise
    except Exception as error:  # what a damaged file makes a library raise is its own business
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        lines = (
            f"print(pathlib.Path({str(path)!r}).stat(), pathlib.Path({str(path)!r}).open('rb').read(64))",
            "numpy.save('vectors.npy', x)  # from the program that has the vectors",
        )
        told = "If it is whole, its own program can take the vectors out; else copy it once more."
        refuse(VectorsError, f"{path.name} must be readable", reason[:200], told, lines, error)


def _kind(path: Path) -> str:
    """The suffix that says what a file is, without that of its packing."""
    return (path.with_suffix("").suffix if path.suffix in PACKED else path.suffix).lower()


def _reader(path: Path) -> Reader:
    with path.open("rb") as file:
        head = file.read(64)
    for start, reader in MAGIC:
        if head.startswith(start):
            return reader
    if head.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        members = zipfile.ZipFile(path).namelist()
        if any(member.endswith(".npy") for member in members):
            return arrays.npz
        if any(member.endswith("data.pkl") for member in members):
            return tensors.torch_file
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size:
        return tensors.safetensors
    for start, (what, *lines) in FIXES.items():
        if head.startswith(start):
            _strange(path, what, [line.format(path=str(path)) for line in lines])
    kind = _kind(path)
    if path.suffix in PACKED and kind not in TEXTS:
        lines = [f"{path.suffix[1:]} -d {str(path)!r}", f"isonb audit {str(path.with_suffix(''))!r}"]
        refuse(VectorsError, f"{path.name} must be unpacked", "a compressed file of numbers", "Unpack it:", lines)
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and kind not in (".pt", ".pth"):
        arrays.pickled(path, f"pandas.read_pickle({str(path)!r})")
    if texts.is_binary_word2vec(path):
        return texts.word2vec_binary
    reader = SUFFIXES.get(kind, texts.words)
    if reader is not texts.words:
        return reader
    if kind not in SUFFIXES and b"\0" in head:
        raw = f"x = numpy.fromfile({str(path)!r}, 'float32').reshape(-1, 384)  # its type, and your model's dimensions"
        what = f"a binary file of an unknown kind, beginning with {head[:8]!r}"
        _strange(path, what, [raw, "numpy.save('vectors.npy', x)"])
    return _of_text(path)


def _of_text(path: Path) -> Reader:
    """JSON by its first bracket, a table by its separators, else words or numbers."""
    head = tables.head_of(path).lstrip()
    first = tables.QUOTED.sub("", head.partition("\n")[0])
    if head.startswith("{") or re.match(r"\[\s*[\[{]", head):
        return texts.json_file
    if "FROM stdin;" in head:
        return texts.sql_dump
    return tables.separated if any(mark in first for mark in ",;\t|") or '"[' in head[:4096] else texts.words


def _strange(path: Path, what: str, lines: list[str]) -> None:
    must = f"the file must be one of {', '.join(SUFFIXES)}"
    refuse(VectorsError, must, f"{path.name}, {what}", "Take the vectors out:", lines)


def _counted(path: Path) -> tuple[str, list[str | int]]:
    """Shard 10 after shard 2."""
    pieces = re.split(r"(\d+)", path.name)
    return path.parent.as_posix(), [int(piece) if piece.isdigit() else piece for piece in pieces]


def _folder(folder: Path, name: str | None) -> Described:
    names = {path.name for path in folder.iterdir()}
    if names & {"dataset_dict.json", "state.json"}:
        return tables.saved(folder)
    if folder.suffix == ".lance":
        return tables.lance(folder)
    for known, (what, fix, *lines) in FOLDERS.items():
        if known in names:
            lines = [line.format(folder=folder) for line in lines]
            refuse(VectorsError, f"{folder.name} must hold vectors", what, fix, lines)
    inner = [path for path in folder.iterdir() if path.suffix == ".lance"]
    if len(inner) == 1:
        return tables.lance(inner[0])
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*"), key=_counted):
        hidden = any(member.startswith((".", "_")) for member in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name not in OURS and _kind(path) in SUFFIXES:
            kinds.setdefault(_kind(path), []).append(path)
    if name is not None and name in kinds:
        kinds, name = {name: kinds[name]}, None
    if not kinds:
        lines = [f"print(sorted(pathlib.Path('{folder}').iterdir()))", f"isonb audit '{folder}/FILE'"]
        held = ", ".join(sorted(names)[:8]) or "nothing"
        refuse(VectorsError, f"{folder.name} must hold files of vectors", held, "Name one of its files.", lines)
    if len(kinds) > 1:  # what stands beside the vectors tells about them
        kinds = {kind: files for kind, files in kinds.items() if kind not in BESIDE} or kinds
    if len(kinds) > 1:
        told = ", ".join(f"{len(files)} {kind}" for kind, files in kinds.items())
        two = [f"isonb audit '{files[0].parent}/*{kind}'" for kind, files in list(kinds.items())[:2]]
        refuse(VectorsError, f"{folder.name} must hold files of one kind", told, "Name one kind:", two)
    (files,) = kinds.values()
    return _shards(files, folder, name)


def _shards(files: list[Path], place: Path, name: str | None) -> Described:
    if not files:
        lines = (f"print(sorted(pathlib.Path('{place.parent}').iterdir()))", f"isonb audit '{place.parent}/*.npy'")
        refuse(VectorsError, "the vectors must be in a file", f"no file {place}", "Check the pattern.", lines)
    first = describe(files[0])
    if len(files) == 1:
        return first

    def take(member: Member) -> Joined:
        matrices = [matrix_in(describe(file), member.name or None) for file in files]
        widths = {one.shape[1]: file.name for one, file in zip(matrices, files, strict=True)}
        if len(widths) > 1:
            told = ", ".join(f"{width} in {file}" for width, file in widths.items())
            lines = tuple(f"isonb audit '{place}/{file}'" for file in list(widths.values())[:2])
            refuse(VectorsError, f"the files of {place.name} must have one width", told, "Audit them apart:", lines)
        return Joined(matrices)

    members = [
        replace(member, type=f"{member.type} in {files[0].name}", take=member.take and partial(take, member))
        for member in first.members
    ]
    return Described(
        f"{place.name} ({len(files)} files)",
        members,
        f"isonb.auditing.vectors_of('{place}')",
        f"isonb.auditing.vectors_of('{place}', {{name!r}})",
    )
