"""An audit as a chart; altair is imported when one is drawn."""

from __future__ import annotations

from typing import Any

from isonb.auditing.parts import Found
from isonb.auditing.words import SHOWN
from isonb.errors import needs

__all__ = ["audit_chart", "quantile_chart"]


def audit_chart(found: Found) -> Any:
    """The readings by layer with their intervals and a round cloud's dashed; of vectors, how alike random rows are."""
    return _by_layer(found) if found.layers else quantile_chart(found.scale, "cosine of two random rows")


def _by_layer(found: Found) -> Any:
    with needs("Audit.plot", "lab"):
        import altair as alt
        import pandas as pd
    rows = [
        {"layer": layer.number, "measure": r.name, "value": r.value, "low": r.low, "high": r.high, "round": r.round}
        for layer in found.layers
        for r in layer.readings
        if r.measure in SHOWN
    ]
    across = alt.X("layer:O", axis=alt.Axis(labelAngle=0))
    base = alt.Chart(width=230, height=150)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=True))
    dots = base.mark_line(point=True).encode(across, value)
    spans = base.mark_rule(strokeWidth=3, opacity=0.5).encode(across, alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    usual = base.mark_line(strokeDash=[5, 3], color="#7f7f7f").encode(across, alt.Y("round:Q", title=None))
    panels = alt.layer(usual, spans, dots, data=pd.DataFrame(rows).round(4))
    facet = alt.Facet("measure:N", title=None, sort=list(SHOWN.values()))
    return panels.facet(facet, columns=2).resolve_scale(y="independent").resolve_axis(x="independent")


def quantile_chart(scale: tuple[float, ...], name: str) -> Any:
    """Percentiles of a cosine as a curve."""
    with needs("plot", "lab"):
        import altair as alt
        import pandas as pd
    last = len(scale) - 1
    rows = pd.DataFrame({"cosine": scale, "percent below": [100 * i / last for i in range(last + 1)]})
    across = alt.X("cosine:Q", title=name, scale=alt.Scale(zero=False))
    return alt.Chart(rows.round(4), width=420, height=220).mark_line().encode(across, alt.Y("percent below:Q"))
