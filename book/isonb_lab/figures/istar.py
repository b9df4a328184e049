"""Pictures of *I-STAR*: a cloud that moves and its scores, estimates over the size of a sample, a divided spectrum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
from torch import Tensor

from isonb_lab.pages.charts import GREY, OKABE_ITO


def cloud_frames(
    cloud: Tensor,
    changes: Mapping[str, Callable[[Tensor, float], Tensor]],
    readings: Callable[[Tensor], Mapping[str, float]],
    places: Sequence[float],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points and readings of ``change(cloud, t)`` in the plane, for each change and each t of ``places``.

    The tables of :func:`cloud_scores`, with the columns ``change`` and ``t`` before theirs.
    """
    moved = {(name, t): change(cloud, t) for name, change in changes.items() for t in places}
    spots = [(*at, *point) for at, x in moved.items() for point in x.tolist()]
    scores = [(*at, *reading) for at, x in moved.items() for reading in readings(x).items()]
    return (
        pd.DataFrame(spots, columns=["change", "t", "x", "y"]).round(2),
        pd.DataFrame(scores, columns=["change", "t", "score", "reading"]).round(4),
    )


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


def divided_spectrum(rows: pd.DataFrame, facts: pd.DataFrame, *, top: float, keep: str) -> Any:
    """Bars of ``variance`` by ``direction``, coloured by their ``side`` ("above" or "below") of the dashed ``limit``.

    ``facts`` has the ``limit`` and a line of text, ``told``; the axis ends at ``top``. The expression ``keep`` filters
    both tables.
    """
    sides = alt.Scale(domain=["above", "below"], range=[OKABE_ITO["vermillion"], OKABE_ITO["blue"]])
    bars = alt.Chart(rows, width=420, height=220).transform_filter(keep).mark_bar()
    bars = bars.encode(
        alt.X("direction:O", title="principal direction", axis=alt.Axis(labelAngle=0)),
        alt.Y("variance:Q", scale=alt.Scale(domain=[0, top], nice=False, clamp=True)),
        alt.Color("side:N", title="threshold", scale=sides),
        tooltip=["direction", "variance", "side"],
    )
    fact = alt.Chart(facts).transform_filter(keep)
    line = fact.mark_rule(strokeDash=[5, 3], aria=False).encode(alt.Y("limit:Q", title="variance"))
    label = fact.mark_text(align="right", baseline="top", fontSize=13).encode(alt.Text("told:N"))
    return bars + line + label.encode(x=alt.value(418), y=alt.value(2))
