"""One cloud in two planes: along its mean with the origin drawn, and its two strongest centred directions."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.numerics.rows import centered
from isonb.pages.charts import GREY, points

__all__ = ["plane_coordinates", "two_planes"]

SIZE = {"width": 250, "height": 240}


def plane_coordinates(cloud: Tensor, before: Tensor | None = None) -> Tensor:
    """Coordinates (n, 4): along the mean, the first centred direction; the first and the second centred direction.

    The unit is the mean length of the points. With ``before``, the last two columns of another view, those of this one
    are turned onto them: the sign and the order of directions are arbitrary.
    """
    mean = cloud.mean(0)
    along = cloud @ (mean / mean.norm())
    axes = torch.linalg.svd(centered(cloud), full_matrices=False).Vh
    across = centered(cloud) @ axes[:2].T
    view: Tensor = torch.stack([along, across[:, 0], across[:, 0], across[:, 1]], -1) / cloud.norm(dim=-1).mean()
    if before is not None:
        u, _, v = torch.linalg.svd(view[:, 2:].T @ before)
        view[:, 2:] = view[:, 2:] @ u @ v
    return view


def two_planes(frame: pd.DataFrame, keep: str = "true") -> Any:
    """Columns ``a``, ``b`` (left, with the origin as a cross), ``x``, ``y`` (right) and ``group``, in colour.

    The expression ``keep`` filters the points.
    """
    key = alt.Legend(columns=5)
    group: dict[str, Any] = {
        "color": alt.Color("group:N", title=None, legend=key),
        "shape": alt.Shape("group:N", title=None, legend=key),
    }
    along = alt.Scale(domain=[-0.2, 1.2], nice=False)
    across = alt.Scale(domain=[-0.8, 0.8], nice=False)
    left = points(frame).transform_filter(keep)
    left = left.encode(
        alt.X("a:Q", title="along the mean", scale=along, axis=alt.Axis(tickCount=5)),
        alt.Y("b:Q", title="strongest direction", scale=across),
        **group,
    )
    right = points(frame).transform_filter(keep)
    right = right.encode(
        alt.X("x:Q", title="first direction", scale=across, axis=alt.Axis(values=[-0.8, -0.4, 0, 0.4, 0.8])),
        alt.Y("y:Q", title="second direction", scale=across),
        **group,
    )
    origin = alt.Chart(pd.DataFrame({"a": [0], "b": [0]})).encode(alt.X("a:Q"), alt.Y("b:Q"))
    cross = origin.mark_point(shape="cross", filled=True, size=140, color=GREY, aria=False)
    return alt.hconcat(alt.layer(left, cross).properties(**SIZE), right.properties(**SIZE))
