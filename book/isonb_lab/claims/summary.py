"""Verdicts as rows of tables and as counts for the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from isonb_lab.claims.verdicts import (
    CONTRADICTED,
    OUTCOMES,
    SUPPORTED,
    Claim,
    JudgedCell,
    Judgement,
    Prediction,
    PredictionJudgement,
    Reason,
)

MEAN = "mean"
ASIDE = {"identity": " (identity)", "printed": " (printed numbers)", "runs": ""}


def claim_rows(judged: Iterable[Judgement]) -> list[dict[str, Any]]:
    """One row a claim: its verdict, and how many of the cells that can tell lie on the claimed and the other side."""
    rows = []
    for item in judged:
        informative = [cell.outcome for cell in item.cells if cell.interval is not None]
        sides = [informative.count(side) for side in (SUPPORTED, CONTRADICTED)]
        counted = f"{sides[0]} · {sides[1]} of {len(informative)}" if informative else "–"
        rows.append({"claim": _named(item.claim), "verdict": with_setting(item), "cells for · against": counted})
    return rows


def with_setting(judgement: Judgement) -> str:
    """A verdict with the encoders, tasks and settings of its runs: "not seen here (tiny; SST-2; weight 0.1)".

    Where several encoders have such runs, what each of them says alone: "inconclusive: supported with tiny, ...".
    """
    alone = ", ".join(f"{outcome} with {encoder} alone" for encoder, outcome in judgement.by_encoder.items())
    if alone and set(judgement.by_encoder.values()) == {judgement.outcome}:
        alone = "so is each encoder alone"
    label = f"{judgement.label}: {alone}" if alone else judgement.label
    return f"{label} ({judgement.setting})" if judgement.setting else label


def _named(claim: Claim) -> str:
    """A claim's number or name, and what it says: "3. It gains", "late: A late penalty gains"."""
    name, text = str(claim.number), f"{claim.statement}{ASIDE[claim.kind]}"
    return f"{name}. {text}" if name[-1].isdigit() else f"{name}: {text}"


def cell_rows(judged: Iterable[Judgement], *, tested: bool = True) -> list[dict[str, Any]]:
    """One row a claim, prediction and cell: numbers with their interval, minimum detectable effect, outcome, reason.

    The cells of a prediction are followed by their mean, which the verdict is of, under the name :data:`MEAN`.
    ``tested=False`` gives the cells that can't tell instead.
    """
    return [
        {"claim": item.claim.number, "statement": item.claim.statement, "what": part.prediction.what}
        | row
        | {"outcome": item.outcome_of(part, row["outcome"])}
        for item in judged
        for part in item.predictions
        for row in (*(cell_row(cell, part.prediction) for cell in part.cells), *_mean(part))
        if (row["mean"] is not None) == tested
    ]


def _mean(judgement: PredictionJudgement) -> list[dict[str, Any]]:
    """The row of the mean over the cells of a prediction, where there are several."""
    if judgement.mean is None or sum(cell.interval is not None for cell in judgement.cells) < 2:
        return []
    how = "over seeds" if judgement.mean.method == "student" else "over cells"
    mean = JudgedCell(
        f"{MEAN}, {how}", judgement.outcome, Reason.BOTH, "", judgement.mean.n, judgement.mean, judgement.mde
    )
    return [cell_row(mean, judgement.prediction) | {"reason": ""}]


def cell_row(cell: JudgedCell, prediction: Prediction | None = None) -> dict[str, Any]:
    """The numbers, outcome and reason of one cell, of a prediction where there is one."""
    interval = prediction.shown(cell.interval) if prediction and cell.interval else cell.interval
    return {
        "cell": cell.name,
        "n": cell.n,
        "mean": None if interval is None else interval.estimate,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "mde": cell.mde,
        "outcome": cell.outcome,
        "reason": replace(cell, interval=interval).explanation,
    }


def tally(judged: Iterable[Judgement]) -> dict[str, int]:
    """How many claims have each outcome; identities and printed numbers are no evidence about methods."""
    outcomes = [judgement.outcome for judgement in judged if judgement.claim.kind == "runs"]
    return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}
