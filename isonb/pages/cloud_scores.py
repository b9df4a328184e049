"""A cloud in the plane beside what scores make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
from torch import Tensor

from isonb.pages.charts import OKABE_ITO, points

__all__ = ["cloud_frames", "cloud_scores"]


def cloud_frames(
    cloud: Tensor,
    changes: Mapping[str, Callable[[Tensor, float], Tensor]],
    readings: Callable[[Tensor], Mapping[str, float]],
    places: Sequence[float],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points and readings of ``change(cloud, t)`` in the plane, for each change and each t of ``places``.

    The tables of :func:`cloud_scores`, with the columns ``change`` and ``t`` before theirs.
    """
    moved = {(name, t): change(cloud, t) for name, change in changes.items() for t in places}
    spots = [(*at, *point) for at, x in moved.items() for point in x.tolist()]
    scores = [(*at, *one) for at, x in moved.items() for one in readings(x).items()]
    return (
        pd.DataFrame(spots, columns=["change", "t", "x", "y"]).round(2),
        pd.DataFrame(scores, columns=["change", "t", "score", "reading"]).round(4),
    )


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
