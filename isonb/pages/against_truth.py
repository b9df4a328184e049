"""Estimates with their intervals on the line of the true value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import GREY

__all__ = ["against_truth"]


def against_truth(marks: pd.DataFrame, truth: pd.DataFrame, *, arms: Sequence[str], x: str, y: str) -> Any:
    """Marks of ``arm``, ``x``, ``mean``, ``low``, ``high``, ``n``; the grey line is ``truth``: columns ``x``, ``y``.

    ``x`` and ``y`` are the titles of the axes.
    """
    at = alt.X("x:Q", title=x, scale=alt.Scale(nice=False, zero=False, padding=8), axis=alt.Axis(tickCount=5))
    scale = alt.Scale(domain=list(arms))
    color, shape = alt.Color("arm:N", title=None, scale=scale), alt.Shape("arm:N", title=None, scale=scale)
    line = alt.Chart(truth.round(4), width=245, height=150).mark_line(strokeWidth=2, color=GREY, aria=False)
    base = alt.Chart(marks.round(4))
    bars = base.mark_rule(aria=False).encode(at, alt.Y("low:Q", title=y), alt.Y2("high:Q"), color)
    dots = base.mark_point(filled=True, size=55, opacity=0.9).encode(
        at, alt.Y("mean:Q", title=y), color, shape, tooltip=["arm", "x", "mean", "low", "high", "n"]
    )
    return line.encode(at, alt.Y("y:Q", title=y)) + bars + dots
