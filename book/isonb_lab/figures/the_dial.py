"""Pictures of *The dial*: a slider that turns a real cloud, in a page without a kernel, from the recorded tables."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import torch

from isonb_lab.data.corpus import sentences
from isonb_lab.pages import CLOUD, dash
from isonb_lab.pages.evidence import with_interval
from isonb_lab.papers import dial as plan

SCRIPT = Path(__file__).with_suffix(".js")
SHOWN = {"smollm2": (15, "a language model (smollm2, middle layer)"), "minilm": (6, "a sentence encoder (minilm)")}
KINDS_OF_MODEL = {"smollm2": "language model", "minilm": "trained for the cosine", "tiny": "small encoder"}
CURVES = {
    "similarity": "similarity (Spearman, eight sets)",
    "neighbours": "10 neighbours (accuracy)",
    "linear head": "linear head (accuracy)",
}
CLOUD_WORDS = (
    "The vectors of 310 sentences along the two leading directions, coloured by topic, with a cross at the origin. As "
    "they are, those of the language model lie on a line far from the origin; turned towards round, topics come apart."
)
CURVE_WORDS = (
    "Three curves of scores over the place of the dial, with bands, and a dot on each at the place of the slider: "
    "similarity, neighbours and linear head."
)
ORDER: tuple[tuple[str, float], ...] = (
    *(("whitening", p) for p in plan.PLACES if p < 0),
    plan.RAW,
    *(("whitening", p) for p in plan.PLACES if p >= 0),
)
NAMES = {-1.0: "needle (p = -1)", 0.0: "centred (p = 0)", 1.0: "round (p = 1)", 2.0: "beyond round (p = 2)"}


def place_name(turn: tuple[str, float]) -> str:
    """A place of the dial in words.

    >>> place_name(("raw", 0.0)), place_name(("whitening", 0.5))
    ('as it is', 'p = 0.5')
    """
    return "as it is" if turn == plan.RAW else NAMES.get(turn[1], f"p = {turn[1]:g}")


def curve(scores: pd.DataFrame, encoder: str, layer: int, reader: str) -> list[list[float]]:
    """Score, and the ends of its band, at each place: the band is that of the gain over the vectors as they are."""
    rows = scores[(scores["encoder"] == encoder) & (scores["layer"] == layer) & (scores["reader"] == reader)]
    rows = rows[(rows["pool"] == "mean") & (rows["fit"] == "own") & (rows["set"] == "all")]
    found = rows.set_index(["turn", "strength"])
    raw = found.loc[plan.RAW, "score"]
    return [
        [round(float(value), 4) for value in (row["score"], raw + row["gain_low"], raw + row["gain_high"])]
        for row in (found.loc[turn] for turn in ORDER)
    ]


def data(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """What the script of the page reads."""
    corpus = sentences()
    topics = sorted({sentence.topic for sentence in corpus})
    encoders: list[dict[str, Any]] = []
    for encoder, (layer, name) in SHOWN.items():
        curves = [curve(tables["scores"], encoder, layer, reader) for reader in CURVES]
        encoders.append({"name": name, "turns": list(_turns(tables["turned"], encoder)), "curves": curves})
    ends = [end for one in encoders for each in one["curves"] for row in each for end in row]
    return {
        "texts": [sentence.text for sentence in corpus],
        "topics": [topics.index(sentence.topic) for sentence in corpus],
        "picks": plan.picks(),
        "places": [{"name": place_name(turn), "tick": "raw" if turn == plan.RAW else f"{turn[1]:g}"} for turn in ORDER],
        "encoders": encoders,
        "low": round(min(ends) - 0.02, 3),
        "high": round(max(ends) + 0.02, 3),
    }


def _turns(turned: pd.DataFrame, encoder: str) -> Iterator[dict[str, Any]]:
    """The recorded clouds of an encoder, place by place."""
    rows = turned[turned["encoder"] == encoder].set_index(["turn", "strength"])
    for turn in ORDER:
        row = rows.loc[turn]
        made = {name: list(map(int, row[name])) for name in ("x", "y", "zero", "near")}
        near = [made["near"][at : at + plan.NEAR] for at in range(0, len(made["near"]), plan.NEAR)]
        yield {**made, "near": near, "isoscore": float(row["isoscore"]), "mean_cosine": float(row["mean_cosine"])}


def dial(tables: Mapping[str, pd.DataFrame]) -> str:
    """The dial as HTML: its data, its controls, two pictures, and a list."""
    made = data(tables)
    packed = json.dumps(made, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    menu = "".join(
        f'<option value="{at}">{html.escape(one["name"])}</option>' for at, one in enumerate(made["encoders"])
    )
    asked = "".join(
        f'<option value="{at}">{html.escape(made["texts"][row])}</option>' for at, row in enumerate(made["picks"])
    )
    legend = "".join(
        f'<span class="isonb-key curve-{at}">{html.escape(name)} <b class="isonb-score"></b></span>'
        for at, name in enumerate(CURVES.values())
    )
    start = ORDER.index(plan.RAW)
    return (
        '<div class="isonb-dial" role="group" aria-label="The dial: one cloud of sentences, turned">'
        f"<label>Vectors of <select>{menu}</select></label>"
        f'<label>The dial <input type="range" min="0" max="{len(ORDER) - 1}" step="1" value="{start}"> '
        '<output></output></label><p class="isonb-told" aria-live="polite"></p><div class="isonb-panels">'
        f'<svg viewBox="-1060 -1060 2120 2120" role="img" aria-label="{CLOUD_WORDS}"></svg>'
        f'<div><svg viewBox="0 0 424 304" role="img" aria-label="{CURVE_WORDS}"></svg><p>{legend}</p></div></div>'
        f'<label>Nearest to <select>{asked}</select></label><p class="isonb-chosen"></p><ol></ol>'
        f'<script type="application/json">{packed}</script><script>{SCRIPT.read_text(encoding="utf-8")}</script></div>'
    )


class Dial:
    """The dial, for a notebook or a page."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        self.html = dial(tables)

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return "The dial: a slider over a cloud of sentences, three curves, and the nearest sentences of one"


