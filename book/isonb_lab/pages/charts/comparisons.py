"""Arms of runs beside each other: intervals, courses over a training, one number against another, gains by seed.

And a cloud in the plane beside what scores make of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.pages.charts import CLOUD, GREY, OKABE_ITO, dash, points
from isonb_lab.pages.evidence import half_width, intervals

ZERO: dict[str, Any] = {"strokeDash": [5, 3], "color": GREY, "aria": False}
LEARNED = alt.condition("datum.learned", alt.value(1), alt.value(0.45))
SOLID = alt.condition("datum.learned", alt.value([1, 0]), alt.value([3, 3]))
"""How what was learned is drawn, and what wasn't: by the column ``learned``."""


def nothing_run(width: int = 430) -> Any:
    """A picture that says that no run here has what it would show."""
    text = alt.Chart(pd.DataFrame({"words": ["no run has what this picture shows"]}), width=width, height=40)
    return text.mark_text(color=GREY, fontSize=13).encode(alt.Text("words:N"))


def forest(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    suites: Sequence[str],
    title: str,
    column: str | None = None,
    width: int = 240,
    zero: bool = True,
    ticks: int = 5,
) -> Any:
    """Intervals by arm, a row of panels a suite: columns ``arm``, ``suite``, ``mean``, ``low``, ``high``, ``n``.

    ``column`` names a further column of ``frame`` that splits the panels sideways, each with one axis for all suites.
    A side names its suites itself where its rows aren't those of the first.
    """
    if frame.empty:
        return nothing_run(width)
    # with rows and columns of panels Vega-Lite names the rows in the order of the data, whatever ``sort`` says
    place = {suite: number for number, suite in enumerate(suites)}
    frame = frame.sort_values("suite", key=lambda names: names.map(place), kind="stable")
    row = alt.Y("arm:N", sort=list(arms), title=None)
    ends = alt.X("low:Q", title=title, axis=alt.Axis(tickCount=ticks))
    tips = ["suite", "arm", *(alt.Tooltip(n, format="+.3f") for n in ("mean", "low", "high")), "n"]

    def side(part: pd.DataFrame, heads: bool) -> Any:
        panel = alt.Chart(width=width, height=alt.Step(17))
        base, zeros = panel.encode(row), panel.mark_rule(**ZERO).encode(x=alt.datum(0))
        bars = base.mark_rule(aria=False, strokeWidth=2).encode(ends, alt.X2("high:Q"))
        marks = base.mark_point(filled=True, size=65).encode(alt.X("mean:Q"), tooltip=tips)
        head = alt.Header(labelAngle=0, labelAlign="left", labels=heads)
        panels = alt.layer(*([zeros] if zero else []), bars, marks, data=part.round(4))
        return panels.facet(row=alt.Row("suite:N", sort=list(suites), title=None, header=head))

    if column is None:
        return side(frame, True).resolve_scale(x="independent")
    parts = {str(name): part for name, part in frame.groupby(column, sort=False)}
    rows = [set(zip(part["suite"], part["arm"], strict=True)) for part in parts.values()]
    sides = [
        side(part, not at or rows[at] != rows[0]).resolve_scale(x="shared", y="independent").properties(title=name)
        for at, (name, part) in enumerate(parts.items())
    ]
    return alt.hconcat(*sides).resolve_scale(x="independent")


def courses(
    frame: pd.DataFrame, *, arms: Sequence[str], x: str, x_title: str, title: str, width: int = 185, height: int = 140
) -> Any:
    """A line an arm with its band: columns ``arm``, ``x``, ``mean``, ``low``, ``high``, ``n``; facet it as you need."""
    base = alt.Chart(frame.round(4), width=width, height=height)
    scale, solid = alt.Scale(domain=list(arms)), alt.Legend(symbolOpacity=1)  # not as pale as the band
    color = alt.Color("arm:N", sort=list(arms), title=None, scale=scale, legend=solid)
    band = base.mark_area(opacity=0.18, aria=False).encode(alt.X(f"{x}:Q"), alt.Y("low:Q"), alt.Y2("high:Q"), color)
    line = base.mark_line(point={"size": 22}).encode(
        alt.X(f"{x}:Q", title=x_title, axis=alt.Axis(tickCount=4)),
        alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False)),
        color,
        dash("arm:N", sort=list(arms), legend=None),
        tooltip=["arm", x, "mean", "low", "high", "n"],
    )
    return alt.layer(band, line)


def crosses(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    suites: Sequence[str],
    x: str,
    y: str,
    columns: int = 3,
    equal: bool = False,
    zero: bool = False,
    **color: Any,
) -> Any:
    """Means over runs with Student's 95% intervals: columns ``suite``, ``arm``, ``x`` and ``y``, a row a run.

    A panel a suite, a mark an arm that has runs; ``x`` and ``y`` are the titles of the axes. One run has no interval.
    ``equal`` draws the line on which both numbers are the same, through all crosses of a panel; ``zero`` two at 0.
    """
    shown = frame[frame["arm"].isin(list(arms)) & frame["suite"].isin(list(suites))].dropna(subset=["x", "y"])
    rows = []
    for (suite, arm), part in shown.groupby(["suite", "arm"], sort=False):
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
    if zero:
        layers[:0] = [base.mark_rule(**ZERO).encode(x=alt.datum(0)), base.mark_rule(**ZERO).encode(y=alt.datum(0))]
    chart = alt.layer(*layers, data=table.round(4))
    panels = chart.facet(alt.Facet("suite:N", title=None, sort=list(suites)), columns=columns)
    return panels.resolve_scale(x="independent", y="independent")


