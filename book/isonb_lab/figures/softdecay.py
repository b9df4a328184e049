"""Pictures of *SoftDecay*: its function, a bound on the plane, gains of sentence vectors, singular values by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from isonb_lab.pages.charts import DASHES, GREY, OKABE_ITO, option_menu, slider
from isonb_lab.pages.charts.comparisons import ZERO, nothing_run
from isonb_lab.pages.evidence import intervals

MODES = {"code": "code (values below |alpha| turn)", "safe": "safe (they become 0)"}
WHEN = ["before", "after"]


def _decayed(s: str) -> str:
    """The function at ``s`` as an expression; null where it isn't defined."""
    inside = f"(1 - alpha * ({s} + alpha) + 1e-7)"
    raw = f"(abs(alpha) < 1e-9 ? {s} : {inside} > 0 ? -log({inside}) / alpha : null)"
    return f"(kind == '{MODES['code']}' ? {raw} : (alpha <= -1 || alpha > 0) ? null : max({raw}, 0))"


def decay_curves(spectrum: Sequence[float]) -> Any:
    """Curve of f from 0 to 6, and ``spectrum`` over its largest value by rank; a slider for alpha, a menu of modes."""
    places = np.round(np.concatenate([np.linspace(0, 1, 41), np.linspace(1.1, 6, 50)]), 3)
    near = alt.Chart(pd.DataFrame({"s": places}), width=225, height=230)
    near = near.transform_calculate(f=_decayed("datum.s"), line="'f'")
    near = near.transform_filter("isValid(datum.f) && datum.f > -4")
    curve = near.mark_line(clip=True, color=OKABE_ITO["vermillion"]).encode(  # as "after" on the right
        alt.X("s:Q", title="singular value s", scale=alt.Scale(domain=[0, 6], nice=False)),
        alt.Y("f:Q", title="f(s)", scale=alt.Scale(domain=[-4, 6], nice=False)),
    )
    still = alt.Chart(pd.DataFrame({"s": [0, 6], "f": [0, 6]})).encode(x="s:Q", y="f:Q")
    still = still.mark_line(strokeDash=DASHES[1], color=OKABE_ITO["blue"], aria=False)  # as "before"
    zero = alt.Chart().mark_rule(color=GREY, strokeWidth=1, aria=False).encode(y=alt.datum(0))
    ranked = pd.DataFrame({"rank": range(1, len(spectrum) + 1), "s": list(spectrum)})
    top = float(ranked["s"].iloc[0])
    ranked = ranked[ranked["s"] > 1e-6 * top].round(5)
    after = alt.Chart(ranked, width=225, height=230)
    after = after.transform_calculate(top=_decayed(f"{top:.5f}"), raw=_decayed("datum.s"))
    after = after.transform_filter("isValid(datum.top) && isValid(datum.raw)")
    after = after.transform_calculate(share="datum.raw / datum.top", which="'after'").mark_line(clip=True)
    before = alt.Chart(ranked).transform_calculate(share=f"datum.s / {top:.5f}", which="'before'")
    channels = (
        alt.X("rank:Q", title="rank of the singular value", scale=alt.Scale(type="log", nice=False)),
        alt.Y("share:Q", title="over the largest", scale=alt.Scale(domain=[-0.3, 1], nice=False)),
        alt.Color("which:N", title=None, scale=alt.Scale(domain=WHEN)),
        alt.StrokeDash("which:N", title=None, scale=alt.Scale(domain=WHEN, range=DASHES[1::-1])),
    )
    both = alt.layer(before.mark_line(clip=True).encode(*channels), after.encode(*channels))
    controls = (
        slider("alpha", -1.5, 0.3, step=0.05, value=-0.6, label="alpha"),
        option_menu("kind", list(MODES.values()), label="mode"),
    )
    return ((still + zero + curve) | both).add_params(*controls)


REGIONS = ("no direction: within C of the origin", "1 direction: within C of a line", "2 directions: the plane")


