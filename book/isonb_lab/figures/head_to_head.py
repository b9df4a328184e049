"""The picture of *Head to head*: what a run gains in the score against what it changes in the cloud."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.pages.charts import GREY, OKABE_ITO, option_menu
from isonb_lab.pages.charts.comparisons import ZERO

COLORS = [*{**OKABE_ITO, "yellow": "#A0522D"}.values(), GREY]  # brown: small marks in yellow look orange


def change_against_gain(
    frame: pd.DataFrame, *, arms: Sequence[str], suites: Sequence[str], measures: Sequence[str]
) -> Any:
    """A panel a suite: what a run gains in the score against what it changes in a measure, which a menu chooses.

    ``frame`` has a row a run and measure: ``suite``, ``arm``, ``seed``, ``measure``, ``change``, ``gain``. The dashed
    lines are plain training.
    """
    base = alt.Chart(width=270, height=230)
    same: dict[str, Any] = {"sort": list(arms), "title": None}
    dots = base.mark_point(filled=True, size=70, opacity=0.85).encode(
        alt.X("change:Q", title="change in the measure", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        alt.Y("gain:Q", title="gain in the score", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        alt.Color("arm:N", scale=alt.Scale(domain=list(arms), range=COLORS), **same),
        alt.Shape("arm:N", scale=alt.Scale(domain=list(arms)), **same),
        tooltip=["arm", "seed", alt.Tooltip("change", format="+.4f"), alt.Tooltip("gain", format="+.3f")],
    )
    zeros = (base.mark_rule(**ZERO).encode(y=alt.datum(0)), base.mark_rule(**ZERO).encode(x=alt.datum(0)))
    chart = alt.layer(*zeros, dots, data=frame.round(5)).transform_filter("datum.measure == measure")
    panels = chart.facet(alt.Facet("suite:N", sort=list(suites), title=None), columns=2)
    return panels.resolve_scale(x="independent", y="independent").add_params(option_menu("measure", measures))
