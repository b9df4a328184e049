"""Pictures of *The dial* from the recorded tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from isonb_lab.pages import dash
from isonb_lab.pages.evidence import with_interval
from isonb_lab.papers import dial as plan
from isonb_lab.papers.dial_sets import over_learned
from isonb_lab.papers.hypotheses import rows_with

KINDS_OF_MODEL = {
    "smollm2": "language model",
    "minilm": "trained for the cosine",
    "mpnet": "trained for the cosine",
    "tiny": "small encoder",
}


def curves(tables: Mapping[str, pd.DataFrame], readers: Sequence[str]) -> Any:
    """Gain over the vectors as they are at each place, one panel a reader, one line a layer, with its band."""
    scores = tables["scores"]
    rows = rows_with(scores, set="all", fit="own", pool="mean", turn="whitening")
    rows = rows[rows["reader"].isin(readers)]
    shown = rows[(rows["encoder"] == "smollm2") | (rows["layer"] == rows.groupby("encoder")["layer"].transform("max"))]
    shown = shown.assign(vectors=shown["encoder"] + ", layer " + shown["layer"].astype(str))
    return _gains(shown, alt.X("strength:Q", title="place of the dial, p"), "vectors", readers, 200)


def parts(tables: Mapping[str, pd.DataFrame], reader: str) -> Any:
    """What each part of the turn adds to one reader's score, layer by layer, in both orders."""
    rows = rows_with(tables["parts"], encoder="smollm2", reader=reader)
    rows = rows.assign(layer="layer " + rows["layer"].astype(str))
    layers = [f"layer {layer}" for layer in sorted({int(item.split()[1]) for item in rows["layer"]})]
    bars = alt.Chart(rows).mark_point(filled=True, size=60)
    bars = bars.encode(
        alt.X("gain:Q", title="added to the score", axis=alt.Axis(tickCount=4)),
        alt.Y("part:N", title=None, sort=list(plan.PARTS)),
        alt.Color("order:N", title=None),
        alt.Shape("order:N", title=None),
    )
    place, stroke = alt.Y("part:N", sort=list(plan.PARTS)), alt.Stroke("order:N", legend=None)
    ends = alt.Chart(rows).mark_rule().encode(place, stroke, x="gain_low:Q", x2="gain_high:Q")
    panels = (ends + bars).properties(width=230, height=130)
    return panels.facet(alt.Facet("layer:N", title=None, sort=layers), columns=2)


def first_token(tables: Mapping[str, pd.DataFrame]) -> Any:
    """How loud the first token is by layer, and similarity pooled with it and without it."""
    rows = tables["depth"][tables["depth"]["encoder"] == "smollm2"]
    x = alt.X("layer:Q", title="layer")
    y = alt.Y("first_token_ratio:Q", title="norm, first over others", scale=alt.Scale(type="log"))
    ratio = alt.Chart(rows, height=150).mark_line(point=True).encode(x, y)
    pools = {"stsb_test mean": "with the first token", "stsb_test without first": "without it"}
    long = rows.rename(columns=pools).melt("layer", list(pools.values()), "pooled", "score")
    y, color = alt.Y("score:Q", title="Spearman, STS-B"), alt.Color("pooled:N", title=None)
    scored = alt.Chart(long, height=170).mark_line(point=True).encode(x, y, color, dash("pooled:N", title=None))
    return alt.vconcat(ratio, scored)


def fit_sizes(scores: pd.DataFrame, readers: Sequence[str], encoder: str, width: int) -> Any:
    """Gain over raw by how many texts of Wikipedia a turn was fitted on, a panel a reader, a line a place."""
    rows = rows_with(scores, fit="wikipedia", encoder=encoder, pool="mean", turn="whitening")
    rows = rows[(rows["p"] >= plan.PART_PLACE - 0.5) & rows["reader"].isin(readers)]
    rows = rows.assign(ratio=rows["texts"] / width, place="p = " + rows["p"].map("{:g}".format))
    x = alt.X("ratio:Q", title="texts of the fit for each dimension", scale=alt.Scale(type="log"))
    return _gains(rows, x, "place", readers, 230)


