"""Recorded runs: the tables in ``book/recorded`` that chapters show beside what they run themselves.

A folder a recording: ``runs.parquet`` (one row a run, as :func:`isonb.lab.runs.table.table` gives it),
``series.parquet`` (one row a logged value) and ``manifest.json`` (schema, run ids, checksums of both).
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb.lab.runs.record import Record
from isonb.lab.runs.run_ids import canonical
from isonb.lab.runs.settings import resolve
from isonb.lab.runs.table import FIRST, column_order, flat, scan, series_table, table
from isonb.lab.sweeps.grids import Planned
from isonb.runtime.files import replace
from isonb.runtime.places import RECORDINGS_FOLDER

__all__ = [
    "FOLDER",
    "KEPT",
    "SCHEMA",
    "Recorded",
    "RecordedError",
    "identified",
    "publish",
    "recorded",
    "tail_means",
]

FOLDER = RECORDINGS_FOLDER
SCHEMA = 1
KEPT = ("step.", "k.", "layer.end.cls.", "layer.start.cls.")  # beginnings of the series that are published
FILES = ("runs.parquet", "series.parquet")


class RecordedError(InputError):
    """A recording that isn't there, isn't as it was published, or can't be made."""


@dataclass(frozen=True)
class Recorded:
    """``runs``: one row a run; ``series``: run_id, name, step, value; ``manifest``: what the folder says of itself."""

    runs: pd.DataFrame
    series: pd.DataFrame
    manifest: Mapping[str, Any]

    def missing(self, planned: Iterable[Planned]) -> list[Planned]:
        """Those of the planned runs that aren't here."""
        there = set(self.runs["run_id"])
        return [run for run in planned if run.run_id not in there]


def publish(
    records: str | Path,
    out: str | Path,
    name: str,
    *,
    only: Collection[str] | None = None,
    series: tuple[str, ...] = KEPT,
    add: bool = False,
) -> Path:
    """Write the complete records of a folder as the recording ``<out>/<name>`` and return that folder.

    ``only``: run ids to take, all by default. ``series``: beginnings of the names of the series to take. ``add`` keeps
    the runs that the recording holds and the folder doesn't: a grid can be recorded in parts, on several machines. The
    same records give the same bytes. Raises :class:`RecordedError` if no complete record is left to publish, or there
    is no sound recording to add to.
    """
    complete = [record for record in scan(records).records.values() if record.status == "complete"]
    chosen = [record for record in complete if only is None or record.run_id in only]
    if not chosen:
        fix = "Run the sweep first, or name other runs."
        raise RecordedError(f"a recording needs at least one complete record; got none in {records}. {fix}")
    folder = Path(out) / name
    runs, logged = table(chosen), series_table(_shortened(record, series) for record in chosen)
    if add:
        before = recorded(name, out)
        runs, logged = (_joined(*pair) for pair in ((before.runs, runs), (before.series, logged)))
        runs = runs[sorted(runs.columns, key=column_order)]
        series = tuple(sorted({*before.manifest["series"], *series}))
    return _written(folder, runs, logged, series)