def curves(tables: Mapping[str, pd.DataFrame], readers: Sequence[str]) -> alt.Chart:
    """Gain over the vectors as they are at each place, one panel a reader, one line a layer, with its band."""
    scores = tables["scores"]
    rows = scores[(scores["set"] == "all") & (scores["fit"] == "own") & (scores["pool"] == "mean")]
    rows = rows[(rows["turn"] == "whitening") & rows["reader"].isin(readers)]
    shown = rows[(rows["encoder"] == "smollm2") | (rows["layer"] == rows.groupby("encoder")["layer"].transform("max"))]
    shown = shown.assign(vectors=shown["encoder"] + ", layer " + shown["layer"].astype(str))
    base = alt.Chart(shown).encode(x=alt.X("strength:Q", title="place of the dial, p"))
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("gain_low:Q", title="gain over raw"), y2="gain_high:Q", fill=alt.Fill("vectors:N", legend=None)
    )
    line = base.mark_line(point=True).encode(
        y="gain:Q", color=alt.Color("vectors:N", title=None), strokeDash=dash("vectors:N", title=None)
    )
    panels: alt.Chart = (
        (band + line)
        .properties(width=200, height=170)
        .facet(alt.Facet("reader:N", title=None, sort=list(readers)), columns=2)
        .resolve_scale(y="independent")
    )
    return panels


def parts(tables: Mapping[str, pd.DataFrame], reader: str) -> alt.Chart:
    """What each part of the turn adds to one reader's score, layer by layer, in both orders."""
    rows = tables["parts"]
    rows = rows[(rows["encoder"] == "smollm2") & (rows["reader"] == reader)]
    rows = rows.assign(layer="layer " + rows["layer"].astype(str))
    layers = [f"layer {layer}" for layer in sorted({int(one.split()[1]) for one in rows["layer"]})]
    bars = (
        alt.Chart(rows)
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("gain:Q", title="added to the score"),
            y=alt.Y("part:N", title=None, sort=list(plan.PARTS)),
            color=alt.Color("order:N", title=None),
            shape=alt.Shape("order:N", title=None),
        )
    )
    ends = (
        alt.Chart(rows)
        .mark_rule()
        .encode(
            x="gain_low:Q",
            x2="gain_high:Q",
            y=alt.Y("part:N", sort=list(plan.PARTS)),
            stroke=alt.Stroke("order:N", legend=None),
        )
    )
    panels: alt.Chart = (
        (ends + bars).properties(width=230, height=130).facet(alt.Facet("layer:N", title=None, sort=layers), columns=2)
    )
    return panels


