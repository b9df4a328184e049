"""Pictures of *Why are all my cosines high?*: the dimensions of a cloud as points, and a cloud in two planes."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.measures.cosine import cosine_contributions
from isonb.numerics.rows import centered
from isonb_lab.pages.charts import GREY, OKABE_ITO, points

NAMED = 3


def dimensions(cloud: Tensor, reference: Tensor, *, name: str, reference_name: str) -> Any:
    """Mean against standard deviation of every dimension, those of ``reference`` in grey.

    Numbers name the three dimensions of ``cloud`` that add most to its mean cosine.
    """
    both = {name: cloud, reference_name: reference}
    table = pd.concat(
        [
            pd.DataFrame({"mean": x.mean(0).tolist(), "spread": x.std(0).tolist(), "cloud": key})
            for key, x in both.items()
        ]
    ).round(4)
    strongest = cosine_contributions(cloud).topk(NAMED).indices.tolist()
    named = table.head(cloud.shape[-1]).iloc[strongest].assign(dim=strongest)
    axes: dict[str, Any] = {
        "x": alt.X("mean:Q", title="mean over points"),
        "y": alt.Y("spread:Q", title="standard deviation"),
    }
    colors = alt.Scale(domain=list(both), range=[OKABE_ITO["vermillion"], GREY])
    shape = alt.Shape("cloud:N", title=None, scale=alt.Scale(domain=list(both)))
    dots = points(table).encode(alt.Color("cloud:N", title=None, scale=colors), shape, **axes)
    text = alt.Chart(named).mark_text(dy=-10, fontWeight="bold", aria=False, color=OKABE_ITO["vermillion"])
    return alt.layer(dots, text.encode(**axes, text="dim:N")).properties(width=520, height=260)


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
    same: dict[str, Any] = {"title": None, "legend": alt.Legend(columns=5)}
    group: dict[str, Any] = {"color": alt.Color("group:N", **same), "shape": alt.Shape("group:N", **same)}
    along = alt.Scale(domain=[-0.2, 1.2], nice=False)
    across = alt.Scale(domain=[-0.8, 0.8], nice=False)
    marks = points(frame).transform_filter(keep)
    left = marks.encode(
        alt.X("a:Q", title="along the mean", scale=along, axis=alt.Axis(tickCount=5)),
        alt.Y("b:Q", title="strongest direction", scale=across),
        **group,
    )
    right = marks.encode(
        alt.X("x:Q", title="first direction", scale=across, axis=alt.Axis(values=[-0.8, -0.4, 0, 0.4, 0.8])),
        alt.Y("y:Q", title="second direction", scale=across),
        **group,
    )
    origin = alt.Chart(pd.DataFrame({"a": [0], "b": [0]})).encode(alt.X("a:Q"), alt.Y("b:Q"))
    cross = origin.mark_point(shape="cross", filled=True, size=140, color=GREY, aria=False)
    return alt.hconcat(alt.layer(left, cross).properties(**SIZE), right.properties(**SIZE))


def cosine_squares(sentences: list[str], views: dict[str, Tensor]) -> Any:
    """The cosines between a few sentences as a square a view, each with its number; point at one to read the pair."""
    rows = [
        {"view": view, "row": a, "column": str(j + 1), "other": b, "cosine": round(float(matrix[i, j]), 2)}
        for view, matrix in views.items()
        for i, a in enumerate(sentences)
        for j, b in enumerate(sentences)
        if i != j
    ]
    named = {text: f"{number}  {text}" for number, text in enumerate(sentences, start=1)}
    table = pd.DataFrame(rows).replace({"row": named})
    panels = []
    for at, view in enumerate(views):
        axis = alt.Axis(labelLimit=215, title=None) if at == 0 else None
        base = alt.Chart(table[table["view"] == view], title=view, width=216, height=216).encode(
            alt.X("column:N", title=None, axis=alt.Axis(labelAngle=0)),
            alt.Y("row:N", axis=axis),
            tooltip=["row:N", alt.Tooltip("other:N", title="and"), "cosine:Q"],
        )
        shade = alt.Color("cosine:Q", scale=alt.Scale(scheme="blueorange", domain=[-1, 1]), legend=None)
        label = base.transform_calculate(word="replace(format(datum.cosine, '.2f'), '0.', '.')")  # or numbers touch
        label = label.mark_text(aria=False, fontSize=10.5, color="black").encode(text="word:N")
        panels.append(base.mark_rect().encode(shade) + label)
    return alt.hconcat(*panels)


def cosine_histogram(views: dict[str, Tensor], topics: list[str]) -> Any:
    """The cosines of all pairs, a panel a view, pairs of one topic apart from the others; columns hold shares."""
    i, j = torch.triu_indices(len(topics), len(topics), 1)
    same = torch.tensor([topics[a] == topics[b] for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    edges = torch.linspace(-1, 1, 41, dtype=torch.float64)
    rows = []
    for view, matrix in views.items():
        for kind, which in {"one topic": same, "two topics": ~same}.items():
            counts = torch.histogram(matrix[i, j][which].double().clamp(-1, 1), edges).hist
            shares = (counts / counts.sum()).tolist()
            rows += [
                {"view": view, "pairs": kind, "from": low, "to": high, "share": round(share, 4)}
                for low, high, share in zip(edges[:-1].tolist(), edges[1:].tolist(), shares, strict=True)
            ]
    chart = alt.Chart(pd.DataFrame(rows).round(4), width=250, height=190).mark_bar(opacity=0.6)
    chart = chart.encode(
        alt.X(
            "from:Q",
            bin="binned",
            title="cosine",
            scale=alt.Scale(domain=[-1, 1]),
            axis=alt.Axis(values=[-0.5, 0, 0.5, 1]),
        ),
        alt.X2("to:Q"),
        alt.Y("share:Q", title="share of pairs", stack=None, axis=alt.Axis(format="%")),
        alt.Color("pairs:N", title=None),
        tooltip=["pairs", "from", "to", alt.Tooltip("share:Q", format=".1%")],
    )
    return chart.facet(alt.Facet("view:N", title=None, sort=list(views)))
