"""Pictures of the two lessons' slides: as wide as a slide, few marks, large letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore
from isonb.numerics.rows import centered
from isonb_lab.figures import istar
from isonb_lab.pages.charts import GREY, OKABE_ITO, points, slider

OFFSETS = [0.5 * k for k in range(13)]
SIZE = {"width": 330, "height": 225}


def ball_and_needle() -> Any:
    """Two clouds that one slider moves away from the origin, with their two scores above them."""
    draw = torch.Generator().manual_seed(7)
    shapes = {
        "ball": centered(torch.randn(120, 2, generator=draw)),
        "needle": centered(torch.randn(120, 2, generator=draw) @ torch.tensor([[1.35, 0.55], [0.0, 0.12]])),
    }
    push = torch.tensor([0.8, 0.6])  # direction of the push, length 1
    offset = slider("offset", 0, OFFSETS[-1], step=0.5, value=0, label="distance from the origin")
    axes: dict[str, Any] = {"scale": alt.Scale(domain=[-4, 8], nice=False), "title": None}
    panels = []
    for (name, x), ink in zip(shapes.items(), OKABE_ITO.values(), strict=False):
        dots = points(pd.DataFrame(x.tolist(), columns=["x", "y"]).round(3), color=ink)
        dots = dots.transform_calculate(px="datum.x + 0.8 * offset", py="datum.y + 0.6 * offset")
        dots = dots.encode(alt.X("px:Q", **axes), alt.Y("py:Q", **axes))
        score = f"IsoScore {float(isoscore(x)):.2f}"
        texts = [f"mean cosine {float(mean_cosine(x + at * push)):z.2f} · {score}" for at in OFFSETS]
        label = alt.Chart(pd.DataFrame({"offset": OFFSETS, "told": texts})).transform_filter("datum.offset == offset")
        label = label.mark_text(align="left", baseline="top", fontSize=15, fontWeight="bold")
        label = label.encode(alt.Text("told:N"), x=alt.value(4), y=alt.value(4))
        cross = alt.Chart(pd.DataFrame({"px": [0], "py": [0]})).encode(alt.X("px:Q"), alt.Y("py:Q"))
        cross = cross.mark_point(shape="cross", filled=True, size=140, color=GREY, aria=False)
        panels.append(alt.layer(dots, cross, label).properties(title=name, **SIZE))
    return alt.hconcat(*panels).add_params(offset)


def score_bars(scores: Mapping[str, Mapping[str, float]]) -> Any:
    """A panel a score, a bar a cloud, with its number; each panel has an axis of its own."""
    rows = [
        {"score": score, "cloud": cloud, "reading": round(value, 2)}
        for score, readings in scores.items()
        for cloud, value in readings.items()
    ]
    clouds = list(next(iter(scores.values())))
    base = alt.Chart(pd.DataFrame(rows), width=150, height=alt.Step(84)).encode(
        alt.X("reading:Q", title=None, axis=alt.Axis(tickCount=3)), alt.Y("cloud:N", title=None, sort=clouds)
    )
    bars = base.mark_bar().encode(alt.Color("cloud:N", legend=None, sort=clouds))
    label = base.mark_text(align="left", dx=4, fontSize=15, fontWeight="bold")
    label = label.encode(text=alt.Text("reading:Q", format=".2f"))
    chart = alt.layer(bars, label).facet(column=alt.Column("score:N", title=None, sort=list(scores)))
    return chart.resolve_scale(x="independent")


def sample_curve(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A line a ``score`` of the ``mean`` reading by the number of ``points``."""
    chart = alt.Chart(pd.DataFrame(rows).round(3), width=640, height=235).mark_line(point=True)
    return chart.encode(
        alt.X("points:Q", scale=alt.Scale(type="log", base=2), title="points"),
        alt.Y("mean:Q", title="mean score of a round cloud"),
        alt.Color("score:N", title=None),
        alt.StrokeDash("score:N", title=None),
        tooltip=["score", "points", "mean"],
    )


def moving_spectrum(variances: Mapping[int, Tensor]) -> Any:
    """The variances of the first directions after steps that raise (above 0) or lower (below 0) isotropy, by slider."""
    first, last = min(variances), max(variances)
    stop = slider("stop", first, last, step=1, value=0, label="lower · raise")
    rows, facts = [], []
    for at, v in variances.items():
        ordered = v.flip(0)
        limit = float(v.square().sum() / v.sum())
        rows += [
            {"at": at, "direction": k + 1, "variance": round(float(x), 4), "side": "above" if x > limit else "below"}
            for k, x in enumerate(ordered[:16])
        ]
        score = float((v.sum() ** 2 / v.square().sum() - 1) / (len(v) - 1))
        facts.append({"at": at, "limit": round(limit, 4), "told": f"IsoScore {score:.2f}"})
    top = 2 * float(variances[0].max())
    chart = istar.divided_spectrum(pd.DataFrame(rows), pd.DataFrame(facts), top=round(top, 2), keep="datum.at == stop")
    return chart.properties(width=640, height=210).add_params(stop)
