"""What a path holds: by its first bytes, then by its suffix; folders of shards, saved data sets and Lance tables."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from isonb.auditing.reading import array_files as arrays
from isonb.auditing.reading import record_files as records
from isonb.auditing.reading import table_files as tables
from isonb.auditing.reading import tensor_files as tensors
from isonb.auditing.reading.checked import matrix_in
from isonb.auditing.reading.described import Described, Part, VectorsError, refuse
from isonb.auditing.reading.sources import Joined
from isonb.auditing.reading.word_files import is_binary_word2vec, word2vec_binary, words
from isonb.errors import InputError

__all__ = ["describe"]

Reader = Callable[[Path], Described]
MAGIC: tuple[tuple[bytes, Reader], ...] = (
    (b"\x93NUMPY", arrays.npy),
    (b"PAR1", tables.parquet),
    (b"ARROW1", tables.arrow),
    (b"\xff\xff\xff\xff", tables.arrow),
    (b"\x89HDF", tensors.hdf5),
    *((start, tensors.faiss_index) for start in (b"IxF", b"IxM", b"IHN", b"Iw", b"IxP", b"IxR", b"IxS", b"IB")),
)
SUFFIXES: dict[str, Reader] = {
    ".npy": arrays.npy,
    ".npz": arrays.npz,
    ".parquet": tables.parquet,
    ".feather": tables.arrow,
    ".arrow": tables.arrow,
    ".ipc": tables.arrow,
    ".csv": tables.separated,
    ".tsv": tables.separated,
    ".jsonl": records.json_file,
    ".ndjson": records.json_file,
    ".json": records.json_file,
    ".pt": tensors.torch_file,
    ".pth": tensors.torch_file,
    ".safetensors": tensors.safetensors,
    ".h5": tensors.hdf5,
    ".hdf5": tensors.hdf5,
    ".faiss": tensors.faiss_index,
    ".index": tensors.faiss_index,
    ".fvecs": arrays.fvecs,
    ".txt": words,
    ".vec": words,
    ".glove": words,
    ".sql": records.sql_dump,
}
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


def describe(path: Path, name: str | None = None) -> Described:
    """The parts of a file or folder. VectorsError for a place that is not there or that nothing here reads."""
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
        try:
            refuse(VectorsError, f"{path.name} must be readable", reason[:200], told, lines)
        except VectorsError as said:
            raise said from error


def _reader(path: Path) -> Reader:
    """What reads a file."""
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
    suffix = path.with_suffix("").suffix if path.suffix in PACKED else path.suffix
    if path.suffix in PACKED and suffix.lower() not in TEXTS:
        lines = [f"{path.suffix[1:]} -d {str(path)!r}", f"isonb audit {str(path.with_suffix(''))!r}"]
        refuse(VectorsError, f"{path.name} must be unpacked", "a compressed file of numbers", "Unpack it:", lines)
    if head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05" and suffix.lower() not in (".pt", ".pth"):
        arrays.pickled(path, f"pandas.read_pickle({str(path)!r})")
    if is_binary_word2vec(path):
        return word2vec_binary
    if suffix.lower() in SUFFIXES:
        reader = SUFFIXES[suffix.lower()]
        return _of_text(path) if reader is words else reader
    if b"\0" in head:
        _strange(path, f"a binary file of an unknown kind, beginning with {head[:8]!r}", _raw(path))
    return _of_text(path)


def _of_text(path: Path) -> Reader:
    """JSON by its first bracket, a table by its separators, else words or numbers."""
    head = tables.head_of(path).lstrip()
    first = tables.QUOTED.sub("", head.partition("\n")[0])
    if head.startswith("{") or re.match(r"\[\s*[\[{]", head):
        return records.json_file
    if "FROM stdin;" in head:
        return records.sql_dump
    return tables.separated if any(mark in first for mark in ",;\t|") or '"[' in head[:4096] else words


def _raw(path: Path) -> list[str]:
    code = (
        f"x = numpy.fromfile({str(path)!r}, 'float32').reshape(-1, 384)  # its type, and the dimensions of your model"
    )
    return [code, "numpy.save('vectors.npy', x)"]


def _strange(path: Path, what: str, lines: list[str]) -> None:
    known = ", ".join(SUFFIXES)
    refuse(VectorsError, f"the file must be one of {known}", f"{path.name}, {what}", "Take the vectors out:", lines)


def _counted(path: Path) -> tuple[str | int, ...]:
    """Shard 10 after shard 2."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name))


