"""The dimensions of a cloud as points: how far from zero each lies on average, and how much it varies."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
from torch import Tensor

from isonb.measures.cosine import cosine_contributions
from isonb.pages.charts import GREY, OKABE_ITO, points

__all__ = ["dimensions"]

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
    shapes = alt.Scale(domain=list(both))
    dots = points(table).encode(
        **axes,
        color=alt.Color("cloud:N", title=None, scale=colors),
        shape=alt.Shape("cloud:N", title=None, scale=shapes),
    )
    text = alt.Chart(named).mark_text(dy=-10, fontWeight="bold", aria=False, color=OKABE_ITO["vermillion"])
    return alt.layer(dots, text.encode(**axes, text="dim:N")).properties(width=520, height=260)
