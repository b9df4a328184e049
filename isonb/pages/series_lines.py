"""The logged values of one run as lines, for the notebooks that a sweep leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from isonb.pages.charts import dash, show

__all__ = ["show_series"]

Series = Mapping[str, Sequence[tuple[float, float]]]


def show_series(series: Series, names: Mapping[str, str], x: str, y: str, description: str) -> None:
    """Show one line for each of ``names`` (label to the name of a series) that the run has; say so if it has none.

    >>> show_series({}, {"training": "step.train.loss"}, "update", "loss", "The loss over the updates.")
    loss: not measured in this run.
    """
    rows = [
        {"series": label, x: step, y: value} for label, name in names.items() for step, value in series.get(name, [])
    ]
    if not rows:
        print(f"{y}: not measured in this run.")
        return
    chart = alt.Chart(pd.DataFrame(rows)).mark_line(point=True)
    chart = chart.encode(
        alt.X(f"{x}:Q"),
        alt.Y(f"{y}:Q", scale=alt.Scale(zero=False)),
        alt.Color("series:N", title=None),
        strokeDash=dash("series:N", title=None),
    )
    show(chart, description=description)
