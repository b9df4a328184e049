"""Singular values of token matrices by layer: histogram, numbers by depth, distribution functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from torch import Tensor

from isonb.pages.charts import DASHES, GREY, OKABE_ITO, slider
from isonb.pages.evidence import intervals

__all__ = ["by_depth", "depth_rows", "distribution_functions", "distributions", "layer_histogram"]

SHARES = np.linspace(0, 1, 41)


def layer_histogram(values: Mapping[int, Tensor], told: Mapping[int, str]) -> Any:
    """The singular values of each layer over the largest, the median dashed, a line of text; a slider for the layer."""
    bins = np.linspace(0, 1, 41)
    bars, words = [], []
    for layer, found in values.items():
        share = (found / found.max()).numpy()
        height, _ = np.histogram(share, bins, density=True)
        bars += [(layer, a, b, h) for a, b, h in zip(bins, bins[1:], height, strict=False)]
        words.append((layer, float(np.median(share)), f"layer {layer}: {told[layer]}"))
    data = pd.DataFrame(bars, columns=["layer", "low", "high", "density"]).round(4).assign(zero=0)
    keep = "datum.layer == layer"
    base = alt.Chart(data, width=460, height=220).transform_filter(keep)
    middle = alt.Chart(pd.DataFrame(words, columns=["layer", "median", "told"]).round(4)).transform_filter(keep)
    chart = alt.layer(
        base.mark_rect(aria=False).encode(
            alt.X("low:Q", title="singular value over the largest", scale=alt.Scale(domain=[0, 1])),
            alt.X2("high"),
            alt.Y("density:Q", title="density", scale=alt.Scale(domain=[0, float(data["density"].max())])),
            alt.Y2("zero", title=None),
        ),
        middle.mark_rule(strokeDash=[5, 3], color=OKABE_ITO["vermillion"], strokeWidth=2, aria=False).encode(
            x="median:Q"
        ),
        middle.mark_text(align="right", baseline="top", fontSize=13).encode(
            alt.Text("told:N"), x=alt.value(458), y=alt.value(-18)
        ),
    )
    last = max(values)
    return chart.add_params(slider("layer", min(values), last, step=1, value=last, label="layer"))


def depth_rows(source: str, rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The numbers of a source by depth: source, measure, depth (layer over the last), value, low, high.

    ``rows``: one a batch and ``layer``; ``labels``: its columns and the names of their measures. Mean over batches with
    Student's 95% interval; one batch alone has none.
    """
    long = rows.assign(depth=rows["layer"] / rows["layer"].max()).rename(columns=dict(labels))
    found = intervals(long.melt("depth", list(labels.values()), var_name="measure"), ["measure", "depth"])
    found = found.rename(columns={"mean": "value"}).assign(source=source)
    return found[["source", "measure", "depth", "value", "low", "high"]]


def by_depth(rows: pd.DataFrame, *, measures: Sequence[str], grey: str) -> Any:
    """A panel a measure: ``source``, ``measure``, ``depth`` (0 to 1), ``value``, ``low``, ``high``; one source grey."""
    sources = list(dict.fromkeys(rows["source"]))
    shades = [*list(OKABE_ITO.values())[: len(sources) - 1], GREY]
    order = [name for name in sources if name != grey] + [grey]
    base = alt.Chart(rows.round(4), width=205, height=150)
    tint = alt.Color(
        "source:N", sort=order, title=None, scale=alt.Scale(domain=order, range=shades), legend=alt.Legend(columns=3)
    )
    ends = base.mark_rule(opacity=0.6, aria=False)
    ends = ends.encode(alt.X("depth:Q"), alt.Y("low:Q"), alt.Y2("high:Q"), tint)
    line = base.mark_line(point=True).encode(
        alt.X("depth:Q", title="layer over number of layers", axis=alt.Axis(tickCount=5)),
        alt.Y("value:Q", title=None),
        tint,
        alt.StrokeDash("source:N", sort=order, title=None, scale=alt.Scale(domain=order, range=DASHES)),
        tooltip=["source", "measure", "depth", "value", "low", "high"],
    )
    panels = alt.layer(ends, line).facet(alt.Facet("measure:N", sort=list(measures), title=None), columns=2)
    return panels.resolve_scale(y="independent")


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