SIGNED = "datum.value ? format(datum.value, '+.2f') : '0'"


def growing(frame: pd.DataFrame) -> pd.DataFrame:
    """Dots and means as seeds come in: column ``seeds`` says of how many; ``kind`` is "seed" or "mean".

    ``frame`` has a row a seed: ``suite``, ``arm``, ``seed``, ``gain`` (the score less that of plain training).

    >>> frame = pd.DataFrame({"suite": "a", "arm": "b", "seed": [1, 2], "gain": [0.0, 0.2]})
    >>> growing(frame)[["kind", "seeds", "mean"]].to_dict("list")
    {'kind': ['seed', 'seed', 'mean'], 'seeds': [1, 2, 2], 'mean': [nan, nan, 0.1]}
    """
    order = frame.sort_values("seed")
    order = order.assign(seeds=order.groupby(["suite", "arm"]).cumcount() + 1)
    means = [
        intervals(order[order["seeds"] <= k].rename(columns={"gain": "value"}), ["suite", "arm"]).assign(seeds=k)
        for k in range(2, int(order["seeds"].max()) + 1)
    ]
    return pd.concat([order.assign(kind="seed"), *(part.assign(kind="mean") for part in means)], ignore_index=True)


def framed(both: pd.DataFrame) -> pd.DataFrame:
    """What :func:`growing` gives, with the frame of each suite (``least``, ``most``) and intervals cut by it.

    >>> seeds = pd.DataFrame({"suite": "a", "arm": "b", "seed": [1, 2, 3], "gain": [0.0, 0.2, 0.1]})
    >>> framed(growing(seeds))[["seeds", "from", "to"]].tail(2).round(2).to_dict("list")
    {'seeds': [2, 3], 'from': [-0.15, -0.15], 'to': [0.35, 0.35]}
    """
    whole = both["seeds"] == both.groupby("suite")["seeds"].transform("max")
    ends = both[whole | (both["kind"] == "seed")].groupby("suite")
    least = both["suite"].map(ends[["gain", "low"]].min().min(axis=1))
    most = both["suite"].map(ends[["gain", "high"]].max().max(axis=1))
    cut = {"from": both["low"].clip(lower=least), "to": both["high"].clip(upper=most)}
    return both.assign(least=least, most=most, **cut)


def gains(
    frame: pd.DataFrame,
    *,
    arms: Sequence[str],
    suites: Sequence[str],
    title: str,
    unlearned: Collection[tuple[str, str]] = (),
) -> Any:
    """A row an arm and a panel a suite: a dot a seed, the mean, and Student's 95% interval of it.

    ``frame`` as in :func:`growing`. Give it a slider ``seeds``, from 2: so many seeds are drawn. Each panel keeps the
    axis that holds every dot and the intervals of all seeds; a wider one of fewer seeds ends at its border. Of the
    pairs (arm, suite) in ``unlearned`` the mean is pale and dashed.
    """
    both = framed(growing(frame)).round(4)
    both["learned"] = [pair not in unlearned for pair in zip(both["arm"], both["suite"], strict=True)]
    row = alt.Y("arm:N", sort=list(arms), title=None)
    base = alt.Chart(width=250, height=alt.Step(19))
    dots = base.transform_filter("datum.kind == 'seed' && datum.seeds <= seeds")
    mean = base.transform_filter("datum.kind == 'mean' && datum.seeds == seeds")

    def x(column: str) -> alt.X:
        return alt.X(f"{column}:Q", title=title, axis=alt.Axis(tickCount=4, labelExpr=SIGNED))

    lines = ["arm", *(alt.Tooltip(n, format="+.3f") for n in ("mean", "low", "high")), "n"]
    each = ["arm", "seed", alt.Tooltip("gain", format="+.3f")]
    layers = [
        base.mark_rule(**ZERO).encode(x=alt.datum(0)),
        base.mark_rule(opacity=0, aria=False).encode(x("least"), alt.X2("most:Q")),
        dots.mark_point(**CLOUD).encode(x("gain"), row, color=alt.value(GREY), tooltip=each),
        mean.mark_rule(aria=False, strokeWidth=2).encode(
            x("from"), alt.X2("to:Q"), row, opacity=LEARNED, strokeDash=SOLID
        ),
        mean.mark_point(filled=True, size=70).encode(x("mean"), row, opacity=LEARNED, tooltip=lines),
    ]
    panels = alt.layer(*layers, data=both).facet(row=alt.Row("suite:N", sort=list(suites), title=None))
    return panels.resolve_scale(x="independent")


def cloud_scores(
    spots: pd.DataFrame, scores: pd.DataFrame, *, names: Sequence[str], frame: tuple[float, float], keep: str = "true"
) -> Any:
    """The points ``x``, ``y`` with a cross at the origin, and beside them each ``score`` with its ``reading``.

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
    top = 1.05 * max(1.0, float(scores["reading"].max()))
    base = base.encode(
        alt.X("reading:Q", scale=alt.Scale(domain=[0, top], nice=False), title="reading (1 = isotropic?)"),
        alt.Y("score:N", sort=list(names), title=None),
    )
    marks = base.mark_circle(size=90).encode(tooltip=["score:N", alt.Tooltip("reading:Q", format=".3f")])
    return (cloud + origin) | (base.mark_bar(size=3, opacity=0.5) + marks)
