"""Estimates over the size of the sample, with what a formula expects of them and the true value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import GREY

__all__ = ["sample_sizes"]


def sample_sizes(
    frame: pd.DataFrame, *, curves: Sequence[str], truth: float, title: str, keep: str = "true", **color: Any
) -> Any:
    """A curve an estimate: columns ``curve``, ``points``, ``samples``, ``value``, ``sd`` and ``theory`` (dotted).

    Bars are one ``sd`` each way, ``truth`` is dashed; the axis goes from 0 to 1. ``color`` are options of the colours.
    """
    bars = frame.assign(low=frame["value"] - frame["sd"].fillna(0), high=frame["value"] + frame["sd"].fillna(0))
    bars = bars[bars["curve"].isin(list(curves))].round(4)
    base = alt.Chart(bars, width=285, height=260).transform_filter(keep)
    x = alt.X(
        "points:Q",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=[16, 64, 256, 1000, 10000], format="~s"),
        title="points in the sample",
    )
    y = alt.Y("value:Q", scale=alt.Scale(domain=[0, 1.05], nice=False, clamp=True), title=title)
    same: dict[str, Any] = {"sort": list(curves), "title": None, "legend": alt.Legend(columns=3)}
    ink = alt.Color("curve:N", scale=alt.Scale(domain=list(curves), **color), **same)
    shape = alt.Shape("curve:N", scale=alt.Scale(domain=list(curves)), **same)
    tips = ["curve", "points", "samples", *(alt.Tooltip(name, format=".4f") for name in ("value", "sd", "theory"))]
    return alt.layer(
        alt.Chart().mark_rule(strokeDash=[8, 4], color=GREY, aria=False).encode(y=alt.datum(truth)),
        base.mark_line(aria=False, strokeDash=[3, 3], strokeWidth=1.4).encode(x, alt.Y("theory:Q", title=title), ink),
        base.mark_line(aria=False, strokeWidth=1, opacity=0.6).encode(x, y, ink),
        base.mark_rule(aria=False, strokeWidth=2).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), ink),
        base.mark_point(filled=True, size=55).encode(x, y, ink, shape, tooltip=tips),
    )
