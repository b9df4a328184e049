"""The files of a user's own data, as tables: CSV, TSV, JSON lines, parquet, and saved Hugging Face data sets.

What a file holds is read as it is written. What it means is for :mod:`isonb.lab.data.own_columns`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from isonb.errors import fail, in_one_line
from isonb.lab.data.sources import SourceError
from isonb.lab.options import shown

__all__ = ["SPLITS", "SUFFIXES", "Found", "read_file", "read_place", "state_of"]

TRAINING = ("train", "training")
EVALUATION = ("validation", "valid", "val", "dev", "test")
SPLITS = (*TRAINING, *EVALUATION)  # names of splits that need no word of explanation
MAGIC = {b"PAR1": "parquet", b"PK\x03\x04": "a spreadsheet or an archive", b"\x1f\x8b": "compressed by gzip"}
HEAD = 8192  # bytes that tell text from other content
SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk leaves of a dictionary of splits, of one data set


@dataclass(frozen=True)
class Found:
    """Tables by split ("" where there is one and nobody named it), and names of labels by column, if the set has them.

    Columns of CSV and TSV files are text.
    """

    tables: dict[str, Any]
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)


def state_of(place: Path) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the files at a place: what is read again only when one of them has changed.

    Raises :class:`~isonb.lab.data.sources.SourceError` where there is nothing.
    """
    try:
        files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        stats = [(str(file), file.stat()) for file in files]
    except (OSError, ValueError) as error:
        why = f"no file {place}" if isinstance(error, FileNotFoundError) else shown(str(error))
        fail(SourceError, "own data must be a file or folder that is there", why, "Correct the path.")
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def read_place(place: Path) -> Found:
    """The tables of a file or folder; a folder is a saved data set, or holds files named ``train``, ``validation``, ...

    Raises :class:`~isonb.lab.data.sources.SourceError`.
    """
    if not place.is_dir():
        return Found({"": read_file(place)})
    if any((place / name).is_file() for name in SAVED):
        return _saved(place)
    files = {path.stem: path for path in sorted(place.iterdir()) if path.suffix in SUFFIXES and path.stem in SPLITS}
    if not files:
        fix = "Name one of its files, or save the set by save_to_disk."
        what = f"{place} must be a saved data set, or hold train and validation files ({', '.join(SUFFIXES)})"
        fail(SourceError, what, ", ".join(sorted(path.name for path in place.iterdir())[:8]) or "an empty folder", fix)
    return Found({split: read_file(path) for split, path in files.items()})


def read_file(path: Path) -> Any:
    """The Arrow table of one file, which its suffix tells how to read; raises as :func:`read_place`."""
    from pyarrow import ArrowException

    reader = READERS.get(path.suffix.lower())
    if reader is None:
        fail(SourceError, f"{path} must be one of {', '.join(SUFFIXES)}", path.suffix or "no suffix", "Convert it.")
    try:
        _check_content(path)
        table = reader(path)
    except UnicodeDecodeError as error:
        _reject(path, "must be text in UTF-8", f"another byte at {error.start}", "Save it as UTF-8.")
    except (OSError, ArrowException, csv.Error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        if isinstance(error, SourceError):
            raise
        _reject(path, f"must be a readable {path.suffix} file", in_one_line(error), "Correct or save it again.")
    if len(table) == 0:
        _reject(path, "must have rows", "an empty file" if not table.column_names else "a header alone", "Fill it.")
    names = table.column_names
    if twice := [name for name in names if names.count(name) > 1]:
        _reject(path, "must have each column once", f"{twice[0]!r} twice", "Rename or drop one of them.")
    return table


def _reject(path: Path, what: str, got: object, fix: str) -> NoReturn:
    fail(SourceError, f"{path} {what}", got, fix)


def _check_content(path: Path) -> None:
    """Refuse what isn't of the kind that its suffix promises."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    kind = next((word for start, word in MAGIC.items() if head.startswith(start)), "binary" if b"\0" in head else "")
    if path.suffix.lower() == ".parquet":
        if head and kind != "parquet":
            _reject(path, "must be a parquet file, as its suffix says", kind or "text", "Rename or save it again.")
    elif kind:
        _reject(path, f"must be text, as {path.suffix} says", f"a file that is {kind}", "Rename or convert it.")


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")


def _table(header: list[str], rows: Iterable[list[str]]) -> Any:
    from pyarrow import Table, array, string

    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return Table.from_arrays([array(column, string()) for column in columns], names=header)


def _csv(path: Path) -> Any:
    text = _text(path)
    first = text.partition("\n")[0]
    mark = max(",;\t", key=first.count)  # the first of equally common ones
    return _separated(path, csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True))


def _tsv(path: Path) -> Any:
    """Where each line has its fields, a line is a row, and a quotation mark that stands alone is one."""
    text = _text(path)
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    width = lines[0].count("\t") if lines else 0
    if any(line.count("\t") != width for line in lines):
        return _separated(path, csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True))
    header, *rows = (_fields(line, width + 1) for line in lines or [""])
    return _table(header, rows)


def _fields(line: str, count: int) -> list[str]:
    quoted = next(csv.reader([line], delimiter="\t")) if '"' in line else []
    return quoted if len(quoted) == count else line.split("\t")


def _separated(path: Path, reader: Any) -> Any:
    rows: Iterator[list[str]] = iter(reader)
    header = next(rows, [])
    found = []
    try:
        for row in rows:
            if len(row) != len(header) and row:
                got = f"{len(row)} of them in line {reader.line_num}"
                _reject(path, f"must have {len(header)} fields in each row, as in its header", got, "Quote the text.")
            found += [row] if row else []
    except csv.Error as error:
        raise csv.Error(f"{error} in line {reader.line_num}") from error
    return _table(header, found)


def _json(path: Path) -> Any:
    """A JSON object a line, or one list of such objects."""
    from pyarrow import Table

    text = _text(path)
    whole = text.lstrip().startswith("[")
    parts = [(0, text)] if whole else [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows: list[Any] = []
    for number, part in parts:
        try:
            rows += json.loads(part) if whole else [json.loads(part)]
        except ValueError as error:
            where = "" if whole else f" of line {number}"
            _reject(path, "must hold a JSON object a line", f"{error}{where}", "Correct it.")
    if odd := [row for row in rows if not isinstance(row, dict)]:
        _reject(path, "must hold a JSON object a line", type(odd[0]).__name__, 'Write {"text": ..., "label": ...}.')
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table.from_pylist([{name: row.get(name) for name in names} for row in rows])


def _parquet(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path).read()


def _saved(place: Path) -> Found:
    """What ``save_to_disk`` of the library ``datasets`` has left."""
    import datasets

    try:
        loaded = datasets.load_from_disk(str(place))
        parts = dict(loaded) if isinstance(loaded, datasets.DatasetDict) else {"": loaded}
        tables = {name: part.with_format("arrow")[:] for name, part in parts.items()}
    except Exception as error:  # a damaged set makes several libraries fail in ways of their own
        why = f"{type(error).__name__}: {in_one_line(error)}"
        fail(SourceError, f"{place} must be a data set saved by save_to_disk", why, "Save it again.")
    if not all(len(table) for table in tables.values()):
        fail(SourceError, f"{place} must have rows in each split", "an empty one", "Save it again.")
    kinds = {name: kind for part in parts.values() for name, kind in part.features.items()}
    return Found(tables, {name: tuple(kind.names) for name, kind in kinds.items() if hasattr(kind, "names")})


READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".jsonl": _json,
    ".ndjson": _json,
    ".json": _json,
    ".parquet": _parquet,
}
SUFFIXES = tuple(READERS)