def _feet(cloud: Tensor) -> list[Tensor]:
    """The nearest points in the span of the first 0, 1 and 2 directions."""
    directions = torch.linalg.svd(cloud, full_matrices=False).Vh
    return [cloud @ directions[:k].mT @ directions[:k] for k in range(3)]


def farthest(cloud: Tensor) -> list[float]:
    """How far a point (n, 2) is at most from the span of the first 0, 1 and 2 directions.

    >>> farthest(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    [2.0, 1.0, 0.0]
    """
    return [float((cloud - foot).norm(dim=1).max()) for foot in _feet(cloud)]


def span_bound(cloud: Tensor, radius: Any) -> Any:
    """A cloud (n, 2) and the set that must hold it: the plane, a strip, or a disc. ``radius``: a slider named C."""
    _, s, directions = torch.linalg.svd(cloud, full_matrices=False)
    (first, second), (v1, v2) = s.tolist(), directions.tolist()
    keep = f"(C <= {second:.4f} ? 2 : C <= {first:.4f} ? 1 : 0)"
    dots = [
        (k, *p, *f) for k, feet in enumerate(_feet(cloud)) for p, f in zip(cloud.tolist(), feet.tolist(), strict=True)
    ]
    spots = pd.DataFrame(dots, columns=["k", "x", "y", "x2", "y2"]).round(3)
    lines = [(k, f"{REGIONS[k]}; farthest point {far:.2f}") for k, far in enumerate(farthest(cloud))]
    size: dict[str, Any] = {"width": 470, "height": 338}
    ends = 1.12 * first
    x = alt.X("x:Q", scale=alt.Scale(domain=[-ends, ends], nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[-ends * 0.72, ends * 0.72], nice=False), axis=None)
    border: dict[str, Any] = {"clip": True, "strokeDash": [5, 3], "color": OKABE_ITO["vermillion"], "aria": False}
    sides = pd.DataFrame([(sign, end) for sign in (-1, 1) for end in (-1, 1)], columns=["sign", "end"])
    strip = alt.Chart(sides, **size).transform_filter(f"{keep} == 1")
    strip = strip.transform_calculate(
        x=f"datum.end * {9 * v1[0]:.4f} + datum.sign * C * {v2[0]:.4f}",
        y=f"datum.end * {9 * v1[1]:.4f} + datum.sign * C * {v2[1]:.4f}",
    )
    angles = pd.DataFrame({"angle": np.linspace(0, 2 * math.pi, 73)}).round(4)
    ring = alt.Chart(angles, **size).transform_filter(f"{keep} == 0")
    ring = ring.transform_calculate(x="C * cos(datum.angle)", y="C * sin(datum.angle)")
    here = alt.Chart(spots, **size).transform_filter(f"datum.k == {keep}")
    text = alt.Chart(pd.DataFrame(lines, columns=["k", "told"]), **size).transform_filter(f"datum.k == {keep}")
    chart = alt.layer(
        strip.mark_line(**border).encode(x, y, alt.Detail("sign:N")),
        ring.mark_line(**border).encode(x, y, alt.Order("angle:Q")),
        here.mark_rule(color=GREY, aria=False).encode(x, y, alt.X2("x2"), alt.Y2("y2")),
        here.mark_circle(size=55, opacity=1, aria=False).encode(x, y),
        text.mark_text(align="left", baseline="bottom", fontSize=13).encode(
            alt.Text("told:N"), x=alt.value(0), y=alt.value(-4)
        ),
    )
    return chart.add_params(radius).configure_view(stroke=None)


