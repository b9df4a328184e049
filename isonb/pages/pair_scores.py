"""Sentence vectors under transforms: gains by set, by alpha, and against what they cost; maps of the vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import CLOUD, DASHES, GREY, OKABE_ITO, option_menu

__all__ = ["gain_panels", "gains_by_alpha", "sentence_maps", "trade_offs"]


def gain_panels(gains: pd.DataFrame, *, arms: Sequence[str], sets: Sequence[str]) -> Any:
    """A panel a ``set``, a row an ``arm``: ``mean`` with ``low`` and ``high``; menus of ``model`` and ``protocol``."""
    menus = [
        option_menu("who", list(dict.fromkeys(gains["model"])), label="encoder"),
        option_menu("how", list(dict.fromkeys(gains["protocol"])), label="protocol"),
    ]
    base = alt.Chart(gains.round(3), width=128, height=alt.Step(17))
    row = alt.Y("arm:N", sort=list(arms), title=None)
    layers = alt.layer(
        base.mark_rule(strokeDash=[5, 3], color=GREY, aria=False).encode(x=alt.datum(0)),
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
        base.mark_rule(strokeDash=[5, 3], color=GREY, aria=False).encode(y=alt.datum(0)),
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


def sentence_maps(spots: pd.DataFrame, *, order: Sequence[str]) -> Any:
    """A map of ``x`` and ``y`` for each kind of ``vectors``, the ``side`` of a pair by colour; a menu of ``pairs``."""
    menu = option_menu("ground", list(dict.fromkeys(spots["pairs"]))[::-1], label="pairs")
    hollow = CLOUD | {"filled": False, "size": 22, "strokeWidth": 1.2}  # the two sides of a pair often coincide
    chart = alt.Chart(spots, width=160, height=160).mark_point(**hollow).transform_filter("datum.pairs == ground")
    chart = chart.encode(
        alt.X("x:Q", axis=None, scale=alt.Scale(zero=False)),
        alt.Y("y:Q", axis=None, scale=alt.Scale(zero=False)),
        alt.Color("side:N", title=None),
        alt.Shape("side:N", title=None),
    )
    maps = chart.facet(alt.Facet("vectors:N", sort=list(order), title=None), columns=3)
    return maps.resolve_scale(x="independent", y="independent").add_params(menu)
