"""A study made of a reader's runs: arms and suites named from the settings of the runs, whatever grid they are of."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError, fail
from isonb_lab.claims.design import Design, Settings, StudyError
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import PLAN, joined_tables, plan_of, settings_of_rows
from isonb_lab.claims.treated_runs import distinguished, in_short, options, training
from isonb_lab.claims.treatment import canonical
from isonb_lab.methods import method_from, resolved
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import recorded
from isonb_lab.runs.table import scan, series_table, table


def study_of_runs(
    design: Design,
    runs: str | Path,
    *,
    live: Mapping[str, Iterable[Record]] | None = None,
    others: Mapping[str, Study] | None = None,
) -> Study:
    """The study of a design on the runs of a folder, each of which counts as planned.

    An arm that the design knows has its name there; another has the name of its method and the options that aren't at
    their default. Runs of one arm and suite that differ in an option get it behind the arm's name, and runs of one
    suite that differ in how they were trained get that behind the suite's: they aren't compared.

    Args:
        design: what the study compares.
        runs: the folder of a sweep, of records, or of a recording.
        live: records of runs that were just made, by their suite.
        others: the studies that the design refers to, by name, of the same runs.

    Raises
        StudyError: for a folder without complete runs, or with damaged records.
        RecordError: for a folder that can't be read.
        RecordedError: for a recording that isn't as it was published.
    """
    every, logged = tables_of(Path(runs))
    kinds = {cell.settings["experiment"] for cell in plan_of(design.plan, design.size)}
    every = every[every["experiment"].isin(kinds)]
    settings = settings_of_rows(every)
    suites = _suites(design, settings)
    names = [design.arm(setting) or _in_words(setting) for setting in settings]
    arms = _arms(names, settings, suites)
    acts_on = {arm: design.acts_on[name] for arm, name in zip(arms, names, strict=True) if name in design.acts_on}
    design = replace(design, acts_on={**design.acts_on, **acts_on})
    result = every.assign(arm=arms, suite=suites, source="recorded").astype({"arm": object, "suite": object})
    result = result.drop_duplicates(["suite", "arm", "seed"], ignore_index=True).copy()  # in one block again
    cells = result[["suite", "arm", "seed"]].astype(str).agg(", ".join, axis=1) if len(result) else []
    plan = result.assign(cell=cells)[PLAN]
    return Study(
        design, *joined_tables(design, result, logged, plan, live or {}), tuple(live or {}), others=others or {}
    )


def tables_of(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table of the complete runs of a folder, and that of their series."""
    if (folder / "runs.parquet").is_file():
        recording = recorded(folder.name, folder.parent)
        return recording.runs[recording.runs["status"] == "complete"], recording.series
    home = folder / "records" if (folder / "records").is_dir() else folder
    return _of_records(home, frozenset((path.name, path.stat().st_mtime_ns) for path in home.glob("*.json")))


@functools.lru_cache(maxsize=1)
def _of_records(folder: Path, files: frozenset[tuple[str, int]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of a folder of records, read once for all studies while its files and their times stay."""
    result = scan(folder)
    if result.damaged:
        first = result.damaged[0]
        must, fix = "each record of the runs must be whole", "Delete it, or run the sweep again."
        fail(StudyError, must, f"{len(result.damaged)} damaged; {first.path.name}: {first.reason}", fix)
    records = [record for record in result.records.values() if record.status == "complete"]
    if not records:
        must, fix = "runs must be a folder with complete records", "Name the folder that isonb sweep wrote to."
        fail(StudyError, must, f"none in {folder}", fix)
    return table(records), series_table(records)


def _suites(design: Design, settings: Sequence[Settings]) -> list[str]:
    """The suite of each run; of one where runs were trained differently, with what tells them apart."""
    names = list(map(design.suite, settings))
    trained = [training(setting) if setting["experiment"] == "finetune" else {} for setting in settings]
    return distinguished(names, trained, names)


def _arms(names: Sequence[str], settings: Sequence[Settings], suites: Sequence[str]) -> list[str]:
    """The arm of each run; of several settings of one arm and suite with the options in which they differ."""
    methods = [_defaults(str(setting.get("method.name"))) | options(setting) for setting in settings]
    return distinguished(names, methods, list(zip(suites, names, strict=True)))


def _in_words(settings: Settings) -> str:
    """A method and its options that aren't at their default: "entropy, weight 0.5"."""
    name = str(settings["method.name"])
    usual = _defaults(name) | {"method.name": name}
    method = sorted(options(settings).items())
    others = [(column, value) for column, value in method if canonical(value) != canonical(usual.get(column))]
    return ", ".join([name, *(in_short(column, value) for column, value in others)])


@functools.cache
def _defaults(method: str) -> dict[str, Any]:
    """The options of a method at their defaults, by column; none of a method that isn't installed here."""
    with contextlib.suppress(InputError):
        return {f"method.{option}": value for option, value in resolved(method_from(method)).items()}
    return {}
