"""The hypotheses of the plan, judged from the recorded tables by the plan's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

MIDDLE = (10, 15, 20)
Tables = Mapping[str, pd.DataFrame]
Judged = tuple[bool, bool, str]  # as expected, contradicted, and the numbers


@dataclass(frozen=True)
class Verdict:
    """``word``: "as expected", "contradicted" or "open"; ``numbers``: what it rests on, in words."""

    name: str
    word: str
    numbers: str


def _rows(table: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows of a table whose columns have these values; mean-pooled with the own fit unless said otherwise."""
    wanted = {name: value for name, value in {"pool": "mean", "fit": "own", **wanted}.items() if name in table}
    return table[(table[list(wanted)] == pd.Series(wanted)).all(axis=1)].sort_values("layer")


def _middle(table: pd.DataFrame, reader: str, **wanted: Any) -> pd.DataFrame:
    rows = _rows(table, encoder="smollm2", reader=reader, **wanted)
    return rows[rows["layer"].isin(MIDDLE)]


def _told(rows: pd.DataFrame, name: str = "gain") -> str:
    ends = zip(rows["layer"], rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return "; ".join(f"layer {layer}: {value:+.3f} ({low:+.3f} to {high:+.3f})" for layer, value, low, high in ends)


def _best_gains(reader: str, allowed: int) -> Callable[[Tables], Judged]:
    def judged(tables: Tables) -> Judged:
        rows = _middle(tables["best"], reader)
        unclear = int((rows["gain_low"] <= 0).sum())
        return unclear == 0, unclear > allowed, _told(rows)

    return judged


def _place_is_inside(tables: Tables) -> Judged:
    rows = _middle(tables["best"], "similarity")
    told = (f"layer {x.layer}: p = {x.best:g} ({x.best_low:g} to {x.best_high:g})" for x in rows.itertuples())
    inside = (rows["best_turn"] == "whitening") & (rows["best_low"] > 0) & (rows["best_high"] < 1)
    return bool(inside.all()), bool((rows["best_high"] >= 1).any()), "; ".join(told)


def _over_rotation(tables: Tables) -> Judged:
    rows = _middle(tables["best"], "similarity")
    return bool((rows["over_high"] < 0).all()), bool((rows["over_low"] > 0).any()), _told(rows, "over")


def _trained_for_the_cosine(tables: Tables) -> Judged:
    dial = _rows(tables["scores"], encoder="minilm", layer=6, reader="similarity", set="all", turn="whitening")
    most, ends = dial.loc[dial["gain"].idxmax()], dial[dial["strength"].isin((-1.0, 1.0))]
    told = [
        f"p = {x.strength:g}: {x.gain:+.3f} ({x.gain_low:+.3f} to {x.gain_high:+.3f})"
        for x in ends.sort_values("strength").itertuples()
    ]
    small, lose = bool(most["gain"] < 0.01), bool((ends["gain_high"] < 0).all())
    numbers = "; ".join([f"most {most['gain']:+.3f} at p = {most['strength']:g}", *told])
    return small and lose, not small or bool((ends["gain"] >= 0).any()), numbers


def _linear_head(tables: Tables) -> Judged:
    near, round_ = (
        _middle(tables["scores"], "linear head", set="all", turn="whitening", strength=p) for p in (0.75, 1.0)
    )
    gains = bool(((near["gain"] >= 0.01) & (near["gain_low"] > 0)).any())
    expected = bool((near["gain"] < 0.01).all() and (round_["gain"] < 0).all())
    told = f"p = 0.75, {_told(near)}. p = 1, {_told(round_)}"
    return expected, gains or bool((round_["gain"] >= 0).any()), told


def _shares(shares: Mapping[int, float]) -> str:
    return "; ".join(f"layer {layer}: {100 * share:.0f}%" for layer, share in shares.items())


def _first_token(tables: Tables) -> Judged:
    rows = _middle(tables["parts"], "similarity", order="first token first")
    token = rows[rows["part"] == "first token"].set_index("layer")["gain"]
    shares = token / rows.groupby("layer")["gain"].sum()
    return bool((shares > 0.5).all()), int((shares <= 0.5).sum()) >= 2, _shares(shares.to_dict())


def _other_text(tables: Tables) -> Judged:
    own, other = (
        _middle(tables["best"], "similarity", fit=fit).set_index("layer")["gain"] for fit in ("own", "wikipedia")
    )
    shares = other / own
    return bool((shares >= 0.5).all()), bool((shares < 0.5).any()), _shares(shares.to_dict())


HYPOTHESES: dict[str, tuple[str, Callable[[Tables], Judged]]] = {
    "H1": ("similarity gains on each middle layer", _best_gains("similarity", 0)),
    "H2": ("its best place lies between as it is and round", _place_is_inside),
    "H3": ("beyond round it loses", _over_rotation),
    "H4": ("an encoder trained for the cosine is at its best place", _trained_for_the_cosine),
    "H5": ("neighbours gain on the middle layers", _best_gains("neighbours", 1)),
    "H6": ("a linear head gains nothing and loses when round", _linear_head),
    "H7": ("more than half of the gain is the first token's", _first_token),
    "H8": ("retrieval gains as similarity does", _best_gains("retrieval", 0)),
    "H9": ("a fit on other text keeps half of the gain", _other_text),
}


def judge(tables: Tables) -> list[Verdict]:
    """Each hypothesis with its verdict, in the order of the plan; ``tables``: scores, best and parts."""
    made = []
    for name, (_, judged) in HYPOTHESES.items():
        expected, contradicted, numbers = judged(tables)
        made.append(Verdict(name, "contradicted" if contradicted else "as expected" if expected else "open", numbers))
    return made
