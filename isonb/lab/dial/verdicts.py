"""The hypotheses of the plan, judged from the recorded tables by the plan's own words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

__all__ = ["HYPOTHESES", "MIDDLE", "Verdict", "judge"]

MIDDLE = (10, 15, 20)
LAST = 6  # of minilm
Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Verdict:
    """``word``: "as expected", "contradicted" or "open"; ``numbers``: what it rests on, in words."""

    name: str
    word: str
    numbers: str


def _verdict(name: str, expected: bool, contradicted: bool, numbers: str) -> Verdict:
    word = "contradicted" if contradicted else "as expected" if expected else "open"
    return Verdict(name, word, numbers)


def _best(tables: Tables, reader: str, fit: str = "own") -> list[pd.Series]:
    best = tables["best"]
    rows = best[(best["encoder"] == "smollm2") & (best["pool"] == "mean") & (best["fit"] == fit)]
    rows = rows[(rows["reader"] == reader) & rows["layer"].isin(MIDDLE)].sort_values("layer")
    return [row for _, row in rows.iterrows()]


def _score(tables: Tables, encoder: str, layer: int, reader: str, turn: str, strength: float) -> pd.Series:
    scores = tables["scores"]
    rows = scores[(scores["encoder"] == encoder) & (scores["layer"] == layer) & (scores["reader"] == reader)]
    rows = rows[(rows["pool"] == "mean") & (rows["fit"] == "own") & (rows["set"] == "all")]
    return rows[(rows["turn"] == turn) & (rows["strength"] == strength)].iloc[0]


def _gains(rows: list[pd.Series], name: str = "gain") -> str:
    return "; ".join(
        f"layer {row['layer']}: {row[name]:+.3f} [{row[f'{name}_low']:+.3f}, {row[f'{name}_high']:+.3f}]"
        for row in rows
    )


def _gain_is_clear(name: str, reader: str, allowed: int) -> Callable[[Tables], Verdict]:
    def judged(tables: Tables) -> Verdict:
        rows = _best(tables, reader)
        unclear = sum(row["gain_low"] <= 0 for row in rows)
        return _verdict(name, unclear == 0, unclear > allowed, _gains(rows))

    return judged


def _place_is_inside(tables: Tables) -> Verdict:
    rows = _best(tables, "similarity")
    told = "; ".join(
        f"layer {row['layer']}: p = {row['best']:g} [{row['best_low']:g}, {row['best_high']:g}]" for row in rows
    )
    inside = all(row["best_turn"] == "whitening" and row["best_low"] > 0 and row["best_high"] < 1 for row in rows)
    return _verdict("H2", inside, any(row["best_high"] >= 1 for row in rows), told)


def _over_rotation(tables: Tables) -> Verdict:
    rows = _best(tables, "similarity")
    lost = all(row["over_high"] < 0 for row in rows)
    return _verdict("H3", lost, any(row["over_low"] > 0 for row in rows), _gains(rows, "over"))


def _trained_for_the_cosine(tables: Tables) -> Verdict:
    scores = tables["scores"]
    rows = scores[(scores["encoder"] == "minilm") & (scores["layer"] == LAST) & (scores["reader"] == "similarity")]
    rows = rows[(rows["pool"] == "mean") & (rows["fit"] == "own") & (rows["set"] == "all")]
    dial = rows[rows["turn"] == "whitening"]
    most, ends = dial.loc[dial["gain"].idxmax()], dial[dial["strength"].isin((-1.0, 1.0))]
    told = f"most {most['gain']:+.3f} at p = {most['strength']:g}; " + "; ".join(
        f"p = {row['strength']:g}: {row['gain']:+.3f} [{row['gain_low']:+.3f}, {row['gain_high']:+.3f}]"
        for _, row in ends.iterrows()
    )
    lose = bool((ends["gain_high"] < 0).all())
    return _verdict("H4", most["gain"] < 0.01 and lose, most["gain"] >= 0.01 or bool((ends["gain"] >= 0).any()), told)


def _linear_head(tables: Tables) -> Verdict:
    rows = {p: [_score(tables, "smollm2", x, "linear head", "whitening", p) for x in MIDDLE] for p in (0.75, 1.0)}
    gains = [row["gain"] >= 0.01 and row["gain_low"] > 0 for row in rows[0.75]]
    no_loss = [row["gain"] >= 0 for row in rows[1.0]]
    expected = all(row["gain"] < 0.01 for row in rows[0.75]) and all(row["gain"] < 0 for row in rows[1.0])
    told = f"p = 0.75, {_gains(rows[0.75])}. p = 1, {_gains(rows[1.0])}"
    return _verdict("H6", expected, any(gains) or any(no_loss), told)


def _first_token(tables: Tables) -> Verdict:
    parts = tables["parts"]
    rows = parts[(parts["encoder"] == "smollm2") & (parts["reader"] == "similarity") & parts["layer"].isin(MIDDLE)]
    rows = rows[rows["order"] == "first token first"]
    shares = {}
    for layer, steps in rows.groupby("layer"):
        shares[layer] = steps.loc[steps["part"] == "first token", "gain"].iloc[0] / steps["gain"].sum()
    told = "; ".join(f"layer {layer}: {100 * share:.0f}%" for layer, share in shares.items())
    half = sum(share <= 0.5 for share in shares.values())
    return _verdict("H7", half == 0, half >= 2, told)


def _other_text(tables: Tables) -> Verdict:
    pairs = zip(_best(tables, "similarity"), _best(tables, "similarity", "wikipedia"), strict=True)
    shares = {own["layer"]: other["gain"] / own["gain"] for own, other in pairs}
    told = "; ".join(f"layer {layer}: {100 * share:.0f}%" for layer, share in shares.items())
    return _verdict("H9", min(shares.values()) >= 0.5, min(shares.values()) < 0.5, told)


HYPOTHESES: dict[str, tuple[str, Callable[[Tables], Verdict]]] = {
    "H1": ("similarity gains on each middle layer", _gain_is_clear("H1", "similarity", 0)),
    "H2": ("its best place lies between as it is and round", _place_is_inside),
    "H3": ("beyond round it loses", _over_rotation),
    "H4": ("an encoder trained for the cosine is at its best place", _trained_for_the_cosine),
    "H5": ("neighbours gain on the middle layers", _gain_is_clear("H5", "neighbours", 1)),
    "H6": ("a linear head gains nothing and loses when round", _linear_head),
    "H7": ("more than half of the gain is the first token's", _first_token),
    "H8": ("retrieval gains as similarity does", _gain_is_clear("H8", "retrieval", 0)),
    "H9": ("a fit on other text keeps half of the gain", _other_text),
}


def judge(tables: Tables) -> list[Verdict]:
    """Each hypothesis with its verdict, in the order of the plan; ``tables``: scores, best and parts."""
    return [judged(tables) for _, judged in HYPOTHESES.values()]