def _written(folder: Path, runs: pd.DataFrame, logged: pd.DataFrame, series: Iterable[str]) -> Path:
    """The two tables and the manifest, in ``folder``."""
    tables = {"runs.parquet": _one_kind_a_column(runs), "series.parquet": logged}
    sums = {}
    for file, frame in tables.items():
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False, compression="zstd")
        sums[file] = hashlib.sha256(buffer.getvalue()).hexdigest()
        replace(folder / file, buffer.getvalue())
    about = {
        "schema": SCHEMA,
        "name": folder.name,
        "runs": sorted(runs["run_id"]),
        "series": list(series),
        "sha256": sums,
    }
    replace(folder / "manifest.json", (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
    return folder


def recorded(name: str, folder: str | Path | None = None) -> Recorded:
    """The recording ``name`` of ``book/recorded``, or of ``folder``.

    Raises :class:`RecordedError` if it isn't there, is of another schema, or has other content than was published.
    """
    home = (FOLDER if folder is None else Path(folder)) / name
    try:
        about = json.loads((home / "manifest.json").read_text(encoding="utf-8"))
        content = {file: (home / file).read_bytes() for file in FILES}
    except (OSError, ValueError) as error:
        fix = "Those of the book are in a checkout of isonb, not in an installed package; publish() makes others."
        raise RecordedError(f"a recording must be a readable folder; got {error} for {name!r}. {fix}") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        got = about.get("schema") if isinstance(about, dict) else about
        raise RecordedError(f"{name} must have schema {SCHEMA}; got {got!r}. Publish it again.")
    sums = {file: hashlib.sha256(data).hexdigest() for file, data in content.items()}
    if other := [file for file in FILES if about.get("sha256", {}).get(file) != sums[file]]:
        raise RecordedError(f"{name} must be as it was published; got another {other[0]}. Publish it again.")
    runs, series = (pd.read_parquet(io.BytesIO(content[file])) for file in FILES)
    return Recorded(runs, series, about)


def identified(planned: Iterable[Planned], runs: pd.DataFrame) -> list[Planned]:
    """The planned runs, each under the id of the row that holds its settings; under its own id where there is none.

    A recording describes itself: its columns hold the settings of each row. An option that is newer than the recording
    has no column there. Then all rows have its default, and a planned run with another value is none of them. So a new
    option changes the ids of new runs, and takes no recorded one away.
    """
    asked = list(planned)
    ids = set(runs["run_id"])
    if all(run.run_id in ids for run in asked) or runs.empty:
        return asked
    columns = [name for name in runs if name not in FIRST and not name.startswith(("metric.", "manifest."))]
    rows = {canonical(_there(row)): str(row["run_id"]) for row in runs[["run_id", *columns]].to_dict("records")[::-1]}
    return [
        run if run.run_id in ids else Planned(run.config, rows.get(_looked_up(run.config, columns), run.run_id))
        for run in asked
    ]


def _there(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The settings that a row has, as plain values."""
    plain = {name: getattr(value, "item", lambda value=value: value)() for name, value in row.items()}
    return {name: value for name, value in plain.items() if name != "run_id" and value is not None and value == value}


def _looked_up(config: Mapping[str, Any], columns: Collection[str]) -> str:
    """The settings of a planned run as a row would have them; with an option that no row has, a text of no row."""
    settings = flat(config)
    newer = {name: value for name, value in settings.items() if name not in columns and value is not None}
    if newer:
        method = {"method": config["method"]["name"]} if "method" in config else {}
        usual = flat(
            resolve({name: config[name] for name in ("experiment", "task", "model") if name in config} | method)
        )
        if any(usual.get(name) != value for name, value in newer.items()):
            return ""
    return canonical({name: value for name, value in settings.items() if name in columns})


def tail_means(series: pd.DataFrame, share: float = 0.3) -> pd.DataFrame:
    """The mean of each run's ``step.`` series over the last ``share`` of its updates: run_id, name, value.

    A value counts if its update lies above (1 - share) times the run's last one, whatever the series.
    """
    if not 0 < share <= 1:
        raise RecordedError(f"share must be in (0, 1]; got {share}. Pass 0.3 for the last 30%.")
    series = series[series["name"].str.startswith("step.")]
    last = series.groupby("run_id")["step"].transform("max")
    late = series[series["step"] > (1 - share) * last]
    return late.groupby(["run_id", "name"], as_index=False)["value"].mean()


def _joined(before: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Rows of runs that aren't new, and the new ones, in the order of the run ids."""
    kept = before[~before["run_id"].isin(new["run_id"])]
    return pd.concat([kept, new]).sort_values("run_id", kind="stable", ignore_index=True)


def _one_kind_a_column(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns whose values have several types (an option that is a number in one run, a word in another) as text.

    A column without any value has no type, whatever the runs of which part it came from.
    """
    for name in frame.columns:
        if frame[name].isna().all():
            frame[name] = pd.Series([None] * len(frame), dtype=object, index=frame.index)
        if pd.api.types.infer_dtype(frame[name], skipna=True) in ("mixed", "mixed-integer"):
            frame[name] = [None if pd.isna(value) else _word(value) for value in frame[name]]
    return frame


def _word(value: object) -> str:
    """A value as text. A whole number is one also where its column was float, since other runs lack the option.

    >>> _word(-1), _word(-1.0), _word(0.5), _word("all")
    ('-1', '-1', '0.5', 'all')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _shortened(record: Record, beginnings: tuple[str, ...]) -> Record:
    kept = {name: pairs for name, pairs in record.series.items() if name.startswith(beginnings)}
    return Record(record.config, record.metrics, kept, record.manifest, record.status, record.error)