def gain_panels(gains: pd.DataFrame, *, arms: Sequence[str], sets: Sequence[str]) -> Any:
    """A panel a ``set``, a row an ``arm``: ``mean`` with ``low`` and ``high``; menus of ``model`` and ``protocol``."""
    menus = [
        option_menu("who", list(dict.fromkeys(gains["model"])), label="encoder"),
        option_menu("how", list(dict.fromkeys(gains["protocol"])), label="protocol"),
    ]
    base = alt.Chart(gains.round(3), width=128, height=alt.Step(17))
    row = alt.Y("arm:N", sort=list(arms), title=None)
    layers = alt.layer(
        base.mark_rule(**ZERO).encode(x=alt.datum(0)),
        base.mark_rule(strokeWidth=2.5, color=OKABE_ITO["blue"], aria=False).encode(
            alt.X("low:Q", title="points", axis=alt.Axis(tickCount=4)), alt.X2("high:Q"), row
        ),
        base.mark_point(size=50, filled=True, opacity=1).encode(
            alt.X("mean:Q"), row, tooltip=["set", "arm", "mean", "low", "high"]
        ),
    )
    panels = layers.facet(alt.Facet("set:N", sort=list(sets), title=None), columns=4).resolve_axis(x="independent")
    panels = panels.transform_filter("datum.model == who && datum.protocol == how")  # a set without them has no panel
    return panels.add_params(*menus)


def gains_by_alpha(tried: pd.DataFrame, *, sets: Sequence[str]) -> Any:
    """A panel a ``set``: ``gain`` with its band against ``alpha``, a line a kind of ``sides``; a menu of ``runs``."""
    kinds = ["separate", "joint"]
    tint = alt.Color("sides:N", title=None, scale=alt.Scale(domain=kinds), legend=alt.Legend(symbolOpacity=1))
    base = alt.Chart(tried.round(3), width=105, height=120)
    layers = alt.layer(
        base.mark_rule(**ZERO).encode(y=alt.datum(0)),
        base.mark_area(opacity=0.18, aria=False).encode(alt.X("alpha:Q"), alt.Y("low:Q"), alt.Y2("high:Q"), tint),
        base.mark_line(point=True).encode(
            alt.X("alpha:Q", axis=alt.Axis(values=[-1, -0.6, -0.2])),
            alt.Y("gain:Q", title="points"),
            tint,
            alt.StrokeDash("sides:N", title=None, scale=alt.Scale(domain=kinds, range=DASHES[:2])),
            tooltip=["set", "sides", "alpha", "gain", "low", "high"],
        ),
    )
    menu = option_menu("whom", list(dict.fromkeys(tried["runs"])), label="runs")
    panels = layers.facet(alt.Facet("set:N", sort=list(sets), title=None), columns=4).resolve_axis(x="independent")
    return panels.transform_filter("datum.runs == whom").add_params(menu)  # a set without such runs has no panel


def trade_offs(trade: pd.DataFrame, *, families: Sequence[str], joined: str) -> Any:
    """``LSDS`` and ``score`` against ``TokenUni``, a mark a row of ``vectors``; one ``family`` joined by a line.

    Menus choose the ``model`` and the ``reading`` of LSDS.
    """
    menus = [
        option_menu("encoder", list(dict.fromkeys(trade["model"])), label="encoder"),
        option_menu("reading", list(dict.fromkeys(trade["reading"])), label="LSDS"),
    ]
    named = alt.Scale(domain=list(families))
    base = alt.Chart(trade.round(4), width=215, height=210)
    base = base.transform_filter("datum.model == encoder && datum.reading == reading")
    across = alt.X("TokenUni:Q", title="TokenUni (mean cosine)", scale=alt.Scale(zero=False, padding=12))
    panels = []
    for value, title in (("LSDS", "LSDS"), ("score", "Spearman x 100")):
        up = alt.Y(f"{value}:Q", title=title, scale=alt.Scale(zero=False, padding=12))
        path = base.transform_filter(f"datum.family == '{joined}'")
        path = path.mark_line(strokeWidth=1.2, color=GREY, aria=False).encode(across, up, alt.Order("TokenUni:Q"))
        marks = base.mark_point(size=75, filled=True, opacity=0.9).encode(
            across,
            up,
            alt.Color("family:N", sort=list(families), scale=named, title=None, legend=alt.Legend(columns=6)),
            alt.Shape("family:N", sort=list(families), scale=named, title=None),
            tooltip=["vectors", "TokenUni", "LSDS", "score"],
        )
        panels.append(path + marks)
    return (panels[0] | panels[1]).add_params(*menus)


