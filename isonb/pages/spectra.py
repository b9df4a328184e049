"""A spectrum as bars by rank, divided at a threshold."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from isonb.pages.charts import OKABE_ITO

__all__ = ["divided_spectrum"]


def divided_spectrum(rows: pd.DataFrame, facts: pd.DataFrame, *, top: float, keep: str = "true") -> Any:
    """Bars of ``variance`` by ``direction``, coloured by their ``side`` ("above" or "below") of the dashed ``limit``.

    ``facts`` has the ``limit`` and a line of text, ``told``; the axis ends at ``top``. The expression ``keep`` filters
    both tables.
    """
    sides = alt.Scale(domain=["above", "below"], range=[OKABE_ITO["vermillion"], OKABE_ITO["blue"]])
    bars = alt.Chart(rows, width=420, height=220).transform_filter(keep).mark_bar()
    bars = bars.encode(
        alt.X("direction:O", title="principal direction", axis=alt.Axis(labelAngle=0)),
        alt.Y("variance:Q", scale=alt.Scale(domain=[0, top], nice=False, clamp=True)),
        alt.Color("side:N", title="threshold", scale=sides),
        tooltip=["direction", "variance", "side"],
    )
    fact = alt.Chart(facts).transform_filter(keep)
    line = fact.mark_rule(strokeDash=[5, 3], aria=False).encode(alt.Y("limit:Q", title="variance"))
    told = fact.mark_text(align="right", baseline="top", fontSize=13).encode(alt.Text("told:N"))
    return bars + line + told.encode(x=alt.value(418), y=alt.value(2))
