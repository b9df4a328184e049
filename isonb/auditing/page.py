"""What the page of an audit has and a screen hasn't: its pictures, and its words explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from isonb.auditing.measured import Layer
from isonb.auditing.unrelated import Unrelated
from isonb.errors import needs
from isonb.measures.registry import MEASURES, titles
from isonb.runtime.told import Columns

SHOWN = titles("mean_cosine", "isoscore", "participation_ratio_unbiased", "two_nn")  # of each layer
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#7f7f7f"
WORDS = (
    ("cosine", "how alike two vectors point: 1 the same way, 0 across, -1 opposite"),
    ("floor", "the cosine that 1% of unrelated pairs pass; a score below it says nothing"),
    ("unrelated pair", "two rows of different clusters of neighbours; all pairs where there are no clusters"),
    ("centred", "after the mean of all rows is subtracted"),
    ("95% interval", "what another sample of rows would give in 19 of 20 cases (jackknife over ten groups)"),
    ("half the rows", "the value of half as many rows; a measure that moves says less about the model"),
    ("Gaussian", "what a round cloud of as many rows and dimensions would read"),
    ("unsure", "half the rows read something else, or they are too few for the dimensions: no value is given"),
    ("hub", "a row that is among the ten nearest of far more rows than chance would allow"),
    ("fault, warning, note", "numbers can't be trusted; look at it before use; good to know"),
    ("percentile", "how many of 100 random pairs are less alike than the threshold"),
    ("true and false matches", "shares of the pairs that match, and of those that don't, above the threshold"),
    ("centring", "subtract the mean: random cosines go to 0, the spread stays"),
    ("all-but-the-top, k", "subtract the mean, and leave out the k directions of largest variance"),
    ("whitening in part", "make the variances more even, by a quarter of the way to all alike"),
    ("SoftDecay", "shrink the largest singular values"),
)


def can_draw() -> bool:
    """Whether charts can be made into pictures here."""
    return all(find_spec(name) for name in ("altair", "pandas", "vl_convert"))


def cosine_chart(histogram: Sequence[tuple[float, int, int]], unrelated: Unrelated | None) -> Any:
    """Histograms of the cosines of random pairs, unrelated and related ones apart, and a line at the floor.

    Where the floor is withheld all pairs are in one histogram, with a dashed line at both ends that it lies between.
    """
    with needs("Audit.plot", "audit"):
        import altair as alt
        import pandas as pd
    width = histogram[1][0] - histogram[0][0]
    split = unrelated is not None and bool(unrelated.related)
    kinds = ["unrelated pairs", "related pairs"] if split else ["random pairs"]
    rows = [
        {"low": low, "high": low + width, "pairs": counts[i], "kind": kind}
        for low, *counts in histogram
        for i, kind in enumerate(kinds)
    ]
    ends = [] if unrelated is None else sorted({unrelated.low, unrelated.high})
    word = "the floor" if len(ends) == 1 else "the floor lies between"
    marks = [{"at": end, "word": word if end == ends[-1] else ""} for end in ends]
    first, last = histogram[0][0], histogram[-1][0]
    on_left = bool(ends) and ends[-1] < first + 0.6 * (last - first)
    across = alt.X("low:Q", bin="binned", title="cosine of two random rows", scale=alt.Scale(zero=False, nice=False))
    colour = alt.Color("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[BLUE, ORANGE][: len(kinds)]))
    panels = []
    for kind in kinds:
        frame = pd.DataFrame([row for row in rows if row["kind"] == kind])
        bars = alt.Chart(frame, title=kind).mark_bar(opacity=0.8)
        height = alt.Y("pairs:Q", title="pairs")
        layers = [bars.encode(across, alt.X2("high:Q"), height, colour)]
        if marks:
            lines = alt.Chart(pd.DataFrame(marks))
            dash = [1, 0] if len(marks) == 1 else [5, 3]
            layers.append(lines.mark_rule(strokeDash=dash).encode(alt.X("at:Q")))
            if kind == kinds[0]:
                text = lines.mark_text(align="left" if on_left else "right", dx=4 if on_left else -4, y=8).encode(
                    alt.X("at:Q"), text="word:N"
                )
                layers.append(text)
        panels.append(alt.layer(*layers).properties(width=520, height=130))
    return alt.vconcat(*panels).resolve_scale(x="shared")


def layer_chart(layers: Sequence[Layer]) -> Any:
    """The measures by layer, each with its interval, and a dashed line for an isotropic Gaussian."""
    with needs("Audit.plot", "audit"):
        import altair as alt
        import pandas as pd
    rows = [
        asdict(reading) | {"layer": layer.number, "measure": reading.name}
        for layer in layers
        for reading in layer.readings
        if reading.measure in SHOWN
    ]
    across = alt.X("layer:O", axis=alt.Axis(labelAngle=0))
    base = alt.Chart(width=230, height=150)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=True))
    dots = base.mark_line(point=True).encode(across, value)
    spans = base.mark_rule(strokeWidth=3, opacity=0.5).encode(across, alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    usual = base.mark_line(strokeDash=[5, 3], color=GREY).encode(across, alt.Y("gaussian:Q", title=None))
    panels = alt.layer(usual, spans, dots, data=pd.DataFrame(rows).round(4))
    facet = alt.Facet("measure:N", title=None, sort=list(SHOWN.values()))
    return panels.facet(facet, columns=2).resolve_scale(y="independent").resolve_axis(x="independent")


def explanations(measures: Iterable[str]) -> Columns:
    """A table of words: the measures of this report, and those of every report."""
    known = [(MEASURES[name].title, f"{MEASURES[name].sees}; from {MEASURES[name].range}") for name in measures]
    return Columns("", ["word", "meaning"], [*known, *WORDS], words=(0, 1))
