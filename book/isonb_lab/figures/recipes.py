"""Four recipes as what each does to one row of bars: the variances of a cloud along its directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.layers.soft_decay import soft_decay
from isonb.losses import IStarLoss, PersistentEntropyLoss
from isonb.numerics.rows import centered
from isonb_lab.pages.charts import GREY, OKABE_ITO

PLAIN = "as they are"
RATE = 0.02  # of Adam, in units of the points' mean distance to the origin over the root of d
QUIET = 1e-6  # of the largest variance: a direction without any


def after(x: Tensor, topics: Sequence[str], steps: int) -> dict[str, Tensor]:
    """The points (n, d) as they are and after each paper's recipe, the oldest idea of the book first."""
    names = sorted(set(topics))
    labels = torch.tensor([names.index(topic) for topic in topics])
    entropy, istar = PersistentEntropyLoss(), IStarLoss(weight=-1.0, zeta=0.0)
    return {
        PLAIN: x,
        "Shrink the longest": moved(x, lambda points: entropy(points, labels), steps),
        "I-STAR, less isotropy": moved(x, istar, steps),
        "SoftDecay": soft_decay(x),
        "IsoLayer": levelled(x, labels),
    }


def moved(x: Tensor, penalty: Callable[[Tensor], Tensor], steps: int) -> Tensor:
    """Points after some steps of Adam down a penalty, with nothing that holds them."""
    points = x.clone().requires_grad_()
    descent = torch.optim.Adam([points], lr=RATE * float(x.norm(dim=-1).mean()) / x.shape[-1] ** 0.5)
    for _ in range(steps):
        descent.zero_grad()
        torch.autograd.backward(penalty(points))
        descent.step()
    return points.detach()


def levelled(x: Tensor, labels: Tensor) -> Tensor:
    """Points whose directions that a least-squares head doesn't read have the mean variance of those it reads."""
    rows = centered(x)
    head = torch.linalg.lstsq(rows, torch.nn.functional.one_hot(labels).to(x)).solution
    read = torch.linalg.qr(head).Q
    seen = rows @ read @ read.T
    variances, axes = torch.linalg.eigh(torch.cov((rows - seen).T))
    alive = variances > QUIET * variances.max()
    level = torch.linalg.eigvalsh(torch.cov((rows @ read).T)).mean()
    scale = torch.where(alive, (level / variances.clamp_min(1e-30)).sqrt(), 0.0)
    turned: Tensor = seen + (rows - seen) @ (axes * scale) @ axes.T + x.mean(0)
    return turned


def bars(clouds: Mapping[str, Tensor]) -> Any:
    """A panel a recipe: the variances from the widest, as multiples of their mean, those of the first cloud in grey."""
    plain, *others = clouds.items()
    before = _variances(plain[1])
    rows = pd.concat(
        pd.DataFrame({"recipe": name, "direction": range(1, len(before) + 1), "before": before, "after": _variances(x)})
        for name, x in others
    )
    rows = rows.round(5)
    base = alt.Chart(rows).encode(alt.X("direction:Q", title="direction, the widest first"))
    scale = alt.Scale(type="log", domain=[0.001, 100], clamp=True)
    lines = [
        base.mark_line(color=color, interpolate="step-after", strokeDash=dash).encode(
            alt.Y(f"{when}:Q", scale=scale, title="variance / mean variance")
        )
        for when, color, dash in (("before", GREY, [4, 3]), ("after", OKABE_ITO["blue"], [1, 0]))
    ]
    level = alt.Chart(rows).mark_rule(color=OKABE_ITO["vermillion"]).encode(y=alt.datum(1, scale=scale))
    panel = alt.layer(level, *lines).properties(width=230, height=150)
    return panel.facet(alt.Facet("recipe:N", title=None, sort=[name for name, _ in others]), columns=2)


def _variances(x: Tensor) -> list[float]:
    values = torch.linalg.eigvalsh(torch.cov(x.T)).flip(0).clamp_min(0)
    return list((values / values.mean()).tolist())
