"""The texts and the labelled pairs of an audit, from files. What is wrong with one is one clear error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail

TEXT = ("text", "sentence")  # columns that need no --column
SIDES = (("text1", "text2"), ("sentence1", "sentence2"), ("row1", "row2"))
LABELS = ("label", "score")


class AuditError(InputError):
    """A file that doesn't hold what it should, or a rule that can't be read."""


def read_texts(path: str | Path, column: str | None = None) -> list[str]:
    """The texts of a .txt file, one a line, or of a column of a .jsonl, .csv, .tsv or .parquet file.

    ``column``: which, unless it is called text or sentence or is the only one of text. A missing value is an empty
    text. Raises an :class:`~isonb.errors.InputError` for a file that holds none.
    """
    path = Path(path)
    if not path.is_file():
        fail(AuditError, "the texts must be in a file", f"no file {path}", "Check the path.")
    texts = _lines(path) if path.suffix.lower() == ".txt" else _texts(path, column)
    if not any(text.strip() for text in texts):
        fail(AuditError, f"{path.name} must hold texts", "an empty file", "Write one text a line.")
    return texts


def _lines(path: Path) -> list[str]:
    content = path.read_bytes()
    if b"\0" in content:
        fail(AuditError, f"{path.name} must be text", "a zero byte: it is binary", "Save it as UTF-8, a text a line.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        got = f"byte {content[error.start]:#04x} in line {content.count(bytes([10]), 0, error.start) + 1}"
        fail(AuditError, f"{path.name} must be UTF-8 throughout", got, "Save all of it in that encoding.")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _texts(path: Path, column: str | None) -> list[str]:
    from isonb.lab.data.own_files import read_file

    table = read_file(path)
    texts = [field.name for field in table.schema if "string" in str(field.type)]
    known = [name for name in TEXT if name in texts] or texts
    name = column if column is not None else known[0] if len(known) == 1 or known[0] in TEXT else None
    if name not in texts:
        got = f"{len(texts)} columns of text ({', '.join(texts[:8])})" if column is None else repr(column)
        fail(AuditError, f"--column must name a column of text in {path.name}", got, "Pass one of its columns.")
    return ["" if text is None else text for text in table.column(name).to_pylist()]


def read_pairs(path: str | Path, rows: bool) -> tuple[list[Any], list[Any], list[float]]:
    """Labelled pairs of a table: text1, text2 (or sentence1, sentence2) and label; with ``rows``: row1, row2, label.

    Raises an :class:`~isonb.errors.InputError` for other columns and values.
    """
    from isonb.lab.data.own_files import read_file

    path = Path(path)
    if not path.is_file():
        fail(AuditError, "the pairs must be in a file", f"no file {path}", "Check the path.")
    table = read_file(path)
    names = table.column_names
    sides = next((pair for pair in SIDES if set(pair) <= set(names) and (pair[0] == "row1") == rows), None)
    label = next((name for name in LABELS if name in names), None)
    if sides is None or label is None:
        wanted = "row1, row2 and label" if rows else "text1, text2 and label"
        fail(AuditError, f"{path.name} must have the columns {wanted}", ", ".join(names), "Rename its columns.")
    first, second = (table.column(name).to_pylist() for name in sides)
    if rows:
        first, second = (_floats(side, path, name) for side, name in zip((first, second), sides, strict=True))
    return first, second, _floats(table.column(label).to_pylist(), path, label)


def _floats(values: list[Any], path: Path, name: str) -> list[float]:
    numbers = []
    for value in values:
        try:
            numbers.append(float(value))
        except (TypeError, ValueError):
            fail(AuditError, f"the column {name} of {path.name} must hold numbers", repr(value), "Correct that row.")
    return numbers
