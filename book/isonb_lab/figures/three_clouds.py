"""Draw ``three_clouds.svg``, the picture on the first page, with the scores of its clouds.

Run it again after a change: ``python -m isonb_lab.figures.three_clouds``. A test compares its numbers with isonb's.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import torch
import vl_convert
from IPython.display import HTML

from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore
from isonb.numerics.rows import centered
from isonb_lab.pages import CLOUD, OKABE_ITO
from isonb_lab.pages.vega import VL_VERSION

TARGET = Path(__file__).with_suffix(".svg")
TEXT = (  # what the picture shows, for whoever can't see it
    "Three scatter plots of 100 points with the origin marked by a cross. A round ball at the origin has mean "
    "cosine 0.01 and IsoScore 1.00; a round ball far from the origin, seen from there as a cone, has mean cosine "
    "0.95 and IsoScore 0.99; a thin needle through the origin has mean cosine 0.01 and IsoScore 0.01."
)
DARK = (  # on a dark page: light letters and crosses, a grid that doesn't glare
    "<style>@media (prefers-color-scheme: dark) { text, [fill='black'] { fill: #ced6dd } "
    "[stroke='#ddd'] { stroke: #3a3f45 } [fill='#0072B2'] { fill: #2a85c4 } }</style>"
)


def clouds() -> dict[str, torch.Tensor]:
    """A ball at the origin, a ball far from it, and a needle through it: 100 points each."""
    draw = torch.Generator().manual_seed(3)
    ball, other, thin = (centered(torch.randn(100, 2, generator=draw)) for _ in range(3))
    return {
        "ball": ball,
        "cone": 0.8 * other + torch.tensor([3.2, 2.4]),
        "needle": thin @ torch.tensor([[1.5, 0.85], [0.0, 0.13]]),
    }


def scores(x: torch.Tensor) -> list[str]:
    """The two scores under a cloud's name, a line each."""
    return [f"mean cosine {abs(mean_cosine(x)):.2f}", f"IsoScore {isoscore(x):.2f}"]


def panel(name: str, x: torch.Tensor, colour: str, shape: str) -> Any:
    """One cloud, with the origin as a cross."""
    axis = alt.Axis(labels=False, ticks=False, domain=False, grid=True, values=[-4, -2, 0, 2, 4, 6])
    side: dict[str, Any] = {"scale": alt.Scale(domain=[-5.5, 6.5], nice=False), "axis": axis, "title": None}
    at = {"x": alt.X("x:Q", **side), "y": alt.Y("y:Q", **side)}
    points = alt.Chart(pd.DataFrame({"x": x[:, 0].tolist(), "y": x[:, 1].tolist()}).round(3))
    origin = alt.Chart(pd.DataFrame({"x": [0], "y": [0]}))
    origin = origin.mark_point(shape="cross", filled=True, size=150, color="black")
    title = alt.Title(name, subtitle=scores(x), anchor="start", fontSize=22, subtitleFontSize=20)
    layers = points.mark_point(**CLOUD, color=colour, shape=shape).encode(**at), origin.encode(**at)
    return alt.layer(*layers).properties(width=190, height=190, title=title)


def picture() -> str:
    """The three panels as SVG."""
    looks = zip(("blue", "vermillion", "green"), ("circle", "square", "triangle-up"), strict=True)
    panels = [panel(name, x, OKABE_ITO[c], s) for (name, x), (c, s) in zip(clouds().items(), looks, strict=True)]
    chart = alt.hconcat(*panels, spacing=24).configure(background="transparent", padding=8)
    chart = chart.configure_view(stroke="#999999")
    drawn = str(vl_convert.vegalite_to_svg(json.dumps(chart.to_dict()), vl_version=VL_VERSION))
    return drawn.replace(">", f">{DARK}", 1)


def image() -> HTML:
    """The drawn picture with its text, for a cell of a chapter."""
    drawn = base64.b64encode(TARGET.read_bytes()).decode()
    return HTML(f'<img class="dark-light" alt="{TEXT}" src="data:image/svg+xml;base64,{drawn}">')  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    TARGET.write_text(picture() + "\n", encoding="utf-8")
