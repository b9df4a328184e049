"""Pictures of *All my scores are above 0.6* and *Your vectors*: what a threshold lets through, moved by a slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd
from torch import Tensor

from isonb_lab.pages.charts import slider


def pair_cosines(vectors: Tensor, kinds: Sequence[str], pairs: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """The columns ``pair`` (its kind) and ``cosine`` of pairs of rows."""
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    cosines = [round(float(unit[i] @ unit[j]), 3) for i, j in pairs]
    return pd.DataFrame({"cosine": cosines, "pair": list(kinds)})


def threshold_chart(scored: pd.DataFrame, *, start: float, width: int = 470, height: int = 90) -> Any:
    """A histogram a kind of pair, a line at the slider's threshold, and the share of each kind that passes it."""
    pick = slider("t", 0, 1, step=0.02, value=start, label="threshold")
    base = alt.Chart(scored, width=width, height=height)
    ticks = alt.Axis(values=[-0.2, 0, 0.2, 0.4, 0.6, 0.8, 1], format=".1f")
    bars = base.mark_bar(opacity=0.75).encode(
        alt.X("cosine:Q", title="cosine", bin=alt.Bin(step=0.04), scale=alt.Scale(domain=[-0.3, 1]), axis=ticks),
        alt.Y("count():Q", title="pairs", scale=alt.Scale(zero=True)),
        alt.Color("pair:N", legend=None),
    )
    rule = base.transform_calculate(limit="t").transform_aggregate(limit="mean(limit)", groupby=["pair"])
    rule = rule.mark_rule().encode(alt.X("limit:Q", title="cosine"))
    label = base.transform_calculate(over="datum.cosine > t ? 1 : 0")
    label = label.transform_aggregate(share="mean(over)", groupby=["pair"])
    label = label.transform_calculate(told="format(datum.share, '.1%') + ' pass'")
    label = label.mark_text(align="right", x="width", dx=-5, y=-12, fontSize=13).encode(text="told:N")
    rows = alt.layer(bars, rule, label).facet(row=alt.Row("pair:N", title=None))
    return rows.resolve_scale(y="independent").add_params(pick)
