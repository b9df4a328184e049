"""The four papers' methods on STS-B and SST-2 with ``minilm`` and a linear head, as ``evidence_plan.md`` has it."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from isonb_lab.claims.comparing import ALL_LAYERS, against_plain
from isonb_lab.claims.design import PLAIN, Design
from isonb_lab.claims.study import Study
from isonb_lab.claims.table import task_and_encoder
from isonb_lab.claims.verdicts import by_cell, difference
from isonb_lab.statistics.seeds import LEVEL, Interval, student

from .arms import ACTS_ON, ENTROPY, ISOLAYER, LOWER, RAISE, SOFTDECAY
from .head_to_head import arm_of

METHODS = (LOWER, RAISE, ENTROPY, SOFTDECAY, ISOLAYER)
FAMILY = 9  # five methods on two tasks; entropy has no classes on STS-B
DESIGN = Design(
    name="evidence_methods",
    page="results/head_to_head",
    recordings=("evidence_methods",),
    arm=arm_of,
    suite=task_and_encoder,
    acts_on=ACTS_ON,
    size="full",
)


def linear_heads(study: Study) -> Study:
    """A study with its runs that have a linear head: all of the book's, and of a reader's those that belong here."""
    return replace(study, runs=study.runs[study.runs["head"] == "linear"])


def cells(study: Study) -> pd.DataFrame:
    """What each method gains, by ``arm`` and ``suite``: the cells with all their runs, in the family of the plan.

    ``most``: the upper end of intervals that hold all cells of the family at once, by Bonferroni's method.
    """
    result = against_plain(study, METHODS, family=FAMILY).set_index(["arm", "suite"])
    plain = study.units("score", PLAIN)
    gains = {cell: by_cell(difference(study.units("score", cell[0]), plain))[cell[1]] for cell in result.index}
    return result.assign(most=[student(gains[cell], level=1 - (1 - LEVEL) / FAMILY).high for cell in result.index])


def rounder(study: Study, arm: str, suite: str) -> float:
    """How many times as round as with plain training a method leaves the vectors that it acts on.

    By IsoScore-U, which doesn't depend on how many rows were measured, and by IsoScore* of the tokens of all layers
    for I-STAR; means over the seeds of both.
    """
    measure = ALL_LAYERS if study.design.acts_on.get(arm) == "tokens" else "isoscore_unbiased"
    after, before = study.ends(arm, measure, [suite])
    both = after.keys() & before.keys()
    if not both:
        return math.nan
    return sum(after[item] for item in both) / sum(before[item] for item in both)


def last_pass(study: Study, suite: str) -> Interval:
    """What plain training gained in its last pass on the held-out rows: Student's interval over seeds.

    NaN on a task without plain runs of two seeds and passes.
    """
    metrics = study.runs.loc[study.runs["suite"] == suite, "metric"].unique()
    logged = study.logged(f"step.validation.{metrics[0]}" if len(metrics) else "", PLAIN, [suite])
    passes = [values for _, values in logged.pivot(index="seed", columns="step", values="value").items()]
    if len(passes) < 2 or len(passes[0]) < 2:
        return Interval(math.nan, math.nan, math.nan, LEVEL, 0, "student")
    return student((passes[-1] - passes[-2]).tolist())
