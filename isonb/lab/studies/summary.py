"""Verdicts as rows of tables and as counts for the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isonb.lab.studies.verdicts import CONTRADICTED, OUTCOMES, SUPPORTED, Cell, Judgement, PartJudgement

__all__ = ["MEAN", "cell_rows", "claim_rows", "tally"]

MEAN = "mean"

ASIDE = {"identity": " (identity)", "printed": " (printed numbers)", "runs": ""}


def claim_rows(judged: Mapping[str, Sequence[Judgement]]) -> list[dict[str, Any]]:
    """One row a claim; for each source ("recorded", "live") its outcome, and its cells on the claimed and other side.

    One source alone isn't named in the columns. A cell that can't tell doesn't count among the cells.
    """
    sources = list(judged)
    rows = []
    for number, first in enumerate(judged[sources[0]]):
        row: dict[str, Any] = {"claim": _named(first)}
        for source in sources:
            found = judged[source][number]
            telling = [cell.outcome for cell in found.cells if cell.interval is not None]
            sides = [telling.count(side) for side in (SUPPORTED, CONTRADICTED)]
            prefix = f"{source}: " if len(sources) > 1 else ""
            row[source if prefix else "verdict"] = found.words
            row[f"{prefix}cells for · against"] = f"{sides[0]} · {sides[1]} of {len(telling)}" if telling else "–"
        rows.append(row)
    return rows


def _named(judged: Judgement) -> str:
    """A claim's number or name, and what it says: "3. It gains", "late: A late push gains"."""
    name, words = str(judged.claim.number), f"{judged.claim.statement}{ASIDE[judged.claim.kind]}"
    return f"{name}: {words}" if name.isalpha() else f"{name}. {words}"


def cell_rows(judged: Iterable[Judgement], *, tested: bool = True) -> list[dict[str, Any]]:
    """One row a claim, part and cell: numbers with their interval, minimum detectable effect, outcome, reason.

    The cells of a part are followed by their mean, which the verdict is of, under the name :data:`MEAN`.
    ``tested=False`` gives the cells that can't tell instead.
    """
    return [
        {"claim": judgement.claim.number, "statement": judgement.claim.statement, "what": part.part.what} | _told(cell)
        for judgement in judged
        for part in judgement.parts
        for cell in (*part.cells, *_mean(part))
        if (cell.interval is not None) == tested
    ]


def _mean(part: PartJudgement) -> list[Cell]:
    """The mean over the cells of a part as a cell, where there are several."""
    if part.mean is None or sum(cell.interval is not None for cell in part.cells) < 2:
        return []
    how = "over seeds" if part.mean.method == "student" else "over cells"
    reason = f"I2 = {part.spread.i2:.0%}" if part.spread else ""
    return [Cell(f"{MEAN}, {how}", part.outcome, reason, part.mean.n, part.mean, None, part.visible)]


def _told(cell: Cell) -> dict[str, Any]:
    found = cell.interval
    return {
        "cell": cell.name,
        "n": cell.n,
        "mean": None if found is None else found.estimate,
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "dz": cell.dz,
        "visible": cell.visible,
        "outcome": cell.outcome,
        "reason": cell.reason,
    }


def tally(judged: Iterable[Judgement], kind: str = "runs") -> dict[str, int]:
    """How many claims of a kind have each outcome; identities and printed numbers are no evidence about methods."""
    found = [judgement.outcome for judgement in judged if judgement.claim.kind == kind]
    return {outcome: found.count(outcome) for outcome in OUTCOMES}
