"""The recorded runs of a study as rows of a table, for whoever wants to see what a verdict rests on."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.lab.runs.arithmetic import processor_kinds
from isonb.lab.runs.recordings import FOLDER, recorded
from isonb.lab.studies import designs
from isonb.lab.studies.design import Design
from isonb.lab.studies.study import STUDIES, Study

__all__ = ["every_design", "run_rows", "untaken"]


def run_rows(study: Study) -> list[dict[str, Any]]:
    """One row a recorded run, by task and arm in the order of the grid and by seed.

    task, arm, seed, metric, score and majority (the task's main metric of the run, and of the majority baseline;
    None where it has none), processor (its kind), run (its id).
    """
    runs = study.recorded
    places = {"suite": pd.Categorical(runs["suite"], study.suites), "arm": pd.Categorical(runs["arm"], study.arms)}
    runs = runs.loc[runs.assign(**places).sort_values(["suite", "arm", "seed", "run_id"]).index]
    return [
        {
            "task": run["suite"],
            "arm": run["arm"],
            "seed": int(run["seed"]),
            "metric": run["metric"] or "–",
            "score": _main(run),
            "majority": None if pd.isna(run["majority"]) else float(run["majority"]),
            "processor": kind,
            "run": run["run_id"],
        }
        for (_, run), kind in zip(runs.iterrows(), processor_kinds(runs), strict=True)
    ]


def every_design() -> list[Design]:
    """The designs of all studies, with those of the runs before and beside them (``VARIANTS`` of a design's file)."""
    files = (importlib.import_module(f"{designs.__name__}.{name}") for name in STUDIES)
    return [design for file in files for design in (file.DESIGN, *getattr(file, "VARIANTS", ()))]


def untaken(folder: Path = FOLDER) -> dict[str, list[str]]:
    """The recorded rows that no design takes: run ids by recording, only of recordings that have some."""
    taken = {run for design in every_design() for run in Study.load(design, folder=folder).recorded["run_id"]}
    names = sorted(path.parent.name for path in folder.glob("*/manifest.json"))
    left = {name: sorted(set(recorded(name, folder).runs["run_id"]) - taken) for name in names}
    return {name: runs for name, runs in left.items() if runs}


def _main(run: pd.Series[Any]) -> float | None:
    """The main metric; of a similarity set with parts the mean over these."""
    found = run["score"] if pd.notna(run["score"]) else run.get(f"metric.{run['metric']}.mean")
    return None if pd.isna(found) else float(found)
