"""Scores of clouds: a cloud in the plane beside what scores make of it, spectra as distribution functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from torch import Tensor

from isonb.pages.charts import DASHES, OKABE_ITO, points


def cloud_scores(
    spots: pd.DataFrame, scores: pd.DataFrame, *, names: Sequence[str], frame: tuple[float, float], keep: str = "true"
) -> Any:
    """The points ``x``, ``y`` with a cross at the origin, and beside them each ``score`` with its ``reading`` (0 to 1).

    ``names``: the scores, in this order. ``frame``: ends of both axes. The expression ``keep`` filters both tables.
    """
    size = {"width": 250, "height": 250}
    ends = alt.Scale(domain=list(frame), nice=False)
    cloud = points(spots, size=18, opacity=0.7, clip=True).properties(**size).transform_filter(keep)
    cloud = cloud.encode(
        alt.X("x:Q", scale=ends, title="first coordinate"), alt.Y("y:Q", scale=ends, title="second coordinate")
    )
    origin = alt.Chart(pd.DataFrame({"x": [0], "y": [0]})).encode(x="x:Q", y="y:Q")
    origin = origin.mark_point(shape="cross", size=120, strokeWidth=2, color=OKABE_ITO["vermillion"], aria=False)
    base = alt.Chart(scores, width=200, height=250).transform_filter(keep)
    base = base.encode(
        alt.X("reading:Q", scale=alt.Scale(domain=[0, 1.05], nice=False), title="reading (1 = isotropic?)"),
        alt.Y("score:N", sort=list(names), title=None),
    )
    marks = base.mark_circle(size=90).encode(tooltip=["score:N", alt.Tooltip("reading:Q", format=".3f")])
    return (cloud + origin) | (base.mark_bar(size=3, opacity=0.5) + marks)


SHARES = np.linspace(0, 1, 41)


def distributions(values: Mapping[int, Tensor], panel: str) -> pd.DataFrame:
    """The distribution function of each layer's values over the largest, at 41 places: panel, layer, x, share."""
    parts = [
        pd.DataFrame({"panel": panel, "layer": layer, "x": np.quantile((v / v.max()).numpy(), SHARES), "share": SHARES})
        for layer, v in values.items()
    ]
    return pd.concat(parts, ignore_index=True)


def distribution_functions(rows: pd.DataFrame, *, columns: int = 2) -> Any:
    """A panel a ``panel``, a line a ``layer``, the last layer of each panel dashed: columns as of `distributions`."""
    order = ["other layers", "last layer"]
    last = rows["layer"] == rows.groupby("panel")["layer"].transform("max")
    data = rows.assign(line=last.map({True: order[1], False: order[0]})).round(4)
    chart = alt.Chart(data, width=205, height=150).mark_line(strokeWidth=1.8)
    chart = chart.encode(
        alt.X("x:Q", title="singular value over the largest", scale=alt.Scale(domain=[0, 1])),
        alt.Y("share:Q", title="share below"),
        alt.Color("layer:O", scale=alt.Scale(scheme="viridis"), title="layer", legend=alt.Legend(columns=8)),
        alt.StrokeDash("line:N", sort=order, scale=alt.Scale(domain=order, range=DASHES[:2]), title=None),
        tooltip=["panel", "layer", "x", "share"],
    )
    return chart.facet(alt.Facet("panel:N", title=None, sort=list(dict.fromkeys(rows["panel"]))), columns=columns)
