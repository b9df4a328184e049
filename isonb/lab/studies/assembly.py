"""The plan, the recorded and the live runs of a design as tables, all with the same columns."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.lab.data.tasks import TASKS, task_size
from isonb.lab.runs.record import Record
from isonb.lab.runs.recordings import recorded
from isonb.lab.runs.table import series_table, table
from isonb.lab.studies.design import Design
from isonb.lab.studies.plan import PlannedCell, filled, settings_of_rows, usual_settings

__all__ = ["PLAN", "assemble"]

PLAN = ["cell", "arm", "suite", "run_id"]
SERIES = ["run_id", "name", "step", "value"]
EMPTY = pd.DataFrame(columns=["run_id", "task", "seed"])


def assemble(
    design: Design, cells: Sequence[PlannedCell], folder: Path, live: Mapping[str, Iterable[Record]]
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """``runs``, ``series`` and ``plan`` of a :class:`~isonb.lab.studies.study.Study`: recorded runs, then live ones.

    A recording that isn't there counts as empty: the cells that its rows should fill are absent.
    """
    held = [recorded(name, folder) for name in design.recordings if (folder / name).is_dir()]
    runs = pd.concat([one.runs for one in held], ignore_index=True).drop_duplicates("run_id") if held else EMPTY
    defaults = {name: options for one in held for name, options in one.defaults.items()}
    runs = runs.reset_index(drop=True)
    settings = dict(zip(runs["run_id"], settings_of_rows(runs), strict=True))
    rows = []
    for cell, run in filled(cells, held).items():
        told = settings[run] if run else _written_out(cell, defaults)
        if (arm := design.arm(told)) is not None:
            rows.append((cell.name, arm, design.suite_of(told), run))
    plan = pd.DataFrame(rows, columns=PLAN)
    there = _recorded(plan.dropna(subset="run_id").set_index("run_id"), runs, [one.series for one in held])
    taken = set(there[0]["run_id"])
    tables = [there, *(_live(design, suite, list(records), taken) for suite, records in live.items())]
    frames = [runs.dropna(axis=1, how="all") for runs, _ in tables if len(runs)]
    runs = pd.concat(frames, ignore_index=True).copy() if frames else tables[0][0]
    runs = _with_scores(runs)
    series = pd.concat([series for _, series in tables], ignore_index=True)
    return runs, series.merge(runs[["run_id", "suite", "seed", "arm"]], on="run_id"), plan


def _written_out(cell: PlannedCell, defaults: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of a planned cell, with what the recordings say of the defaults."""
    settings = {**usual_settings(cell.given, defaults), **cell.given}
    return {name: value for name, value in settings.items() if value is not None}


def _recorded(
    places: pd.DataFrame, runs: pd.DataFrame, series: Sequence[pd.DataFrame]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    runs = runs[runs["run_id"].isin(places.index)].reset_index(drop=True)
    logged = [one[one["run_id"].isin(places.index)] for one in series]
    together = pd.concat(logged, ignore_index=True) if logged else pd.DataFrame(columns=SERIES)
    labels = _labelled(runs, places["arm"], places["suite"], "recorded")
    return labels, together.drop_duplicates(["run_id", "name", "step"])


def _live(
    design: Design, suite: str, records: list[Record], taken: Container[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Runs and series of live records; a run that was recorded too, with the same settings and id, gets another id."""
    rows = table(records)
    arms = dict(zip(rows["run_id"], map(design.arm, settings_of_rows(rows)), strict=True))
    kept = [record for record in records if arms[record.run_id] is not None]
    ids = {record.run_id: f"{suite}: {record.run_id}" if record.run_id in taken else record.run_id for record in kept}
    runs = _labelled(table(kept), arms, dict.fromkeys(arms, suite), "live")
    series = series_table(kept)
    return runs.assign(run_id=runs["run_id"].map(ids)), series.assign(run_id=series["run_id"].map(ids))


def _labelled(runs: pd.DataFrame, arms: Any, suites: Any, source: str) -> pd.DataFrame:
    """The runs with arm and suite by their id, each a mapping or a series."""
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
