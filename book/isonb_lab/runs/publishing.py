"""Complete records published as a recording, with the defaults that tell which of its options were set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb.options import describe
from isonb.runtime.files import replace
from isonb_lab.methods import method_from, resolved
from isonb_lab.runs.recordings import SCHEMA, RecordedError, recorded
from isonb_lab.runs.settings import EXPERIMENTS
from isonb_lab.runs.table import column_order, flat, one_kind_a_column, scan, series_table, table

KEPT = ("step.", "k.", "layer.end.cls.", "layer.start.cls.")  # beginnings of the series that are published


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

    Args:
        records: the folder of records.
        out: the folder that the recording's own folder is made in.
        name: of the recording.
        only: run ids to take, all by default.
        series: beginnings of the names of the series to take.
        add: keeps the runs that the recording holds and ``records`` doesn't: a grid can be recorded bit by bit, on
            several machines.

    The same records give the same bytes. Raises :class:`~isonb_lab.runs.recordings.RecordedError` if no complete record
    is left to publish, or there is no sound recording to add to.
    """
    complete = [record for record in scan(records).records.values() if record.status == "complete"]
    chosen = [record for record in complete if only is None or record.run_id in only]
    if not chosen:
        fix = "Run the sweep first, or name other runs."
        raise RecordedError(f"a recording needs at least one complete record; got none in {records}. {fix}")
    runs, logged = table(chosen), series_table(chosen, series)
    defaults = defaults_of(runs)
    if add:
        before = recorded(name, out)
        earlier = _described(before.runs, before.defaults, defaults)
        for kind, options in before.defaults.items():  # what was recorded stays described by the defaults of its time
            defaults[kind] = defaults.get(kind, {}) | dict(options)
        runs, logged = (
            pd.concat([old[~old["run_id"].isin(new["run_id"])], new]).sort_values(
                "run_id", kind="stable", ignore_index=True
            )
            for old, new in ((earlier, runs), (before.series, logged))
        )
        runs = runs[sorted(runs.columns, key=column_order)]
        series = tuple(sorted({*before.manifest["series"], *series}))
    return write_recording(Path(out) / name, runs, logged, series, defaults)


def _described(
    runs: pd.DataFrame, recorded_defaults: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """The rows with the options that came after them at their default, with which they change nothing."""
    runs = runs.copy()
    methods = runs["method.name"] if "method.name" in runs else runs["experiment"]
    for kind in recorded_defaults.keys() & now.keys():
        mine = (runs["experiment"] == kind) | ("method." + methods == kind)
        for name in now[kind].keys() - recorded_defaults[kind].keys():
            runs.loc[mine, name] = now[kind][name]
    return runs


def defaults_of(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The defaults of every experiment and method that these runs have, as columns of a table name the options."""
    defaults = {name: flat(describe(EXPERIMENTS[name]())) for name in sorted(runs["experiment"].dropna().unique())}
    names = runs["method.name"].dropna().unique() if "method.name" in runs else ()
    for name in sorted(names):
        try:
            options = resolved(method_from(name))
        except InputError:  # a file of the user's own that is gone: its options all count as set
            continue
        options.pop("name")
        defaults[f"method.{name}"] = flat({"method": options})
    return defaults


def write_recording(
    folder: Path,
    runs: pd.DataFrame,
    logged: pd.DataFrame,
    series: Iterable[str],
    defaults: Mapping[str, Mapping[str, Any]],
) -> Path:
    """The two tables and the manifest, in ``folder``."""
    tables = {"runs.parquet": one_kind_a_column(runs), "series.parquet": logged}
    sums = {}
    for file, frame in tables.items():
        content = frame.to_parquet(index=False, compression="zstd")
        sums[file] = hashlib.sha256(content).hexdigest()
        replace(folder / file, content)
    about = {
        "schema": SCHEMA,
        "name": folder.name,
        "runs": sorted(runs["run_id"]),
        "series": list(series),
        "sha256": sums,
        "defaults": defaults,
    }
    replace(folder / "manifest.json", (json.dumps(about, indent=1, sort_keys=True) + "\n").encode())
    return folder
