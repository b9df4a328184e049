"""Verdicts and runs as rows of tables, and as counts for the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.lab.runs.manifest import processor_kinds
from isonb.lab.runs.recordings import FOLDER, recorded
from isonb.lab.studies.design import Design, every_design
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    NO_SETTING,
    NOT_TESTABLE,
    OUTCOMES,
    SUPPORTED,
    Claim,
    JudgedCell,
    Judgement,
    PredictionJudgement,
    Reason,
)

MEAN = "mean"
ASIDE = {"identity": " (identity)", "printed": " (printed numbers)", "runs": ""}
HEAD = ("study", "page", "claim", "statement", "kind", "verdict", "words", "remark")
COLUMNS = (
    *HEAD,
    *("what", "trained", "cell", "n", "mean", "low", "high", "visible", "outcome", "reason", "needs"),
)
OPEN = (INCONCLUSIVE, NOT_TESTABLE, NO_SETTING)
NEEDS = {  # what would decide a cell, by the reason for which it is open
    Reason.UNTAUGHT: "the paper's runs again, with models that learn their tasks",
    Reason.UNLEARNED: "settings with which something learns the task",
    Reason.UNTUNED: "weaker or other settings of the method",
    Reason.SAME: "runs that don't all give the same number",
    Reason.FEW: "more replicates: seeds, or encoders",
    Reason.NO_RUNS: "runs where there are none yet",
    Reason.NEGLIGIBLE: "a method that moves the measure further",
    Reason.BOTH: "more seeds or pairs, for a narrower interval",
}


def claim_rows(judged: Mapping[str, Sequence[Judgement]]) -> list[dict[str, Any]]:
    """One row a claim; for each source ("recorded", "live") its outcome, and its cells on the claimed and other side.

    One source alone isn't named in the columns. A cell that can't tell doesn't count among the cells.
    """
    sources = list(judged)
    rows = []
    for number, first in enumerate(judged[sources[0]]):
        row: dict[str, Any] = {"claim": _named(first.claim)}
        for source in sources:
            one = judged[source][number]
            telling = [cell.outcome for cell in one.cells if cell.interval is not None]
            sides = [telling.count(side) for side in (SUPPORTED, CONTRADICTED)]
            prefix = f"{source}: " if len(sources) > 1 else ""
            row[source if prefix else "verdict"] = one.words
            row[f"{prefix}cells for · against"] = f"{sides[0]} · {sides[1]} of {len(telling)}" if telling else "–"
        rows.append(row)
    return rows


def _named(claim: Claim) -> str:
    """A claim's number or name, and what it says: "3. It gains", "late: A late penalty gains"."""
    name, words = str(claim.number), f"{claim.statement}{ASIDE[claim.kind]}"
    return f"{name}: {words}" if name.isalpha() else f"{name}. {words}"


def cell_rows(judged: Iterable[Judgement], *, tested: bool = True) -> list[dict[str, Any]]:
    """One row a claim, prediction and cell: numbers with their interval, minimum detectable effect, outcome, reason.

    The cells of a prediction are followed by their mean, which the verdict is of, under the name :data:`MEAN`.
    ``tested=False`` gives the cells that can't tell instead.
    """
    return [
        {"claim": one.claim.number, "statement": one.claim.statement, "what": tested_.prediction.what} | row
        for one in judged
        for tested_ in one.predictions
        for row in (*map(_told, tested_.cells), *_mean(tested_))
        if (row["mean"] is not None) == tested
    ]


def _mean(one: PredictionJudgement) -> list[dict[str, Any]]:
    """The row of the mean over the cells of a prediction, where there are several."""
    if one.mean is None or sum(cell.interval is not None for cell in one.cells) < 2:
        return []
    how = "over seeds" if one.mean.method == "student" else "over cells"
    mean = JudgedCell(f"{MEAN}, {how}", one.outcome, Reason.BOTH, "", one.mean.n, one.mean, one.visible)
    return [_told(mean) | {"reason": f"I2 = {one.spread.i2:.0%}" if one.spread else ""}]


def _told(cell: JudgedCell) -> dict[str, Any]:
    one = cell.interval
    return {
        "cell": cell.name,
        "n": cell.n,
        "mean": None if one is None else one.estimate,
        "low": None if one is None else one.low,
        "high": None if one is None else one.high,
        "visible": cell.visible,
        "outcome": cell.outcome,
        "reason": cell.words,
    }


def tally(judged: Iterable[Judgement], kind: str = "runs") -> dict[str, int]:
    """How many claims of a kind have each outcome; identities and printed numbers are no evidence about methods."""
    outcomes = [judgement.outcome for judgement in judged if judgement.claim.kind == kind]
    return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}


def claim_cells(design: Design, judged: Sequence[Judgement]) -> pd.DataFrame:
    """One row a claim, prediction and cell, with the chapter that judges it: :data:`COLUMNS`.

    ``verdict`` is the claim's, ``words`` says on what it depends, ``outcome`` is the cell's, ``needs`` what would
    decide it. A claim without predictions has one row, whose cell has no name and whose reason is the claim's remark:
    a table of claims must not lose it.
    """
    rows = []
    for one in judged:
        claim = one.claim
        told = (claim.number, claim.statement, claim.kind, one.outcome, one.words, claim.remark)
        head = dict(zip(HEAD, (design.name, design.page, *told), strict=True))
        for tested in one.predictions:
            what = {"what": tested.prediction.what, "trained": tested.prediction.trained}
            wanted = tested.prediction.needs or claim.needs
            rows += [head | what | _told(cell) | {"needs": wanted or NEEDS.get(cell.reason)} for cell in tested.cells]
        if not one.cells:
            blank = _told(JudgedCell("", one.outcome, Reason.NO_RUNS)) | {"reason": claim.remark}
            rows.append(head | {"what": "", "trained": False} | blank | {"needs": claim.needs or claim.remark})
    return pd.DataFrame(rows, columns=list(COLUMNS))


def open_needs(cells: pd.DataFrame) -> list[dict[str, object]]:
    """What would decide the claims about methods that are open: one row a need, the commonest first.

    ``cells`` is a table as of :func:`claim_cells`, of any number of studies.
    """
    undecided = cells[(cells["kind"] == "runs") & cells["verdict"].isin(OPEN) & cells["outcome"].isin(OPEN)]
    rows: list[dict[str, object]] = [
        {"need": need, "claims": sorted(set(some["claim"])), "cells": len(some)}
        for need, some in undecided.groupby("needs", sort=False)
    ]
    return sorted(rows, key=lambda row: (-int(str(row["cells"])), str(row["need"])))


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


def _main(run: pd.Series[Any]) -> float | None:
    """The main metric; of a similarity set with subsets the mean over these."""
    score = run["score"] if pd.notna(run["score"]) else run.get(f"metric.{run['metric']}.mean")
    return None if pd.isna(score) else float(score)


def untaken(folder: Path = FOLDER) -> dict[str, list[str]]:
    """The recorded rows that no design takes: run ids by recording, only of recordings that have some."""
    taken = {run for design in every_design() for run in Study.load(design, folder=folder).recorded["run_id"]}
    names = sorted(path.parent.name for path in folder.glob("*/runs.parquet"))
    left = {name: sorted(set(recorded(name, folder).runs["run_id"]) - taken) for name in names}
    return {name: runs for name, runs in left.items() if runs}
