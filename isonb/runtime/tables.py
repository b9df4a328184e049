"""Tables in a user's files: CSV, TSV, JSON lines and parquet, as they are written."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail, in_one_line


class SourceError(InputError):
    """The rows can't be had: no folder, no file, no network, or other columns and labels than the task's."""


def read_file(path: Path) -> Any:
    """The Arrow table of one file, which its suffix tells how to read. Columns of CSV and TSV files are text."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        fail(SourceError, f"{path} must be one of {', '.join(READERS)}", path.suffix or "no suffix", "Convert it.")
    try:
        table = reader(path)
    except UnicodeDecodeError as error:
        fail(SourceError, f"{path} must be text in UTF-8", f"another byte at {error.start}", "Save it as UTF-8.")
    except Exception as error:  # each library fails in ways of its own
        what = f"{path} must be a readable {path.suffix} file"
        fail(SourceError, what, in_one_line(error), "Correct or save it again.")
    names = table.column_names
    if len(table) == 0:
        fail(SourceError, f"{path} must have rows", "a header alone" if names else "an empty file", "Fill it.")
    if twice := [name for name in names if names.count(name) > 1]:
        fail(SourceError, f"{path} must have each column once", f"{twice[0]!r} twice", "Rename or drop one of them.")
    return table


def _separated(path: Path) -> Any:
    """Rows as pandas reads them, every value the text that it is.

    Where each line of a TSV has its fields, a line is a row, and a quotation mark that stands alone is one.
    """
    import pandas as pd
    from pyarrow import Table  # type: ignore[import-untyped,unused-ignore]

    text = path.read_bytes().decode("utf-8-sig")
    if not text.strip():
        return Table.from_pydict({})
    header, tabbed = text.lstrip("\r\n ").partition("\n")[0], path.suffix.lower() == ".tsv"
    plain = tabbed and len({line.count("\t") for line in text.split("\n") if line.strip()}) == 1
    mark = "\t" if tabbed else max(",;\t", key=header.count)  # the first of equally common ones
    options: dict[str, Any] = {"header": None, "dtype": str, "keep_default_na": False}
    options["quoting"] = csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL
    rows = pd.read_csv(io.StringIO(text, newline=""), sep=mark, **options)  # the header is a row: a name may come twice
    columns = [list(map(_unquoted, rows[number][1:])) if plain else rows[number][1:].tolist() for number in rows]
    return Table.from_arrays(columns, names=rows.iloc[0].tolist())


def _unquoted(cell: str) -> str:
    return cell[1:-1].replace('""', '"') if len(cell) > 1 and cell[0] == cell[-1] == '"' else cell


def _json(path: Path) -> Any:
    """A JSON object a line, or one list of such objects."""
    from pyarrow import Table

    text = path.read_bytes().decode("utf-8-sig")
    whole = text.lstrip().startswith("[")
    rows: list[Any] = []
    for number, line in enumerate([text] if whole else text.split("\n"), start=1):
        try:
            rows += [] if not line.strip() else json.loads(line) if whole else [json.loads(line)]
        except ValueError as error:
            raise ValueError(f"{error} of line {number}, where a JSON object must be") from error
    if odd := [row for row in rows if not isinstance(row, dict)]:
        raise ValueError(f"{type(odd[0]).__name__} where an object must be, as in {{'text': ..., 'label': ...}}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table.from_pylist([{name: row.get(name) for name in names} for row in rows])


def _parquet(path: Path) -> Any:
    from pyarrow.parquet import ParquetFile  # type: ignore[import-untyped,unused-ignore]

    return ParquetFile(path).read()


READERS = dict.fromkeys((".csv", ".tsv"), _separated) | dict.fromkeys((".jsonl", ".ndjson", ".json"), _json)
READERS[".parquet"] = _parquet
