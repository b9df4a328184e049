"""Pictures of *Barcodes*: a cloud in the plane at a scale r, its discs touching, beside its barcode up to r."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
from torch import Tensor

from isonb.barcodes.rips import h0_barcode, rips_barcode
from isonb_lab.pages.charts import GREY, OKABE_ITO

UNIT = 57  # pixels a unit of length, so that the discs have the right size
WIDTH = 220  # of the barcode
COLORS = alt.Scale(domain=["H0", "H1"], range=[OKABE_ITO["vermillion"], OKABE_ITO["green"]])


def bar_frame(cloud: Tensor, longest: float) -> pd.DataFrame:
    """The barcode, longest first: dimension, bar, birth and death; the infinite bar ends at ``longest``."""
    rows = []
    for dimension, (birth, death) in enumerate(rips_barcode(cloud)):
        pairs = [(0.0, longest)] * (dimension == 0) + list(zip(birth.tolist(), death.tolist(), strict=True))
        rows += [(f"H{dimension}", i, b, d) for i, (b, d) in enumerate(pairs)]
    return pd.DataFrame(rows, columns=["dimension", "bar", "birth", "death"]).round(3)


def edge_frame(cloud: Tensor, longest: float) -> pd.DataFrame:
    """Every edge not longer than ``longest``: its ends, ``length``, and whether the spanning ``tree`` has it."""
    _, result = h0_barcode(cloud, return_edges=True)
    tree = {tuple(sorted(edge)) for edge in result.tolist()}
    pairs = [(i, j) for i in range(len(cloud)) for j in range(i + 1, len(cloud))]
    rows = [
        (*cloud[i].tolist(), *cloud[j].tolist(), float((cloud[i] - cloud[j]).norm()), (i, j) in tree) for i, j in pairs
    ]
    edges = pd.DataFrame(rows, columns=["x", "y", "x2", "y2", "length", "tree"])
    return edges[edges["length"] <= longest].round(3)


def growing_discs(
    dots: pd.DataFrame, edges: pd.DataFrame, bars: pd.DataFrame, r: float | str, *, top: float, box: tuple[Any, Any]
) -> Any:
    """The points ``x``, ``y`` with discs of radius r/2 and edges up to r, beside the bars of pieces and loops up to r.

    ``r``: a number, or the name of a parameter. ``top``: the end of the scale. ``box``: (low, high) of both axes.
    """
    across, along = (alt.Scale(domain=list(ends), nice=False) for ends in box)
    size = {"width": (box[0][1] - box[0][0]) * UNIT, "height": (box[1][1] - box[1][0]) * UNIT}
    x, y = alt.X("x:Q", scale=across, axis=None), alt.Y("y:Q", scale=along, axis=None)
    plane = alt.Chart(dots, **size)
    discs = plane.transform_calculate(area=f"PI * pow({r} / 2 * {UNIT}, 2)")
    discs = discs.mark_circle(opacity=0.13, aria=False, clip=True, color=OKABE_ITO["sky"])
    cloud: Any = discs.encode(x, y, alt.Size("area:Q", scale=None))
    for which, paint, thick in (("!datum.tree", GREY, 0.7), ("datum.tree", OKABE_ITO["vermillion"], 2.8)):
        edge = alt.Chart(edges).transform_filter(f"{which} && datum.length <= {r}")
        edge = edge.mark_rule(aria=False, color=paint, strokeWidth=thick)
        cloud += edge.encode(x, y, alt.X2("x2"), alt.Y2("y2"))
    cloud += plane.mark_circle(size=34, opacity=1, color=OKABE_ITO["blue"], aria=False).encode(x, y)
    named = (("H0", "pieces"), ("H1", "loops"))
    stacks = [_stack(bars[bars["dimension"] == dimension], name, r, top) for dimension, name in named]
    return (cloud | alt.vconcat(*stacks, spacing=26)).configure_view(stroke=None)


def _stack(part: pd.DataFrame, name: str, r: float | str, top: float) -> Any:
    """The bars of one dimension, what of them has grown until r, and how many are alive there."""
    scale = alt.X("birth:Q", title="scale r", scale=alt.Scale(domain=[0, top], nice=False))
    base = alt.Chart(part, width=WIDTH, height=7 * len(part))
    row = alt.Y("bar:O", axis=None)
    whole = base.mark_bar(opacity=0.55, height=3, color=GREY, aria=False).encode(scale, alt.X2("death"), row)
    grown = base.transform_filter(f"datum.birth < {r}").transform_calculate(now=f"min(datum.death, {r})")
    color = alt.Color("dimension:N", legend=None, scale=COLORS)
    grown = grown.mark_bar(height=4, aria=False).encode(scale, alt.X2("now:Q"), row, color)
    here = alt.Chart(pd.DataFrame({"at": [0]})).transform_calculate(at=f"{r}").mark_rule(strokeDash=[4, 3])
    count = base.transform_calculate(alive=f"datum.birth <= {r} && {r} < datum.death ? 1 : 0")
    count = count.transform_aggregate(n="sum(alive)").transform_calculate(text=f"'{name}: ' + datum.n")
    text = count.mark_text(align="right", baseline="bottom", dy=-3, fontSize=13, fontWeight=600)
    label = text.encode(alt.Text("text:N"), x=alt.value(WIDTH), y=alt.value(0))
    return alt.layer(whole, grown, here.encode(alt.X("at:Q")), label)
