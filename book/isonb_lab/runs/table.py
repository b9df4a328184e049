"""The records of a folder, good and damaged, and the tables they become."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb.runtime.files import replace
from isonb.runtime.terminal import visible
from isonb_lab.methods import plain_value
from isonb_lab.runs.record import Record, RecordError, read_record

FIRST = ("run_id", "status", "error")  # columns of a table that aren't settings of the run
# of a manifest, as columns
MANIFEST = ("code", "data", "hardware", "plan", "scored", "seconds", "started", "versions", "warnings")


@dataclass(frozen=True)
class Damage:
    """A file that is no good record, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Scan:
    """The good records of a folder by run id, sorted, and the damaged files."""

    records: dict[str, Record]
    damaged: list[Damage]

    def complete(self) -> set[str]:
        """Ids of the runs that needn't run again."""
        return {name for name, record in self.records.items() if record.status == "complete"}


def scan(folder: str | Path) -> Scan:
    """Every record of a folder (``*.json``; unfinished hidden files are passed over). One bad file never stops it.

    A record under a name other than its run id is reported as damaged, so no run counts twice. Raises
    :class:`RecordError` only when the folder itself can't be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise RecordError(f"records are read from a folder; got {str(folder)!r}, which isn't one. Check the path.")
    records: dict[str, Record] = {}
    damaged = []
    for path in sorted(path for path in folder.glob("*.json") if not path.name.startswith(".")):
        try:
            record = read_record(path)
            if record.run_id != path.stem:
                raise RecordError(f"its file must be {record.run_id}.json; got {path.name}. Rename or delete it.")
        except InputError as error:
            damaged.append(Damage(path, str(error)))
        else:
            records[record.run_id] = record
    return Scan(records, damaged)


def table(records: Iterable[Record]) -> pd.DataFrame:
    """One row a run, sorted by run id.

    Columns: ``run_id``, ``status``, ``error``; the configuration under its own names (nested ones joined by dots);
    ``metric.<name>``; ``manifest.<name>`` for code, data, hardware, duration, start and versions. What a run lacks is
    missing.
    """
    rows = [
        flat(record.config)
        | {"run_id": record.run_id, "status": record.status, "error": record.error}
        | {f"metric.{name}": value for name, value in record.metrics.items()}
        | flat({name: record.manifest[name] for name in MANIFEST if name in record.manifest}, "manifest.")
        for record in sorted(records, key=lambda record: record.run_id)
    ]
    columns = sorted({*FIRST, *(name for row in rows for name in row)}, key=column_order)
    frame = pd.DataFrame(rows, columns=columns)
    for name in columns:
        if name.startswith("metric."):
            frame[name] = frame[name].astype("float64")
    return frame.copy()  # in one piece, as wide as it is


def series_table(records: Iterable[Record], beginnings: str | tuple[str, ...] = "") -> pd.DataFrame:
    """The logged values of several runs, one row a value: ``run_id``, ``name``, ``step``, ``value``.

    ``beginnings``: of the names of the series that are taken.
    """
    rows = [
        (record.run_id, name, step, value)
        for record in sorted(records, key=lambda record: record.run_id)
        for name, pairs in sorted(record.series.items())
        if name.startswith(beginnings)
        for step, value in pairs
    ]
    frame = pd.DataFrame(rows, columns=["run_id", "name", "step", "value"])
    return frame.astype({"step": "float64", "value": "float64"})


def write_table(frame: pd.DataFrame, out: str | Path) -> None:
    """Write a table in one move, as its suffix says; raises as :func:`check_table`.

    In parquet, columns whose values have several types (a seed in one run, a word in another) are text.
    """
    check_table(out)
    replace(Path(out), WRITERS[Path(out).suffix.lower()](frame))


def check_table(out: str | Path) -> None:
    """Raise :class:`RecordError` for a file that can't be written: another suffix, or a folder's name."""
    suffix = Path(out).suffix.lower()
    if suffix not in WRITERS:
        fix = "The suffix says what is written."
        raise RecordError(f"a table must be a file {', '.join(WRITERS)}; got {str(out)!r}. {fix}")
    if Path(out).is_dir():
        raise RecordError(f"a table must be a file; got the folder {str(out)!r}. Name a file in it.")


def one_kind_a_column(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns whose values have several types (an option that is a number in one run, a word in another) as text.

    A column without any value has no type, whichever runs it came from.
    """
    for name in frame.columns:
        if frame[name].isna().all():
            frame[name] = pd.Series([None] * len(frame), dtype=object, index=frame.index)
        if pd.api.types.infer_dtype(frame[name], skipna=True) in ("mixed", "mixed-integer"):
            frame[name] = [None if pd.isna(value) else str(plain_value(value)) for value in frame[name]]
    return frame


def _markdown(frame: pd.DataFrame) -> bytes:
    """A pipe table; bars, markup and control characters inside values are escaped."""
    rows = [list(frame.columns), ["---"] * len(frame.columns), *frame.astype(object).where(frame.notna(), "").values]
    texts = ([visible(" ".join(str(cell).split())) for cell in row] for row in rows)
    cells = ([html.escape(cell, quote=False).replace("|", "\\|") for cell in row] for row in texts)
    return "".join(f"| {' | '.join(row)} |\n" for row in cells).encode()


def _spelled(value: object) -> object:
    return visible(value) if isinstance(value, str) else value


WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    ".csv": lambda frame: frame.to_csv(index=False).encode(),
    ".md": _markdown,
    ".html": lambda frame: frame.map(_spelled).to_html(index=False, na_rep="").encode(),
    ".parquet": lambda frame: one_kind_a_column(frame.copy()).to_parquet(index=False),
}


def column_order(name: str) -> tuple[int, int, str]:
    """Sorts the columns of a :func:`table`: what run it is, its configuration, metrics, manifest."""
    first = FIRST.index(name) if name in FIRST else len(FIRST)
    return (first, name.startswith("metric.") + 2 * name.startswith("manifest."), name)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, as the columns of a :func:`table` hold them: names joined by dots, lists as JSON text.

    >>> flat({"seed": 1, "method": {"name": "istar", "layers": [1, 2]}})
    {'seed': 1, 'method.name': 'istar', 'method.layers': '[1, 2]'}
    """
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            columns |= flat(value, f"{prefix}{name}.")
        else:
            columns[prefix + name] = json.dumps(value) if isinstance(value, list | tuple) else value
    return columns
