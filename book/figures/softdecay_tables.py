"""The picture of *SoftDecay: all tables*: maps of sentence vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import CLOUD, option_menu


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
