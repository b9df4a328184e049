"""The dial: what its plan names, the tables that were recorded, and its hypotheses, judged by the plan's own words.

What makes the tables is the recipe ``book/recipes/dial``.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.runtime.told import between
from isonb_lab.data.corpus import sentences
from isonb_lab.places import EXPERIMENTS_FOLDER, RECORDINGS_FOLDER

from .hypotheses import Answer, Judged, answers_by, rows_with

FOLDER = RECORDINGS_FOLDER / "dial"
PLAN = EXPERIMENTS_FOLDER / "dial_plan.md"
Turn = tuple[str, float]  # the family and its strength
RAW: Turn = ("raw", 0.0)
PLACES = (-1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)  # of partial whitening
PARTS = ("first token", "mean", "direction 1", "directions 2 and 3", "directions 4 to 10", "the rest")
PART_PLACE = 0.75
POOLS = ("mean", "without first")
LAYERS = {"tiny": (0, 1, 2, 3, 4), "minilm": (0, 2, 3, 4, 6), "smollm2": (0, 10, 15, 20, 30), "mpnet": (0, 4, 6, 8, 12)}
REACHED = ("isoscore", "isoscore_unbiased", "mean_cosine", "anisotropy_1", "explained_variance_3", "rbf_uniformity")
NEAR = 5  # nearest sentences of each that a menu offers
PICKS = 20
MIDDLE = (10, 15, 20)
Tables = Mapping[str, pd.DataFrame]


def read(name: str, folder: Path = FOLDER) -> pd.DataFrame:
    """A recorded table by its name."""
    return pd.read_parquet(folder / f"{name}.parquet")


def manifest() -> dict[str, Any]:
    """What made the tables: plan, weights, texts, versions, CPU minutes."""
    manifest: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def plan_digest() -> str:
    """sha256 of the plan as it is now."""
    return hashlib.sha256(PLAN.read_bytes()).hexdigest()


def plan_versions() -> frozenset[str]:
    """sha256 of the plan as it is now, and of what it was before each change that it lists."""
    return frozenset({plan_digest(), *re.findall(r"`([0-9a-f]{64})`", PLAN.read_text(encoding="utf-8"))})


@functools.cache
def picks() -> list[int]:
    """The rows of the sentences that a menu offers: those of which another one is a paraphrase or a near miss.

    >>> len(picks()), sentences()[picks()[0]].text
    (20, 'The soup needs more salt.')
    """
    rows = sentences()
    place = {sentence.id: row for row, sentence in enumerate(rows)}
    named = [place[name] for s in rows for name in (s.paraphrase_of, s.near_miss_of) if name]
    return sorted(sorted(set(named), key=lambda row: (-named.count(row), row))[:PICKS])


def towards_round(scores: pd.DataFrame, reader: str) -> pd.DataFrame:
    """What a reader makes of vectors that were turned towards round: p from 0.5 to 1, all layers and both poolings."""
    rows = rows_with(scores, reader=reader, set="all", fit="own", turn="whitening")
    return rows[rows["strength"].between(0.5, 1)]


def _rows(table: pd.DataFrame, **expected: Any) -> pd.DataFrame:
    """The rows of a table whose columns have these values; mean-pooled with the own fit unless said otherwise."""
    expected = {name: value for name, value in {"pool": "mean", "fit": "own", **expected}.items() if name in table}
    return rows_with(table, **expected).sort_values("layer")


def _middle(table: pd.DataFrame, reader: str, **expected: Any) -> pd.DataFrame:
    rows = _rows(table, encoder="smollm2", reader=reader, **expected)
    return rows[rows["layer"].isin(MIDDLE)]


def _summary(rows: pd.DataFrame, name: str = "gain") -> str:
    ends = zip(rows["layer"], rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return "; ".join(f"layer {layer}: {between(value, low, high, 3, '+')}" for layer, value, low, high in ends)


def _best_gains(reader: str, allowed: int) -> Callable[[Tables], Judged]:
    def judged(tables: Tables) -> Judged:
        rows = _middle(tables["best"], reader)
        unclear = int((rows["gain_low"] <= 0).sum())
        return unclear > allowed, unclear == 0, _summary(rows)

    return judged


def _place_is_inside(tables: Tables) -> Judged:
    rows = _middle(tables["best"], "similarity")
    lines = (f"layer {x.layer}: p = {x.best:g} ({x.best_low:g} to {x.best_high:g})" for x in rows.itertuples())
    inside = (rows["best_turn"] == "whitening") & (rows["best_low"] > 0) & (rows["best_high"] < 1)
    return bool((rows["best_high"] >= 1).any()), bool(inside.all()), "; ".join(lines)


def _over_rotation(tables: Tables) -> Judged:
    rows = _middle(tables["best"], "similarity")
    return bool((rows["over_low"] > 0).any()), bool((rows["over_high"] < 0).all()), _summary(rows, "over")


def _trained_for_the_cosine(tables: Tables) -> Judged:
    """The plan decides by ``minilm`` alone; what its words say of ``mpnet`` stands beside."""
    contradicted, expected, numbers = _at_its_best_place(tables["scores"], "minilm", 6)
    if "mpnet" in set(tables["scores"]["encoder"]):
        numbers += f". mpnet, which decides nothing here: {_at_its_best_place(tables['scores'], 'mpnet', 12)[2]}"
    return contradicted, expected, numbers


def _at_its_best_place(scores: pd.DataFrame, encoder: str, layer: int) -> Judged:
    dial = _rows(scores, encoder=encoder, layer=layer, reader="similarity", set="all", turn="whitening")
    most, ends = dial.loc[dial["gain"].idxmax()], dial[dial["strength"].isin((-1.0, 1.0))]
    lines = [
        f"p = {x.strength:g}: {between(x.gain, x.gain_low, x.gain_high, 3, '+')}"
        for x in ends.sort_values("strength").itertuples()
    ]
    small, lose = bool(most["gain"] < 0.01), bool((ends["gain_high"] < 0).all())
    numbers = "; ".join([f"most {most['gain']:+.3f} at p = {most['strength']:g}", *lines])
    return not small or bool((ends["gain_low"] > 0).any()), small and lose, numbers


def _linear_head(tables: Tables) -> Judged:
    near, round_ = (
        _middle(tables["scores"], "linear head", set="all", turn="whitening", strength=p) for p in (0.75, 1.0)
    )
    gains = bool(((near["gain"] >= 0.01) & (near["gain_low"] > 0)).any())
    expected = bool((near["gain"] < 0.01).all() and (round_["gain_high"] < 0).all())
    text = f"p = 0.75, {_summary(near)}. p = 1, {_summary(round_)}"
    return gains or bool((round_["gain_low"] > 0).any()), expected, text


def _shares(shares: Mapping[int, float]) -> str:
    return "; ".join(f"layer {layer}: {100 * share:.0f}%" for layer, share in shares.items())


def _first_token(tables: Tables) -> Judged:
    rows = _middle(tables["parts"], "similarity", order="first token first")
    token = rows[rows["part"] == "first token"].set_index("layer")["gain"]
    shares = token / rows.groupby("layer")["gain"].sum()
    return int((shares <= 0.5).sum()) >= 2, bool((shares > 0.5).all()), _shares(shares.to_dict())


def _other_text(tables: Tables) -> Judged:
    of_labels, other = (
        _middle(tables["best"], "similarity", fit=fit).set_index("layer")["gain"] for fit in ("own", "wikipedia")
    )
    shares = other / of_labels
    return bool((shares < 0.5).any()), bool((shares >= 0.5).all()), _shares(shares.to_dict())


HYPOTHESES: dict[str, Callable[[Tables], Judged]] = {
    "H1": _best_gains("similarity", 0),
    "H2": _place_is_inside,
    "H3": _over_rotation,
    "H4": _trained_for_the_cosine,
    "H5": _best_gains("neighbours", 1),
    "H6": _linear_head,
    "H7": _first_token,
    "H8": _best_gains("retrieval", 0),
    "H9": _other_text,
}


def judge(tables: Tables) -> list[Answer]:
    """Each hypothesis with its outcome, in the order of the plan: "as expected", "contradicted" or "open".

    ``tables``: scores, best and parts.
    """
    return answers_by(HYPOTHESES, tables, "as expected")
