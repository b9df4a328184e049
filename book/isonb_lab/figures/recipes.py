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
from isonb_lab.pages.charts import GREY, OKABE_ITO, slider

PLAIN = "as they are"
RATE = 0.02  # of Adam, in units of the points' mean distance to the origin over the root of d
QUIET = 1e-6  # of the largest variance: a direction without any
WIDE = (0.001, 100.0)  # of a drawn variance, in units of the mean one


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
        "IsoLayer, in closed form": levelled(x, labels, x),
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


def levelled(x: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    """Points behind a layer fitted on ``x``: what a least-squares head of ``x`` doesn't read is brought to one level.

    The level is the mean variance of what it reads. The head gives every point the logits that it had.
    """
    rows = centered(x)
    head = torch.linalg.lstsq(rows, torch.nn.functional.one_hot(labels).to(x)).solution
    directions, sizes, _ = torch.linalg.svd(head, full_matrices=False)
    read = directions[:, sizes > QUIET * sizes[0]]  # the columns sum to 0: the last direction is noise
    variances, axes = torch.linalg.eigh(torch.cov((rows - rows @ read @ read.T).T))
    alive = variances > QUIET * variances.max()
    level = (rows @ read).var(0).mean()
    scale = torch.where(alive, (level / variances.clamp_min(1e-30)).sqrt(), 0.0)
    away = points - x.mean(0)
    seen = away @ read @ read.T
    turned: Tensor = seen + (away - seen) @ (axes * scale) @ axes.T + x.mean(0)
    return turned


def bars(clouds: Mapping[str, Tensor]) -> Any:
    """A panel a recipe: the variances from the widest, as multiples of their mean, those of the first cloud in grey."""
    plain, *others = clouds.items()
    before = variances(plain[1])
    rows = pd.concat(_bar_frame(before, variances(x)).assign(recipe=name) for name, x in others)
    panel = _steps(rows, "direction, the widest first", "variance / mean variance", WIDE)
    facet = alt.Facet("recipe:N", title=None, sort=[name for name, _ in others])
    return panel.properties(width=230, height=150).facet(facet, columns=2)


def turned_bars(
    stops: Mapping[float, Sequence[float]],
    *,
    label: str,
    x: str = "direction, the widest first",
    y: str = "variance / mean variance",
    span: tuple[float, float] = WIDE,
) -> Any:
    """One row of bars under a slider, that of the stop nearest to 0 in grey behind it.

    Args:
        stops: as many bars at each strength of a method, in rising and equal steps.
        label: what stands beside the slider.
        x: title of the axis along the row.
        y: title of the axis of the bars, which is logarithmic.
        span: the least and the largest bar that is drawn.
    """
    first, *_, last = stops
    step, start = (last - first) / (len(stops) - 1), min(stops, key=abs)
    chosen = slider("strength", first, last, step=round(step, 6), value=start, label=label)
    rows = pd.concat(_bar_frame(stops[start], after).assign(stop=stop) for stop, after in stops.items())
    panel = _steps(rows, x, y, span).transform_filter(abs(alt.datum.stop - chosen) < step / 2)
    return panel.properties(width=520, height=260).add_params(chosen)


def variances(x: Tensor) -> list[float]:
    """The variances of points (n, d) along their directions, the widest first, as multiples of their mean."""
    values = torch.linalg.eigvalsh(torch.cov(x.T)).flip(0).clamp_min(0)
    return list((values / values.mean()).tolist())


def _bar_frame(before: Sequence[float], after: Sequence[float]) -> pd.DataFrame:
    places = range(1, len(before) + 1)
    return pd.DataFrame({"direction": places, "before": list(before), "after": list(after)}).round(5)


def _steps(rows: pd.DataFrame, x: str, y: str, span: tuple[float, float]) -> Any:
    """The bars before in grey and dashed, after in blue, and a line where a bar is the mean."""
    base = alt.Chart().encode(alt.X("direction:Q", title=x))
    scale = alt.Scale(type="log", domain=list(span), clamp=True)
    lines = [
        base.mark_line(color=color, interpolate="step-after", strokeDash=dash).encode(
            alt.Y(f"{when}:Q", scale=scale, title=y)
        )
        for when, color, dash in (("before", GREY, [4, 3]), ("after", OKABE_ITO["blue"], [1, 0]))
    ]
    level = alt.Chart().mark_rule(color=OKABE_ITO["vermillion"]).encode(y=alt.datum(1, scale=scale))
    return alt.layer(level, *lines, data=rows)
