"""Pictures of *IsoLayer*: two classes before a frozen linear classifier, and layers that move them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isonb.measures.isoscore import isoscore
from isonb_lab.pages.charts import GREY

LAYERS = ("stretch what isn't read", "squeeze what is read", "turn")

Frames = tuple[pd.DataFrame, pd.DataFrame]


def two_classes() -> tuple[Tensor, Tensor]:
    """Two classes of 40 points apart along x, the direction that the classifier reads; x and y uncorrelated."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(2).repeat_interleave(40)
    noise = torch.randn(80, 2, generator=generator, dtype=torch.float64)
    x = 1.5 * (2.0 * labels - 1) + 0.9 * noise[:, 0]
    x = x - x.mean()
    y = 0.42 * (noise[:, 1] - noise[:, 1].mean())
    return torch.stack([x, y - x * (x @ y) / (x @ x)], 1), labels


def plane_layer(name: str, t: float, cloud: Tensor) -> Tensor:
    """The matrix (2, 2) of the layer called ``name``, the share t of its way from the identity."""
    ratio = float(cloud[:, 0].std() / cloud[:, 1].std())
    if name == LAYERS[0]:
        return torch.diag(torch.tensor([1.0, 1 + t * (ratio - 1)], dtype=cloud.dtype))
    if name == LAYERS[1]:
        return torch.diag(torch.tensor([1 / (1 + t * (ratio - 1)), 1.0], dtype=cloud.dtype))
    c, s = math.cos(t * math.pi / 2), math.sin(t * math.pi / 2)
    return torch.tensor([[c, -s], [s, c]], dtype=cloud.dtype)


def border_facts(cloud: Tensor, labels: Tensor) -> dict[str, float]:
    """IsoScore, accuracy and cross-entropy of a classifier that reads x alone."""
    logits = torch.stack([-cloud[:, 0], cloud[:, 0]], 1)
    right = float((logits.argmax(1) == labels).double().mean())
    return {"IsoScore": float(isoscore(cloud)), "accuracy": right, "loss": float(cross_entropy(logits, labels))}


def border_frames(cloud: Tensor, labels: Tensor, names: Sequence[str], places: Sequence[float]) -> Frames:
    """Points, and a line of facts, for each layer at each place."""
    dots, lines = [], []
    for name in names:
        for t in places:
            at = cloud @ plane_layer(name, t, cloud).T
            facts = border_facts(at, labels)
            dots += [(name, t, f"class {c}", *p) for c, p in zip(labels.tolist(), at.tolist(), strict=True)]
            lines.append((name, t, ", ".join(f"{k} {v:.3f}" for k, v in facts.items())))
    return (
        pd.DataFrame(dots, columns=["layer", "t", "class", "x", "y"]).round(3),
        pd.DataFrame(lines, columns=["layer", "t", "told"]),
    )


def border_chart(frames: Frames, keep: str) -> Any:
    """Cloud, frozen border and facts; the expression ``keep`` filters what is shown."""
    dots, facts = frames
    square = alt.Scale(domain=[-4.6, 4.6], nice=False)
    size: dict[str, Any] = {"width": 430, "height": 330}
    cloud = alt.Chart(dots, **size).transform_filter(keep).mark_point(aria=False, filled=True, size=40, opacity=0.75)
    cloud = cloud.encode(
        alt.X("x:Q", title="the direction that the classifier reads", scale=square),
        alt.Y("y:Q", title="the other direction", scale=square),
        alt.Color("class:N", title=None),
        alt.Shape("class:N", title=None),
    )
    border = alt.Chart(pd.DataFrame({"x": [0.0]})).mark_rule(aria=False, strokeDash=[6, 4], color=GREY)
    text = alt.Chart(facts, **size).transform_filter(keep).mark_text(align="left", baseline="top", fontSize=13)
    return border.encode(alt.X("x:Q")) + cloud + text.encode(alt.Text("told:N"), x=alt.value(6), y=alt.value(-22))
