"""Points of the plane within C of the span of the directions whose singular value is at least C."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import torch
from torch import Tensor

from isonb.pages.charts import GREY, OKABE_ITO

__all__ = ["farthest", "span_bound"]

WORDS = ("no direction: within C of the origin", "1 direction: within C of a line", "2 directions: the plane")


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
    told = [(k, f"{WORDS[k]}; farthest point {far:.2f}") for k, far in enumerate(farthest(cloud))]
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
    words = alt.Chart(pd.DataFrame(told, columns=["k", "told"]), **size).transform_filter(f"datum.k == {keep}")
    chart = alt.layer(
        strip.mark_line(**border).encode(x, y, alt.Detail("sign:N")),
        ring.mark_line(**border).encode(x, y, alt.Order("angle:Q")),
        here.mark_rule(color=GREY, aria=False).encode(x, y, alt.X2("x2"), alt.Y2("y2")),
        here.mark_circle(size=55, opacity=1, aria=False).encode(x, y),
        words.mark_text(align="left", baseline="bottom", fontSize=13).encode(
            alt.Text("told:N"), x=alt.value(0), y=alt.value(-4)
        ),
    )
    return chart.add_params(radius).configure_view(stroke=None)
