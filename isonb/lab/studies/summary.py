"""Verdicts as rows of tables and as counts for the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isonb.lab.studies.verdicts import NOT_TESTABLE, OUTCOMES, SUPPORTED, Judgement

__all__ = ["cell_rows", "claim_rows", "tally"]

ASIDE = {"identity": " (identity)", "printed": " (printed numbers)", "runs": ""}


def claim_rows(judged: Mapping[str, Sequence[Judgement]]) -> list[dict[str, Any]]:
    """One row a claim; for each source ("recorded", "live") its outcome and how many cells support it.

    One source alone isn't named in the columns. A cell that can't be tested doesn't count among the cells.
    """
    sources = list(judged)
    rows = []
    for number, first in enumerate(judged[sources[0]]):
        row: dict[str, Any] = {"claim": _named(first)}
        for source in sources:
            found = judged[source][number]
            telling = [cell for cell in found.cells if cell.outcome != NOT_TESTABLE]
            seen = sum(cell.outcome == SUPPORTED for cell in telling)
            named = len(sources) > 1
            support = f"{source}: cells in support" if named else "cells in support"
            row[source if named else "verdict"] = found.outcome
            row[support] = f"{seen} of {len(telling)}" if telling else "–"
        rows.append(row)
    return rows


def _named(judged: Judgement) -> str:
    """A claim's number or name, and what it says: "3. It gains", "late: A late push gains"."""
    name, words = str(judged.claim.number), f"{judged.claim.statement}{ASIDE[judged.claim.kind]}"
    return f"{name}: {words}" if name.isalpha() else f"{name}. {words}"


def cell_rows(judged: Iterable[Judgement], *, tested: bool = True) -> list[dict[str, Any]]:
    """One row a claim, part and cell: numbers with their interval, the smallest effect to be seen, outcome, reason.

    ``tested=False`` gives those that can't be tested instead.
    """
    return [
        {
            "claim": judgement.claim.number,
            "statement": judgement.claim.statement,
            "what": part.part.what,
            "cell": cell.name,
            "n": cell.n,
            "mean": None if cell.interval is None else cell.interval.estimate,
            "low": None if cell.interval is None else cell.interval.low,
            "high": None if cell.interval is None else cell.interval.high,
            "dz": cell.dz,
            "visible": cell.visible,
            "outcome": cell.outcome,
            "reason": cell.reason,
        }
        for judgement in judged
        for part in judgement.parts
        for cell in part.cells
        if (cell.outcome != NOT_TESTABLE) == tested
    ]


def tally(judged: Iterable[Judgement], kind: str = "runs") -> dict[str, int]:
    """How many claims of a kind have each outcome; identities and printed numbers are no evidence about methods."""
    found = [judgement.outcome for judgement in judged if judgement.claim.kind == kind]
    return {outcome: found.count(outcome) for outcome in OUTCOMES}