def _gains(rows: pd.DataFrame, x: alt.X, by: str, readers: Sequence[str], width: int) -> Any:
    """Gain over raw with its band, a panel a reader, a line for each value of the column ``by``."""
    base = alt.Chart(rows).encode(x=x)
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("gain_low:Q", title="gain over raw"), y2="gain_high:Q", fill=alt.Fill(f"{by}:N", legend=None)
    )
    line = base.mark_line(point=True).encode(
        y="gain:Q", color=alt.Color(f"{by}:N", title=None), strokeDash=dash(f"{by}:N", title=None)
    )
    panels = (band + line).properties(width=width, height=170)
    panels = panels.facet(alt.Facet("reader:N", title=None, sort=list(readers)), columns=2)
    return panels.resolve_scale(y="independent")


def row(
    table: pd.DataFrame,
    reader: str,
    *,
    encoder: str = "smollm2",
    layer: int = 15,
    fit: str = "own",
    pool: str = "mean",
    **where: Any,
) -> pd.Series[Any]:
    """The row of one reader, encoder, layer, fit and pool in a recorded table; ``where``: other columns."""
    return rows_with(table, reader=reader, encoder=encoder, layer=layer, fit=fit, pool=pool, **where).iloc[0]


def interval(row: pd.Series[Any], name: str = "gain", digits: int = 3) -> str:
    """A difference with its 95% interval."""
    return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"], digits=digits)


def best_words(row: pd.Series[Any]) -> str:
    """The best place with its interval."""
    place = "raw" if row["best_turn"] == "raw" else f"{row['best']:g}"
    return f"{place} ({round(row['best_low'], 2):g} to {round(row['best_high'], 2):g})"


def at(scores: pd.DataFrame, reader: str, turn: str, strength: float, of: str = "all", **where: Any) -> pd.Series[Any]:
    """What one reader made of one turn, on a set or on all of them; ``where`` as in :func:`row`."""
    return row(scores, reader, turn=turn, strength=strength, set=of, **where)


def gains_by_layer(scores: pd.DataFrame, layers: Mapping[str, Sequence[int]]) -> list[dict[str, str]]:
    """What p = 0.75 gives to some layers of some encoders, one row a reader, over the mean-pooled vectors as they are.

    Not for retrieval: its fit held the questions that it was tried on, and its texts were cut. Of vectors without the
    first token the difference to those with it has no recorded interval.
    """
    place = {"turn": "whitening", "strength": plan.PART_PLACE, "fit": "own", "pool": "mean"}
    of_sets = over_learned(rows_with(scores, **place)).set_index(["encoder", "layer", "reader"])
    output = []
    for encoder, layer in ((encoder, layer) for encoder, some in layers.items() for layer in some):
        for reader in ("similarity", "threshold", "neighbours", "linear head"):
            raw = at(scores, reader, *plan.RAW, encoder=encoder, layer=layer)
            gained, without = (
                at(scores, reader, "whitening", plan.PART_PLACE, encoder=encoder, layer=layer, pool=pool)
                for pool in plan.POOLS
            )
            cell = (encoder, layer, reader)
            learned = of_sets.loc[cell] if cell in of_sets.index else None
            output.append(
                {
                    "model": f"{KINDS_OF_MODEL[encoder]} ({encoder}), layer {layer}",
                    "reader": reader,
                    f"p = {plan.PART_PLACE}": interval(gained),
                    "over learned sets": "" if learned is None else f"{interval(learned)}, {learned['sets']}",
                    f"without the first token, p = {plan.PART_PLACE}": f"{without['score'] - raw['score']:+z.3f}",
                }
            )
    return output


def tables() -> dict[str, pd.DataFrame]:
    """The recorded tables that the pictures are drawn from."""
    return {name: plan.read(name) for name in ("scores", "best", "parts", "depth", "spectra", "classes")}
