"""Plain text from a folder: paragraphs out of parquet and text files, held-out ones apart, cut into sentences."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from isonb.checks import InputError

__all__ = ["TextError", "Texts", "read_folder", "sentences_of"]

HELD_OUT = ("validation", "valid", "dev")  # file names that begin so are never trained on
SKIPPED = ("test", "readme", "licence", "license")
EVERY = 50  # without a held-out file, each paragraph of this rank is held out
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9])")


class TextError(InputError):
    """A text folder that is missing, holds no readable text, or too little of it."""


@dataclass(frozen=True)
class Texts:
    """Paragraphs to train on and to measure on, in the order of the files; ``fingerprint`` is their sha256."""

    train: list[str]
    validation: list[str]
    fingerprint: str


def read_folder(folder: str | Path) -> Texts:
    """All paragraphs of a folder: the rows of column ``text`` of *.parquet, the lines of *.txt.

    Files named validation*, valid* or dev* are held out; without one, every 50th paragraph is. Files named test* are
    left alone. Raises :class:`TextError` for a missing folder, no such files, a parquet file that is damaged or has no
    column ``text``, and for no text at all.
    """
    folder = Path(folder).expanduser()
    if not folder.is_dir():
        raise TextError(f"the text must be a folder; got {str(folder)!r}, which is none. Check the path.")
    files = sorted(p for p in folder.iterdir() if p.suffix in (".parquet", ".txt"))
    files = [p for p in files if not p.stem.lower().startswith(SKIPPED)]
    if not files:
        raise TextError(f"the text folder must hold *.parquet or *.txt files; got none in {folder}. Add one.")
    held = [p for p in files if p.stem.lower().startswith(HELD_OUT)]
    train = _paragraphs(p for p in files if p not in held)
    validation = _paragraphs(held)
    if not held:
        train, validation = [p for i, p in enumerate(train, 1) if i % EVERY], train[EVERY - 1 :: EVERY] or train[-1:]
    if not train or not validation:
        part = "train" if not train else "validation"
        raise TextError(f"the {part} text must hold at least one paragraph; got none in {folder}. Add text.")
    digest = hashlib.sha256()
    for paragraph in (*train, "\0", *validation):
        digest.update(paragraph.encode() + b"\n")
    return Texts(train, validation, digest.hexdigest())


def sentences_of(paragraph: str) -> list[str]:
    """Cut a paragraph after ``.``, ``!`` or ``?`` where a capital, a digit or an opening quote follows.

    A rule of thumb (it cuts after "Dr."), good enough to choose where a training row begins.

    >>> sentences_of("It rained. Did it stop? No, e.g. not today.")
    ['It rained.', 'Did it stop?', 'No, e.g. not today.']
    """
    return [s for s in SENTENCE_END.split(paragraph.strip()) if s]


def _paragraphs(files: Iterable[Path]) -> list[str]:
    return [p for file in files for p in (_rows(file) if file.suffix == ".parquet" else _lines(file)) if p]


def _lines(file: Path) -> list[str]:
    try:
        return [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise TextError(f"text files must be readable UTF-8; got {error} in {file.name}. Convert the file.") from error


def _rows(file: Path) -> list[str]:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    try:
        table = pq.ParquetFile(file)
        names = table.schema_arrow.names
        if "text" not in names:
            raise TextError(f"{file.name} must have a column 'text'; got {', '.join(names)}. Rename the column.")
        column = table.read(columns=["text"]).column("text").to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise TextError(f"{file.name} must be a parquet file; got {error}. Write it again.") from error
    if not all(value is None or isinstance(value, str) for value in column):
        raise TextError(f"column 'text' of {file.name} must hold strings; got other values. Convert the column.")
    return [value.strip() for value in column if value]
