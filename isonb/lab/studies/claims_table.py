"""The claims of several studies as one table, a row a cell, and what it would take to decide those that are open."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd

from isonb.lab.studies.design import UNTAUGHT, Design
from isonb.lab.studies.verdicts import INCONCLUSIVE, NO_SETTING, NOT_TESTABLE, Cell, Judgement, Part

__all__ = ["COLUMNS", "claim_cells", "open_needs"]

COLUMNS = (
    "study",
    "page",
    "claim",
    "statement",
    "kind",
    "verdict",
    "words",
    "remark",
    "what",
    "gated",
    "cell",
    "n",
    "mean",
    "low",
    "high",
    "visible",
    "outcome",
    "reason",
)
OPEN = (INCONCLUSIVE, NOT_TESTABLE, NO_SETTING)
SAYS_ITSELF = re.compile(r"\(needs (?P<what>[^)]+)\)")  # a part may name in words what it lacks
NEEDS = (
    (re.compile(re.escape(UNTAUGHT)), "the paper's runs again, with models that learn their tasks"),
    (re.compile("nothing learned"), "settings with which something learns the task"),
    (re.compile("that was tried ended"), "weaker or other settings of the method"),
    (re.compile("depth alone"), "encoders that differ in depth alone, or in sharing alone"),
    (re.compile("the seeds varied nothing"), "runs that don't all give the same number"),
    (re.compile("at least \\d+ are needed"), "more replicates: seeds, or encoders"),
    (re.compile("no runs"), "runs where there are none yet"),
    (re.compile("negligible"), "a method that moves the measure further"),
    (re.compile("on both sides"), "more seeds or pairs, for a narrower interval"),
)


def claim_cells(design: Design, judged: Sequence[Judgement]) -> pd.DataFrame:
    """One row a claim, part and cell, with the chapter that judges it: :data:`COLUMNS`.

    ``verdict`` is the claim's, ``words`` says on what it depends, ``outcome`` is the cell's. A claim without parts has
    one row, whose cell has no name and whose reason is the claim's remark: a table of claims must not lose it.
    """
    rows = []
    for found in judged:
        claim = found.claim
        told = (claim.number, claim.statement, claim.kind, found.outcome, found.words, claim.remark)
        head = (design.name, design.page, *told)
        rows += [(*head, *_told(part.part, cell)) for part in found.parts for cell in part.cells]
        if not found.cells:
            rows.append((*head, *_told(Part("", lambda study, suites: {}), Cell("", found.outcome, claim.remark))))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def open_needs(cells: pd.DataFrame) -> list[dict[str, object]]:
    """What would decide the claims about methods that are open: one row a need, the commonest first.

    ``cells`` is a table as of :func:`claim_cells`, of any number of studies. A need comes from the reason that a cell
    gives, or from the words of the part ("needs a larger encoder"); a reason that is known to no rule stands as it is.
    """
    found = cells[(cells["kind"] == "runs") & cells["verdict"].isin(OPEN) & cells["outcome"].isin(OPEN)]
    needs = [_need(what, reason) for what, reason in zip(found["what"], found["reason"], strict=True)]
    rows: list[dict[str, object]] = [
        {"need": need, "claims": sorted(set(part["claim"])), "cells": len(part)}
        for need, part in found.assign(need=needs).groupby("need", sort=False)
    ]
    return sorted(rows, key=lambda row: (-int(str(row["cells"])), str(row["need"])))


def _need(what: str, reason: str) -> str:
    """The need behind a reason.

    >>> _need("score above plain's (needs a larger encoder)", "no runs")
    'a larger encoder'
    >>> _need("score", "replicates: 2; at least 3 are needed"), _need("score", "It rained.")
    ('more replicates: seeds, or encoders', 'It rained.')
    """
    if own := SAYS_ITSELF.search(what):
        return own["what"]
    return next((need for pattern, need in NEEDS if pattern.search(reason)), reason)


def _told(part: Part, cell: Cell) -> tuple[object, ...]:
    found = cell.interval
    ends = (None, None, None) if found is None else (found.estimate, found.low, found.high)
    return (part.what, part.gated, cell.name, cell.n, *ends, cell.visible, cell.outcome, cell.reason)