def first_token(tables: Mapping[str, pd.DataFrame]) -> alt.VConcatChart:
    """How loud the first token is by layer, and similarity pooled with it and without it."""
    rows = tables["depth"][tables["depth"]["encoder"] == "smollm2"]
    x = alt.X("layer:Q", title="layer")
    ratio = (
        alt.Chart(rows)
        .mark_line(point=True)
        .encode(x=x, y=alt.Y("first_token_ratio:Q", title="norm, first over others", scale=alt.Scale(type="log")))
    )
    pools = {"stsb_test mean": "with the first token", "stsb_test without first": "without it"}
    long = rows.rename(columns=pools).melt("layer", list(pools.values()), "pooled", "score")
    scored = (
        alt.Chart(long)
        .mark_line(point=True)
        .encode(
            x=x,
            y=alt.Y("score:Q", title="Spearman, STS-B"),
            color=alt.Color("pooled:N", title=None),
            strokeDash=dash("pooled:N", title=None),
        )
    )
    return alt.vconcat(ratio.properties(height=150), scored.properties(height=170))


def cloud(seen: torch.Tensor, reached: Mapping[str, float | None]) -> alt.Chart:
    """A cloud along two directions (n, 2), with the isotropy it reached above."""
    words = ", ".join(f"{name} {value:.2f}" for name, value in reached.items() if value is not None)
    title = alt.Title(textwrap.wrap(words, 60), fontSize=12)
    frame = pd.DataFrame(seen.numpy(), columns=["first", "second"])
    chart: alt.Chart = (
        alt.Chart(frame, title=title)
        .mark_point(**CLOUD)
        .encode(x=alt.X("first:Q", title="first direction"), y=alt.Y("second:Q", title="second direction"))
    )
    return chart


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
    wanted = pd.Series({"reader": reader, "encoder": encoder, "layer": layer, "fit": fit, "pool": pool, **where})
    return table[(table[wanted.index] == wanted).all(axis=1)].iloc[0]


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


def advice(scores: pd.DataFrame, layers: Mapping[str, Sequence[int]], digits: int = 3) -> list[dict[str, str]]:
    """What to do with some layers of some encoders, one row a reader.

    Not for retrieval: its fit held the questions that it was tried on, and its texts were cut.
    """
    made = []
    for encoder, layer in ((encoder, layer) for encoder, some in layers.items() for layer in some):
        for reader in ("similarity", "threshold", "neighbours", "linear head"):
            gained, without = (
                at(scores, reader, "whitening", plan.PART_PLACE, encoder=encoder, layer=layer, pool=pool)
                for pool in plan.POOLS
            )
            made.append(
                {
                    "model": f"{KINDS_OF_MODEL[encoder]} ({encoder}), layer {layer}",
                    "reader": reader,
                    "what to do": _to_do(gained, without),
                    f"p = {plan.PART_PLACE}": interval(gained, digits=digits),
                    f"without the first token, p = {plan.PART_PLACE}": interval(without, digits=digits),
                }
            )
    return made


def _to_do(gained: pd.Series[Any], without: pd.Series[Any]) -> str:
    """What the gains of one turn with the first token and without it advise."""
    if gained["gain_low"] > 0:
        return f"turn, p = {plan.PART_PLACE}"
    if without["gain_low"] > 0:
        return f"leave the first token out; then turn, p = {plan.PART_PLACE}"
    return "leave it" if gained["gain_high"] < 0 else "no clear gain: leave it"


def tables() -> dict[str, pd.DataFrame]:
    """The recorded tables that the pictures are drawn from."""
    return {name: plan.read(name) for name in ("scores", "best", "parts", "turned", "depth", "spectra", "classes")}
