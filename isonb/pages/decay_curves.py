"""What SoftDecay makes of singular values: its function, and a spectrum before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from isonb.pages.charts import DASHES, GREY, OKABE_ITO, option_menu, slider

__all__ = ["decay_curves"]

MODES = {"code": "code (values below |alpha| turn)", "safe": "safe (they become 0)"}
WHEN = ["before", "after"]


def _decayed(s: str) -> str:
    """The function at ``s`` as an expression; null where it isn't defined."""
    inside = f"(1 - alpha * ({s} + alpha) + 1e-7)"
    raw = f"(abs(alpha) < 1e-9 ? {s} : {inside} > 0 ? -log({inside}) / alpha : null)"
    return f"(kind == '{MODES['code']}' ? {raw} : (alpha <= -1 || alpha > 0) ? null : max({raw}, 0))"


def decay_curves(spectrum: Sequence[float], alpha: float = -0.6) -> Any:
    """Curve of f from 0 to 6, and ``spectrum`` over its largest value by rank; a slider for alpha, a menu of modes."""
    places = np.round(np.concatenate([np.linspace(0, 1, 41), np.linspace(1.1, 6, 50)]), 3)
    near = alt.Chart(pd.DataFrame({"s": places}), width=225, height=230)
    near = near.transform_calculate(f=_decayed("datum.s"), line="'f'").transform_filter(
        "isValid(datum.f) && datum.f > -4"
    )
    curve = near.mark_line(clip=True, color=OKABE_ITO["vermillion"]).encode(  # as "after" on the right
        alt.X("s:Q", title="singular value s", scale=alt.Scale(domain=[0, 6], nice=False)),
        alt.Y("f:Q", title="f(s)", scale=alt.Scale(domain=[-4, 6], nice=False)),
    )
    still = alt.Chart(pd.DataFrame({"s": [0, 6], "f": [0, 6]})).encode(x="s:Q", y="f:Q")
    still = still.mark_line(strokeDash=DASHES[1], color=OKABE_ITO["blue"], aria=False)  # as "before"
    zero = alt.Chart().mark_rule(color=GREY, strokeWidth=1, aria=False).encode(y=alt.datum(0))
    ranked = pd.DataFrame({"rank": range(1, len(spectrum) + 1), "s": list(spectrum)})
    top = float(ranked["s"].iloc[0])
    ranked = ranked[ranked["s"] > 1e-6 * top].round(5)
    after = alt.Chart(ranked, width=225, height=230)
    after = after.transform_calculate(top=_decayed(f"{top:.5f}"), raw=_decayed("datum.s"))
    after = after.transform_filter("isValid(datum.top) && isValid(datum.raw)")
    after = after.transform_calculate(share="datum.raw / datum.top", which="'after'").mark_line(clip=True)
    before = alt.Chart(ranked).transform_calculate(share=f"datum.s / {top:.5f}", which="'before'")
    channels = (
        alt.X("rank:Q", title="rank of the singular value", scale=alt.Scale(type="log", nice=False)),
        alt.Y("share:Q", title="over the largest", scale=alt.Scale(domain=[-0.3, 1], nice=False)),
        alt.Color("which:N", title=None, scale=alt.Scale(domain=WHEN)),
        alt.StrokeDash("which:N", title=None, scale=alt.Scale(domain=WHEN, range=DASHES[1::-1])),
    )
    both = alt.layer(before.mark_line(clip=True).encode(*channels), after.encode(*channels))
    controls = (
        slider("alpha", -1.5, 0.3, step=0.05, value=alpha, label="alpha"),
        option_menu("kind", list(MODES.values()), label="mode"),
    )
    return ((still + zero + curve) | both).add_params(*controls)
