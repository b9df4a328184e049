"""One cloud through the whole book: the corpus's sentences as points, text on hover, before and after a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.numerics.rows import centered
from isonb_lab.pages.charts import GREY, points

AXES: dict[str, Any] = {"scale": alt.Scale(domain=[-1.05, 1.05], nice=False), "axis": None}


def plane(x: Tensor, onto: Tensor | None = None) -> Tensor:
    """Points (n, 2) of a cloud (n, d) along its two widest directions, in units of the mean length of its vectors.

    Sign and order of the directions are arbitrary: with ``onto``, another view of the same sentences, they are turned
    as close to it as an orthogonal map can (Procrustes).

    >>> plane(torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).abs()[:, 0]
    tensor([1.5000, 1.5000, 0.0000, 0.0000])
    """
    moved = centered(x.double())
    projected: Tensor = moved @ torch.linalg.svd(moved, full_matrices=False).Vh[:2].T / x.double().norm(dim=-1).mean()
    if onto is not None:
        u, _, v = torch.linalg.svd(projected.T @ onto.to(projected))
        projected = projected @ u @ v
    return projected.to(x)


def sentence_clouds(
    views: Mapping[str, Tensor], sentences: Sequence[Any], *, edges: Mapping[str, Tensor] | None = None
) -> Any:
    """A panel a view of the same sentences, coloured by topic, each as large as its panel: a shape, not a size.

    A sentence under the pointer is ringed in every panel.

    Args:
        views: the vectors (n, d) of each panel by its title, such as "as they are" and "whitened".
        sentences: the n sentences, each with its ``id``, ``text`` and ``topic``.
        edges: pairs of sentences (m, 2) by the title of a panel, drawn as lines, such as the bars of a barcode.
    """
    placed: dict[str, Tensor] = {}
    for title, x in views.items():
        at = plane(x, onto=next(iter(placed.values()), None))
        placed[title] = at / at.abs().max()  # it fills its panel: the shape of a cloud is to be seen, and not its size
    texts = pd.DataFrame([{"id": s.id, "sentence": s.text, "topic": s.topic} for s in sentences])
    key: dict[str, Any] = {"title": None, "legend": alt.Legend(columns=5)}
    channels: dict[str, Any] = {
        "x": alt.X("x:Q", **AXES),
        "y": alt.Y("y:Q", **AXES),
        "color": alt.Color("topic:N", **key),
        "shape": alt.Shape("topic:N", **key),
        "tooltip": ["sentence:N", "topic:N"],
    }
    under = alt.selection_point(name="sentence", fields=["id"], on="pointerover", clear="pointerout", empty=False)
    panels = []
    for title, at in placed.items():
        table = texts.assign(x=at[:, 0].tolist(), y=at[:, 1].tolist()).round(3)
        dots = points(table, size=36).encode(**channels).add_params(under)
        ring = dots.mark_point(filled=False, size=240, strokeWidth=2.5, aria=False).transform_filter(under)
        layers = [_lines(at[edges[title]])] if edges and title in edges else []
        panels.append(alt.layer(*layers, dots, ring).properties(width=300, height=300, title=title))
    return alt.hconcat(*panels)


def _lines(ends: Tensor) -> Any:
    """Segments between points: ``ends`` (m, 2, 2) holds from and to."""
    table = pd.DataFrame(ends.flatten(1).tolist(), columns=["x", "y", "x2", "y2"]).round(3)
    rules = alt.Chart(table).mark_rule(color=GREY, strokeWidth=1, opacity=0.7, aria=False)
    return rules.encode(alt.X("x:Q", **AXES), alt.Y("y:Q", **AXES), x2="x2:Q", y2="y2:Q")
