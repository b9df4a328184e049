"""The picture of the methods index: each method above doing nothing, below it, or not significant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.pages.charts import GREY, OKABE_ITO

LABELS = ABOVE, BELOW, OPEN, NO_SETTING = ("above", "below", "not significant", "no working setting")
COLORS = (OKABE_ITO["blue"], OKABE_ITO["vermillion"], GREY, OKABE_ITO["purple"])
SHAPES = ("triangle-up", "triangle-down", "circle", "cross")


def side(low: float, high: float) -> str:
    """Where an interval of a difference lies: above 0, below it, or on both sides.

    >>> side(0.1, 0.4), side(-0.4, -0.1), side(-0.1, 0.4)
    ('above', 'below', 'not significant')
    """
    return ABOVE if low > 0 else BELOW if high < 0 else OPEN


def column_of(suite: str) -> str:
    """The column of a suite of fine-tuning runs, which names its encoder where that isn't minilm.

    >>> column_of("CoLA"), column_of("SST-2 (tiny)")
    ('fine-tuned minilm, CoLA', 'fine-tuned tiny, SST-2')
    """
    task, _, model = suite.removesuffix(")").partition(" (")
    return f"fine-tuned {model or 'minilm'}, {task}"


def count_outcomes(outcomes: Iterable[str], where: str) -> str:
    """The outcomes of a method counted in words.

    >>> count_outcomes(["above", "below", "below"], "sets")
    'above in 1, below in 2 of 3 sets'
    >>> count_outcomes([], "sets")
    'no runs'
    """
    listed = list(outcomes)
    counts = [f"{word} in {listed.count(word)}" for word in LABELS if word in listed]
    return f"{', '.join(counts)} of {len(listed)} {where}" if listed else "no runs"


def evidence_map(frame: pd.DataFrame, *, arms: Sequence[str], cells: Sequence[str]) -> Any:
    """A row an arm, a column a cell, and a mark for the outcome; no mark where there is no run.

    ``frame``: ``arm``, ``cell``, ``outcome`` (one of :data:`LABELS`), ``mean``, ``low``, ``high``, and their ``unit``.

    >>> row = {"arm": "flow", "cell": "STS-B", "outcome": "above", "mean": 2.0, "low": 1.0, "high": 3.0, "unit": ""}
    >>> evidence_map(pd.DataFrame([row]), arms=["flow"], cells=["STS-B"]).to_dict()["mark"]["type"]
    'point'
    """
    numbers = [alt.Tooltip(f"{name}:Q", format="+.3f") for name in ("mean", "low", "high")]
    base = alt.Chart(frame.round(4), width=alt.Step(24), height=alt.Step(22))
    return base.mark_point(filled=True, size=90, opacity=1).encode(
        alt.X("cell:N", title=None, sort=list(cells), axis=alt.Axis(labelAngle=-60, labelLimit=160, orient="top")),
        alt.Y("arm:N", title=None, sort=list(arms), axis=alt.Axis(labelLimit=160, grid=True)),
        alt.Color("outcome:N", title=None, sort=list(LABELS), scale=alt.Scale(domain=list(LABELS), range=list(COLORS))),
        alt.Shape("outcome:N", title=None, sort=list(LABELS), scale=alt.Scale(domain=list(LABELS), range=list(SHAPES))),
        tooltip=["arm", "cell", "outcome", *numbers, "unit"],
    )
