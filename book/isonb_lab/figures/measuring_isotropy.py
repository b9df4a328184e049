"""Pictures of *Measuring*: estimates beside the true value, scores over the layers of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.pages.charts import GREY


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


def layer_panels(frame: pd.DataFrame, *, scores: Sequence[str], clouds: Sequence[str], columns: int = 3) -> Any:
    """A line a cloud with its band: columns score, cloud, layer, value, low, high; dashed, mean of ``isotropic``."""
    scale = alt.Scale(domain=list(clouds))
    color = alt.Color("cloud:N", title="cloud", scale=scale, legend=alt.Legend(symbolOpacity=1))
    data = alt.Chart(frame.round(4))
    base = data.encode(alt.X("layer:Q", title="layer", axis=alt.Axis(values=[0, 2, 4, 6], format="d")))
    band = base.mark_area(opacity=0.25, aria=False).encode(alt.Y("low:Q", title=None), alt.Y2("high:Q"), color)
    line = base.mark_line(point=alt.OverlayMarkDef(size=24)).encode(
        alt.Y("value:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4)),
        color,
        alt.Shape("cloud:N", title="cloud", scale=scale),
        tooltip=["score", "cloud", "layer", "value", "low", "high", "isotropic"],
    )
    rule = data.mark_rule(strokeDash=[5, 3], strokeWidth=1.5, color=GREY)
    flat = rule.encode(alt.Y("mean(isotropic):Q", title=None))
    panels = alt.layer(band, line, flat).properties(width=155, height=90)
    # flush: panels stand in line whatever their numbers need, so the space between them must hold the numbers
    rows: dict[str, Any] = {"columns": columns, "bounds": "flush", "spacing": {"row": 46, "column": 50}}
    facet = alt.Facet("score:N", title=None, sort=list(scores))
    return panels.facet(facet=facet, **rows).resolve_scale(y="independent")
