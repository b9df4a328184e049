"""Many methods against plain training: what each gains, seed by seed, and what it changes in the cloud for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import CLOUD, GREY, OKABE_ITO, option_menu
from isonb.pages.evidence import intervals

__all__ = ["change_against_gain", "gains", "growing"]

SIGNED = "datum.value ? format(datum.value, '+.2f') : '0'"
COLORS = [*{**OKABE_ITO, "yellow": "#A0522D"}.values(), GREY]  # brown: small marks in yellow look orange
ZERO: dict[str, Any] = {"strokeDash": [5, 3], "color": GREY, "aria": False}


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


def gains(frame: pd.DataFrame, *, arms: Sequence[str], suites: Sequence[str], title: str, width: int = 250) -> Any:
    """A row an arm and a panel a suite: a dot a seed, the mean, and Student's 95% interval of it.

    ``frame`` as in :func:`growing`. Give it a slider ``seeds``, from 2: so many seeds are drawn.
    """
    both = growing(frame).round(4)
    row = alt.Y("arm:N", sort=list(arms), title=None)
    base = alt.Chart(width=width, height=alt.Step(19))
    dots = base.transform_filter("datum.kind == 'seed' && datum.seeds <= seeds")
    mean = base.transform_filter("datum.kind == 'mean' && datum.seeds == seeds")

    def x(column: str) -> alt.X:
        return alt.X(f"{column}:Q", title=title, axis=alt.Axis(tickCount=4, labelExpr=SIGNED))

    told = ["arm", *(alt.Tooltip(n, format="+.3f") for n in ("mean", "low", "high")), "n"]
    each = ["arm", "seed", alt.Tooltip("gain", format="+.3f")]
    layers = [
        base.mark_rule(**ZERO).encode(x=alt.datum(0)),
        dots.mark_point(**CLOUD).encode(x("gain"), row, color=alt.value(GREY), tooltip=each),
        mean.mark_rule(aria=False, strokeWidth=2).encode(x("low"), alt.X2("high:Q"), row),
        mean.mark_point(filled=True, size=70).encode(x("mean"), row, tooltip=told),
    ]
    panels = alt.layer(*layers, data=both).facet(row=alt.Row("suite:N", sort=list(suites), title=None))
    return panels.resolve_scale(x="independent")


def change_against_gain(
    frame: pd.DataFrame, *, arms: Sequence[str], suites: Sequence[str], measures: Sequence[str]
) -> Any:
    """A panel a suite: what a run gains in the score against what it changes in a measure, which a menu chooses.

    ``frame`` has a row a run and measure: ``suite``, ``arm``, ``seed``, ``measure``, ``change``, ``gain``. The dashed
    lines are plain training.
    """
    base = alt.Chart(width=270, height=230)
    shade, form = alt.Scale(domain=list(arms), range=COLORS), alt.Scale(domain=list(arms))
    dots = base.mark_point(filled=True, size=70, opacity=0.85).encode(
        alt.X("change:Q", title="change in the measure", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        alt.Y("gain:Q", title="gain in the score", scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)),
        alt.Color("arm:N", scale=shade, sort=list(arms), title=None),
        alt.Shape("arm:N", scale=form, sort=list(arms), title=None),
        tooltip=["arm", "seed", alt.Tooltip("change", format="+.4f"), alt.Tooltip("gain", format="+.3f")],
    )
    across = base.mark_rule(**ZERO).encode(y=alt.datum(0))
    along = base.mark_rule(**ZERO).encode(x=alt.datum(0))
    chart = alt.layer(across, along, dots, data=frame.round(5)).transform_filter("datum.measure == measure")
    panels = chart.facet(alt.Facet("suite:N", sort=list(suites), title=None), columns=2)
    return panels.resolve_scale(x="independent", y="independent").add_params(option_menu("measure", measures))
