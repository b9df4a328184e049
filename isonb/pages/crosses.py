"""One number against another, a cross an arm: its means, and their intervals both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import GREY
from isonb.pages.evidence import half_width

__all__ = ["crosses"]


def crosses(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    suites: Sequence[str],
    x: str,
    y: str,
    columns: int = 3,
    equal: bool = False,
    **color: Any,
) -> Any:
    """Means over runs with Student's 95% intervals: columns ``suite``, ``arm``, ``x`` and ``y``, a row a run.

    A panel a suite, a mark an arm that has runs; ``x`` and ``y`` are the titles of the axes. One run has no interval.
    ``equal`` draws the line on which both numbers are the same, through all crosses of a panel.
    """
    known = frame[frame["arm"].isin(list(arms)) & frame["suite"].isin(list(suites))].dropna(subset=["x", "y"])
    rows = []
    for (suite, arm), part in known.groupby(["suite", "arm"], sort=False):
        row: dict[str, Any] = {"suite": suite, "arm": arm, "n": len(part)}
        for axis in "xy":
            mean, half = float(part[axis].mean()), half_width(list(part[axis])) if len(part) > 1 else 0.0
            row |= {axis: mean, f"{axis}_low": mean - half, f"{axis}_high": mean + half}
        rows.append(row)
    base = alt.Chart(width=180, height=150)
    same: dict[str, Any] = {"sort": list(arms), "title": None}
    marks = base.mark_point(filled=True, size=90, opacity=0.95).encode(
        alt.X("x:Q", title=x, scale=alt.Scale(zero=False, padding=14), axis=alt.Axis(tickCount=3)),
        alt.Y("y:Q", title=y, scale=alt.Scale(zero=False, padding=14), axis=alt.Axis(tickCount=4)),
        alt.Color("arm:N", scale=alt.Scale(domain=list(arms), **color), **same),
        alt.Shape("arm:N", scale=alt.Scale(domain=list(arms)), **same),
        tooltip=["suite", "arm", "n", alt.Tooltip("x", format=".3f"), alt.Tooltip("y", format=".3f")],
    )
    across = base.mark_rule(aria=False, color=GREY).encode(alt.X("x_low:Q"), alt.Y("y:Q"), alt.X2("x_high"))
    along = base.mark_rule(aria=False, color=GREY).encode(alt.X("x:Q"), alt.Y("y_low:Q"), alt.Y2("y_high"))
    table = pd.DataFrame(rows)
    layers = [across, along, marks]
    if equal:
        ends = table.groupby("suite")[["x_low", "y_low", "x_high", "y_high"]]
        table["least"], table["most"] = ends.transform("min").min(axis=1), ends.transform("max").max(axis=1)
        line = base.mark_rule(aria=False, color=GREY, strokeDash=[5, 3])
        layers.insert(0, line.encode(alt.X("least:Q"), alt.Y("least:Q"), alt.X2("most"), alt.Y2("most")))
    chart = alt.layer(*layers, data=table.round(4))
    panels = chart.facet(alt.Facet("suite:N", title=None, sort=list(suites)), columns=columns)
    return panels.resolve_scale(x="independent", y="independent")