def layer_histogram(values: Mapping[int, Tensor], captions: Mapping[int, str]) -> Any:
    """The singular values of each layer over the largest, the median dashed, a line of text; a slider for the layer."""
    bins = np.linspace(0, 1, 41)
    bars, medians = [], []
    for layer, layer_values in values.items():
        share = (layer_values / layer_values.max()).numpy()
        height, _ = np.histogram(share, bins, density=True)
        bars += [(layer, a, b, h) for a, b, h in zip(bins, bins[1:], height, strict=False)]
        medians.append((layer, float(np.median(share)), f"layer {layer}: {captions[layer]}"))
    data = pd.DataFrame(bars, columns=["layer", "low", "high", "density"]).round(4).assign(zero=0)
    keep = "datum.layer == layer"
    base = alt.Chart(data, width=460, height=220).transform_filter(keep)
    middle = alt.Chart(pd.DataFrame(medians, columns=["layer", "median", "told"]).round(4)).transform_filter(keep)
    line = middle.mark_rule(strokeDash=[5, 3], color=OKABE_ITO["vermillion"], strokeWidth=2, aria=False)
    label = middle.mark_text(align="right", baseline="top", fontSize=13)
    chart = alt.layer(
        base.mark_rect(aria=False).encode(
            alt.X("low:Q", title="singular value over the largest", scale=alt.Scale(domain=[0, 1])),
            alt.X2("high"),
            alt.Y("density:Q", title="density", scale=alt.Scale(domain=[0, float(data["density"].max())])),
            alt.Y2("zero", title=None),
        ),
        line.encode(x="median:Q"),
        label.encode(alt.Text("told:N"), x=alt.value(458), y=alt.value(-18)),
    )
    last = max(values)
    return chart.add_params(slider("layer", min(values), last, step=1, value=last, label="layer"))


def depth_rows(source: str, task: str, rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """The numbers of a source by depth: source, task, measure, depth (layer over the last), value, low, high.

    ``rows``: one a run and ``layer``; ``labels``: its columns and the names of their measures. Mean over runs with
    Student's 95% interval; one run alone has none.
    """
    long = rows.assign(depth=rows["layer"] / rows["layer"].max()).rename(columns=dict(labels))
    result = intervals(long.melt("depth", list(labels.values()), var_name="measure"), ["measure", "depth"])
    result = result.rename(columns={"mean": "value"}).assign(source=source, task=task)
    return result[["source", "task", "measure", "depth", "value", "low", "high"]]


def by_depth(rows: pd.DataFrame, *, measures: Sequence[str], grey: str) -> Any:
    """A panel a measure, a line a ``source``, the columns of :func:`depth_rows`; a menu of the ``task``.

    The source ``grey`` is drawn with each task.
    """
    if (rows["source"] == grey).all():
        return nothing_run()
    sources = list(dict.fromkeys(rows["source"]))
    shades = [*list(OKABE_ITO.values())[: len(sources) - 1], GREY]
    order = [name for name in sources if name != grey] + [grey]
    tasks = list(dict.fromkeys(rows.loc[rows["source"] != grey, "task"]))
    base = alt.Chart(rows.round(4), width=205, height=150)
    scale = alt.Scale(domain=order, range=shades)
    tint = alt.Color("source:N", sort=order, title=None, scale=scale, legend=alt.Legend(columns=2))
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
    panels = panels.transform_filter(f"datum.task == task || datum.source == '{grey}'").resolve_scale(y="independent")
    return panels.add_params(option_menu("task", tasks, label="task"))


SHARES = np.linspace(0, 1, 41)


def distributions(values: Mapping[int, Tensor], panel: str) -> pd.DataFrame:
    """The distribution function of each layer's values over the largest, at 41 places: panel, layer, x, share."""
    parts = [
        pd.DataFrame({"panel": panel, "layer": layer, "x": np.quantile((v / v.max()).numpy(), SHARES), "share": SHARES})
        for layer, v in values.items()
    ]
    return pd.concat(parts, ignore_index=True)


def distribution_functions(rows: pd.DataFrame) -> Any:
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
    return chart.facet(alt.Facet("panel:N", title=None, sort=list(dict.fromkeys(rows["panel"]))), columns=2)
