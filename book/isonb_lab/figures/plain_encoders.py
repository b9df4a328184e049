"""Pictures of *Plain encoders*: two numbers of runs against each other while they train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.pages.charts.comparisons import ZERO


def numbered(frame: pd.DataFrame, step: str = "update") -> pd.DataFrame:
    """The frame with ``moment``: its values of ``step`` counted from 1.

    >>> numbered(pd.DataFrame({"update": [30, 10, 30]})).moment.tolist()
    [2, 1, 2]
    """
    return frame.assign(moment=frame[step].rank(method="dense").astype(int))


def paths(
    frame: pd.DataFrame, *, suites: Sequence[str], x: str, y: str, keep: str, ticks: Sequence[float], columns: int = 2
) -> Any:
    """A panel a suite: columns ``suite``, ``seed``, ``update``, ``x`` (on a logarithmic axis with ``ticks``), ``y``.

    Rows for which the expression ``keep`` is true are drawn in full, with their update. Dashed, y = 0.
    """
    data = frame.round(4)
    same: dict[str, Any] = {"sort": list(suites), "scale": alt.Scale(domain=list(suites)), "legend": None}
    base = alt.Chart(data, width=200, height=120).encode(
        alt.X("x:Q", scale=alt.Scale(type="log"), axis=alt.Axis(values=list(ticks)), title=x),
        alt.Y("y:Q", scale=alt.Scale(padding=16), title=y, axis=alt.Axis(tickCount=4)),
        alt.Color("suite:N", **same),
        alt.Shape("suite:N", **same),
    )
    zero = alt.Chart(data).mark_rule(**ZERO).encode(y=alt.datum(0))
    trail = base.mark_point(size=30, opacity=0.5, filled=True, aria=False)
    now = base.transform_filter(keep).mark_point(size=90, filled=True, opacity=0.95)
    now = now.encode(tooltip=["suite", "seed", "update", "x", "y"])
    updates = alt.Chart(data).transform_filter(keep).transform_aggregate(groupby=["suite", "update"])
    updates = updates.transform_calculate(told="'after ' + datum.update + ' updates'")
    label = updates.mark_text(align="right", x=198, y=6).encode(text="told:N")
    panels = alt.layer(zero, trail, now, label)
    panels = panels.facet(alt.Facet("suite:N", sort=list(suites), title=None), columns=columns)
    return panels.resolve_scale(y="independent")