def _folder(folder: Path, name: str | None) -> Described:
    names = {path.name for path in folder.iterdir()}
    if names & {"dataset_dict.json", "state.json"}:
        return tables.saved(folder)
    if folder.suffix == ".lance":
        return tables.lance(folder)
    if "chroma.sqlite3" in names:
        lines = (
            f"collection = chromadb.PersistentClient('{folder}').get_collection('NAME')",
            "numpy.save('vectors.npy', collection.get(include=['embeddings'])['embeddings'])",
        )
        refuse(VectorsError, f"{folder.name} must hold vectors", "a database of Chroma", "Take them out:", lines)
    if "config.json" in names or "modules.json" in names:
        lines = ("texts = open('texts.txt').read().splitlines()", f"print(isonb.audit('{folder}', texts))")
        refuse(VectorsError, f"{folder.name} must hold vectors", "a model", "A model is audited on texts.", lines)
    inner = sorted((path for path in folder.iterdir() if path.suffix == ".lance"), key=_counted)
    if len(inner) == 1:
        return tables.lance(inner[0])
    kinds: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*"), key=lambda path: (path.parent.as_posix(), _counted(path))):
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and path.name not in OURS:
            suffix = path.with_suffix("").suffix if path.suffix in PACKED else path.suffix
            if suffix in SUFFIXES:
                kinds.setdefault(suffix, []).append(path)
    if name is not None and name in kinds:
        kinds, name = {name: kinds[name]}, None
    if not kinds:
        lines = (f"print(sorted(pathlib.Path('{folder}').iterdir()))", f"isonb audit '{folder}/FILE'")
        held = ", ".join(sorted(names)[:8]) or "nothing"
        refuse(VectorsError, f"{folder.name} must hold files of vectors", held, "Name one of its files.", lines)
    if len(kinds) > 1:  # what stands beside the vectors tells about them
        kinds = {suffix: files for suffix, files in kinds.items() if suffix not in BESIDE} or kinds
    if len(kinds) > 1:
        told = ", ".join(f"{len(files)} {suffix}" for suffix, files in kinds.items())
        two = [f"isonb audit '{files[0].parent}/*{suffix}'" for suffix, files in list(kinds.items())[:2]]
        refuse(VectorsError, f"{folder.name} must hold files of one kind", told, "Name one kind:", two)
    (files,) = kinds.values()
    return _shards(files, folder, name)


def _shards(files: list[Path], place: Path, name: str | None) -> Described:
    """Files of one kind, one below the other."""
    if not files:
        lines = (f"print(sorted(pathlib.Path('{place.parent}').iterdir()))", f"isonb audit '{place.parent}/*.npy'")
        refuse(VectorsError, "the vectors must be in a file", f"no file {place}", "Check the pattern.", lines)
    first = describe(files[0])
    if len(files) == 1:
        return first

    def take(part: Part) -> Joined:
        found = [matrix_in(describe(file), part.name or None) for file in files]
        widths = {one.shape[1]: file.name for one, file in zip(found, files, strict=True)}
        if len(widths) > 1:
            told = ", ".join(f"{width} in {file}" for width, file in widths.items())
            lines = tuple(f"isonb audit '{place}/{file}'" for file in list(widths.values())[:2])
            refuse(VectorsError, f"the files of {place.name} must have one width", told, "Audit them apart:", lines)
        return Joined(found)

    parts = tuple(
        Part(part.name, f"{part.type} in {files[0].name}", part.take and partial(take, part), part.certain)
        for part in first.parts
    )
    what = f"{place.name} ({len(files)} files)"
    code = f"isonb.auditing.vectors_of('{place}')"
    return Described(what, parts, code, f"isonb.auditing.vectors_of('{place}', {{name!r}})")
