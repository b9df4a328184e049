"""Pictures of *Shrink the longest*: a cloud with its spanning tree beside its bars, and points that follow a loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.barcodes.entropy import persistent_entropy, prominent_bars
from isonb.barcodes.rips import h0_barcode
from isonb.numerics.rows import centered
from isonb_lab.pages.charts import GREY, OKABE_ITO

ROLE = alt.Scale(domain=["counts", "left out"], range=[OKABE_ITO["vermillion"], GREY])
ARROW = 0.35  # drawn length of an arrow, of a step of length 1

Frames = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


def _bars(cloud: Tensor, select: bool) -> tuple[Tensor, Tensor, Tensor, float, float]:
    """Bars, edges, which bars count, their entropy, and the greatest that so many bars can have."""
    bars, edges = h0_barcode(cloud, return_edges=True)
    counted = prominent_bars(bars) if select else torch.ones_like(bars).bool()
    return bars, edges, counted, float(persistent_entropy(bars, mask=counted)), math.log(int(counted.sum()))


def tree_frames(
    cloud: Tensor, pull: Callable[[bool], Tensor], variants: Mapping[str, bool], places: Sequence[float]
) -> Frames:
    """Points, edges and facts of ``cloud + t * pull(select)`` in the plane, for each variant and each t of ``places``.

    ``variants``: a name, and whether only prominent bars count. ``pull`` gives the direction (n, 2) of a variant.
    """
    dots, rungs, facts = [], [], []
    for name, select in variants.items():
        direction = pull(select)
        for t in places:
            at = cloud + t * direction
            bars, edges, counted, entropy, most = _bars(at, select)
            heads = (at + ARROW * direction).tolist()
            dots += [(name, t, *p, *head) for p, head in zip(at.tolist(), heads, strict=True)]
            for k, (bar, (a, b), keep) in enumerate(zip(bars.tolist(), edges.tolist(), counted.tolist(), strict=True)):
                role = "counts" if keep else "left out"
                rungs.append((name, t, k + 1, bar, *at[a].tolist(), *at[b].tolist(), role))
            facts.append((name, t, f"longest bar {bars[0]:.2f}, H = {entropy:.3f} of at most {most:.3f}"))
    ends = ["x", "y", "x2", "y2"]
    return (
        pd.DataFrame(dots, columns=["bars", "t", *ends]).round(3),
        pd.DataFrame(rungs, columns=["bars", "t", "bar", "length", *ends, "role"]).round(3),
        pd.DataFrame(facts, columns=["bars", "t", "told"]),
    )


def tree_chart(frames: Frames, keep: str) -> Any:
    """The cloud with its tree and arrows beside its bars; the expression ``keep`` filters every part."""
    dots, rungs, facts = frames

    def part(data: pd.DataFrame, **size: Any) -> alt.Chart:
        return alt.Chart(data, **size).transform_filter(keep)

    def span(name: str) -> list[float]:
        low, high = float(dots[name].min()), float(dots[name].max())
        return [low - 0.12 * (high - low), high + 0.12 * (high - low)]

    size = {"width": 330, "height": 270}
    x = alt.X("x:Q", scale=alt.Scale(domain=span("x"), nice=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=span("y"), nice=False), axis=None)
    ends = (alt.X2("x2"), alt.Y2("y2"))
    color = alt.Color("role:N", title="bar", scale=ROLE)
    thick = alt.condition("datum.role == 'counts'", alt.value(3), alt.value(1.2))
    tree = part(rungs, **size).mark_rule(aria=False).encode(x, y, *ends, color, strokeWidth=thick)
    arrows = part(dots, **size).mark_rule(aria=False, color=OKABE_ITO["green"], strokeWidth=1.6).encode(x, y, *ends)
    cloud = part(dots, **size).mark_circle(aria=False, size=38, opacity=1, color=OKABE_ITO["blue"]).encode(x, y)
    label = part(facts, **size).mark_text(align="left", baseline="bottom", fontSize=13)
    label = label.encode(alt.Text("told:N"), x=alt.value(0), y=alt.value(-4))
    top = round(float(rungs["length"].max()) * 1.04, 2)
    length = alt.X("length:Q", scale=alt.Scale(domain=[0, top], nice=False), title="length of the bar")
    bars = part(rungs, width=200, height=270).mark_bar()
    bars = bars.encode(length, alt.Y("bar:O", axis=None), color, tooltip=["bar", "length", "role"])
    return (tree + arrows + cloud + label | bars).configure_view(stroke=None)


def walk(
    points: Tensor, loss: Callable[[Tensor], Tensor] | None, *, steps: int, length: float, seed: int = 0
) -> Tensor:
    """Move points (n, d) down the gradient of ``loss``, or in random directions where it is None.

    Each of ``steps`` steps moves all points together by ``length / steps`` times the norm of their deviations from
    their mean at the start, whatever the size of the gradient: losses of different scale travel equally far.

    >>> cloud = torch.tensor([[0.0, 0.0], [2.0, 0.0]], dtype=torch.float64)
    >>> walk(cloud, lambda x: (x[0] - x[1]).square().sum(), steps=1, length=0.5)
    tensor([[0.5000, 0.0000],
            [1.5000, 0.0000]], dtype=torch.float64)
    """
    generator = torch.Generator().manual_seed(seed)
    stride = length / steps * float(centered(points).norm())
    at = points
    for _ in range(steps):
        if loss is None:
            move = torch.randn(at.shape, generator=generator, dtype=at.dtype)
        else:
            live = at.detach().clone().requires_grad_()
            (slope,) = torch.autograd.grad(loss(live), live)
            move = -slope
        at = at + stride * move / move.norm().clamp_min(1e-12)
    return at
