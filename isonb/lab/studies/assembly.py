"""The recorded and the live runs of a design as one table, in the same columns."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.lab.data.tasks import TASKS, task_size
from isonb.lab.runs.record import Record
from isonb.lab.runs.table import series_table, table
from isonb.lab.studies.design import Design
from isonb.lab.studies.recorded import identified, recorded
from isonb.lab.sweeps.grids import Planned

__all__ = ["assemble"]

SERIES = ["run_id", "name", "step", "value"]
EMPTY = pd.DataFrame(columns=["run_id", "task", "seed"])


def assemble(
    design: Design, planned: Sequence[Planned], folder: Path, live: Mapping[str, Iterable[Record]]
) -> tuple[pd.DataFrame, pd.DataFrame, list[Planned]]:
    """``runs``, ``series`` and ``planned`` of a :class:`~isonb.lab.studies.study.Study`: recorded runs, then live ones.

    A recording that isn't there counts as empty: the runs that it should hold are absent.
    """
    held = [recorded(name, folder) for name in design.recordings if (folder / name).is_dir()]
    runs = pd.concat([one.runs for one in held], ignore_index=True).drop_duplicates("run_id") if held else EMPTY
    planned = identified(planned, runs)
    there = _recorded(design, planned, runs, [one.series for one in held])
    taken = set(there[0]["run_id"])
    parts = [there, *(_live(design, suite, list(runs), taken) for suite, runs in live.items())]
    frames = [runs.dropna(axis=1, how="all") for runs, _ in parts if len(runs)]
    runs = pd.concat(frames, ignore_index=True).copy() if frames else parts[0][0]
    runs = _with_scores(runs)
    series = pd.concat([series for _, series in parts], ignore_index=True)
    return runs, series.merge(runs[["run_id", "suite", "seed", "arm"]], on="run_id"), planned


def _recorded(
    design: Design, planned: Sequence[Planned], runs: pd.DataFrame, series: Sequence[pd.DataFrame]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    configs = {run.run_id: run.config for run in planned}
    arms = {name: arm for name, config in configs.items() if (arm := design.arm(config)) is not None}
    runs = runs[runs["run_id"].isin(arms)].reset_index(drop=True)
    parts = [part[part["run_id"].isin(arms)] for part in series]
    logged = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SERIES)
    suites = {name: design.suite_of(configs[name]) for name in arms}
    return _labelled(runs, arms, suites, "recorded"), logged.drop_duplicates(["run_id", "name", "step"])


def _live(
    design: Design, suite: str, records: list[Record], taken: Container[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and series of live records; a run that was recorded too, with the same settings and id, gets another id."""
    found = {record.run_id: design.arm(record.config) for record in records}
    arms = {name: arm for name, arm in found.items() if arm is not None}
    kept = [record for record in records if record.run_id in arms]
    ids = {name: f"{suite}: {name}" if name in taken else name for name in arms}
    runs = _labelled(table(kept), arms, dict.fromkeys(arms, suite), "live")
    series = series_table(kept)
    return runs.assign(run_id=runs["run_id"].map(ids)), series.assign(run_id=series["run_id"].map(ids))


def _labelled(runs: pd.DataFrame, arms: Mapping[str, str], suites: Mapping[str, str], source: str) -> pd.DataFrame:
    runs = runs.copy()
    return runs.assign(arm=runs["run_id"].map(arms), suite=runs["run_id"].map(suites), source=source)


def _with_scores(runs: pd.DataFrame) -> pd.DataFrame:
    """The main metric by name, its value, that of the majority baseline, and the rows behind it."""
    rows = runs.to_dict("records")
    names = [TASKS[row["task"]].metrics[0] if row.get("task") in TASKS else "" for row in rows]
    return runs.assign(
        metric=names,
        score=[_number(row, f"metric.{name}") for name, row in zip(names, rows, strict=True)],
        majority=[_number(row, f"metric.baseline.{name}") for name, row in zip(names, rows, strict=True)],
        rows=[_rows(row) for row in rows],
    )


def _rows(row: Mapping[Any, Any]) -> int:
    limit, all_of_them = row.get("eval_examples"), task_size(str(row.get("task"))).evaluation
    return all_of_them if limit is None or pd.isna(limit) else min(int(limit), all_of_them)


def _number(row: Mapping[Any, Any], name: str) -> float:
    return float(row.get(name, math.nan))
