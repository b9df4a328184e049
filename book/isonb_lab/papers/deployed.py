"""The dial as one deploys it: the recorded table, the hypotheses of its plan, and what a user may do with each reader.

What makes the table is the recipe ``book/recipes/dial/make_dial.py``; ``deployed_plan.md`` says how it is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from isonb.runtime.told import between
from isonb_lab.places import RECORDINGS_FOLDER
from isonb_lab.sweeps.cost import CPU_FLOPS, encoder_size

from .hypotheses import Answer, Judged, answers_by, rows_with

FOLDER = RECORDINGS_FOLDER / "deployed"
READERS = ("search", "similarity", "linear head", "neighbours")
LAYERS = {"tiny": (4,), "minilm": (6,), "smollm2": (15, 20, 30)}
SEARCH_MDE, POINT = 0.0065, 0.01  # nDCG that 10,570 questions can show; a point of accuracy
FITS = {"unread": "unread texts", "searched": "searched paragraphs", "wikipedia": "paragraphs of Wikipedia"}
# Of all texts of smollm2, cut after 256 tokens of minilm's tokenizer.
READ_TOKENS, READ_TEXTS = 2_919_710, 89_215


def read_sets(folder: Path = FOLDER) -> pd.DataFrame:
    """The recorded scores of every set, and of the mean over the sets of each reader."""
    return pd.read_parquet(folder / "scores.parquet")


def read(folder: Path = FOLDER) -> pd.DataFrame:
    """The recorded scores, of the mean over the sets of each reader."""
    table = read_sets(folder)
    return table[table["set"] == "all"].reset_index(drop=True)


def _at(scores: pd.DataFrame, **values: object) -> pd.DataFrame:
    """The rows whose columns have these values; mean-pooled unless said otherwise."""
    return rows_with(scores, **{"pool": "mean", **values})


def text(row: pd.Series) -> str:
    """A gain with its interval; of raw vectors it is 0 by construction, which the words say."""
    if row["turn"] == "raw":
        return "0, raw was chosen"
    return between(row["gain"], row["gain_low"], row["gain_high"], 4, "+")


def _texts(rows: pd.DataFrame) -> str:
    return "; ".join(
        f"p = {row.p:g}, fitted on {row.texts:,} {FITS[row.fit]}: {text(row)}" for _, row in rows.iterrows()
    )


def _gains(rows: pd.DataFrame) -> Judged | None:
    """Whether each of some cells gains."""
    return None if rows.empty else (bool((rows["gain_low"] <= 0).any()), True, _texts(rows))


def _searched(scores: pd.DataFrame) -> Judged | None:
    return _gains(_at(scores, encoder="minilm", reader="search", fit="searched", turn="whitening", p=0.5))


def _unread(scores: pd.DataFrame) -> Judged | None:
    rows = _at(scores, encoder="minilm", reader="search", fit="unread", turn="whitening", p=0.5)
    if rows.empty:
        return None
    return bool((rows["gain_low"] > SEARCH_MDE).any()), bool((rows["gain_high"] < SEARCH_MDE).all()), _texts(rows)


def _language_model_searches(scores: pd.DataFrame) -> Judged | None:
    rows = _at(scores, encoder="smollm2", reader="search", turn="whitening", p=0.5)
    return _gains(rows[rows["layer"].isin((15, 20)) & (rows["texts"] >= 576)])


def _first_token(scores: pd.DataFrame) -> Judged | None:
    rows = rows_with(scores, encoder="smollm2", fit="unread", reader="similarity")
    rows = rows[rows["layer"].isin((15, 20))]
    if rows.empty:
        return None
    score = rows.set_index(["layer", "pool", "turn", "p"])["score"]
    more, numbers = [], []
    for layer in (15, 20):
        raw = score[layer, "without first", "raw", 0.0]
        token, turn = raw - score[layer, "mean", "raw", 0.0], score[layer, "without first", "whitening", 0.75] - raw
        more.append(token > turn)
        numbers.append(f"layer {layer}: the token {token:+.3f}, the turn after it {turn:+.3f}")
    return not any(more), all(more), "; ".join(numbers)


def _trained_for_the_cosine(scores: pd.DataFrame) -> Judged | None:
    rows = _at(scores, encoder="minilm", reader="similarity", turn="whitening")
    if rows.empty:
        return None
    above = rows[rows["gain_low"] > 0]
    numbers = f"{len(above)} of {len(rows)} cells gain, most of all {_texts(rows.loc[[rows['gain'].idxmax()]])}"
    return len(above) > 0, bool((rows["gain_high"] <= 0).all()), numbers


def chosen(scores: pd.DataFrame, reader: str | None = None) -> pd.DataFrame:
    """The turn that held-out data chose for each encoder, layer, pooling and reader."""
    rows = scores[scores["chosen"]]
    return rows if reader is None else rows[rows["reader"] == reader]


def _whole(scores: pd.DataFrame) -> bool:
    """Whether every encoder of the plan is recorded."""
    return set(LAYERS) <= set(scores["encoder"])


def _chose_raw(rows: pd.DataFrame) -> str:
    """How many of the cells are raw vectors, whose gain is 0 by construction."""
    raw = int((rows["turn"] == "raw").sum())
    return f"; {raw} chose raw, a gain of 0 by construction" if raw else ""


def _head(scores: pd.DataFrame) -> Judged:
    rows = chosen(scores, "linear head")
    outside = (rows["gain_low"] > POINT) | (rows["gain_high"] < -POINT)
    inside = (rows["gain_low"] >= -POINT) & (rows["gain_high"] <= POINT)
    numbers = f"{int(inside.sum())} of {len(rows)} cells lie within a point, {int(outside.sum())} outside"
    numbers += _chose_raw(rows)
    return bool(outside.any()), bool(inside.all()) and _whole(scores), numbers


def _never_loses(scores: pd.DataFrame) -> Judged:
    rows = chosen(scores)
    lost = rows[rows["gain_high"] < 0]
    numbers = f"{len(lost)} of {len(rows)} cells lose{_chose_raw(rows)}"
    if len(lost):
        worst = lost.loc[lost["gain"].idxmin()]
        numbers += f", most {worst['encoder']}, {worst['reader']}: {text(worst)}"
    return len(lost) > 0, bool((rows["gain_low"] >= 0).all()) and _whole(scores), numbers


def _few_texts(scores: pd.DataFrame) -> Judged | None:
    rows = _at(scores, encoder="minilm", reader="search", fit="wikipedia", turn="whitening", texts=192)
    rows = rows[rows["p"] >= 0.75]
    if rows.empty:
        return None
    return bool((rows["gain_low"] >= 0).any()), bool((rows["gain_high"] < 0).all()), _texts(rows)


HYPOTHESES: dict[str, Callable[[pd.DataFrame], Judged | None]] = {
    "E1": _searched,
    "E2": _unread,
    "E3": _language_model_searches,
    "E4": _first_token,
    "E5": _trained_for_the_cosine,
    "E6": _head,
    "E7": _never_loses,
    "E8": _few_texts,
}


def answers(scores: pd.DataFrame) -> list[Answer]:
    """Every hypothesis of the plan with its outcome; open where its encoder isn't recorded."""
    return answers_by(HYPOTHESES, scores)


def price() -> str:
    """What the vectors of the encoders that aren't recorded would cost, in words; "" where all are."""
    missing = [name for name in LAYERS if name not in set(read()["encoder"])]
    sizes = [size for name in missing if (size := encoder_size(name)) is not None]
    flops = READ_TOKENS * sum(size.forward(READ_TOKENS / READ_TEXTS) for size in sizes)
    hours = flops / CPU_FLOPS[False] / 3600
    return f"the vectors of {', '.join(missing)} take about {hours:.0f} hours of one core" if missing else ""


@dataclass(frozen=True)
class Advice:
    """What to do for a reader: ``p`` of a fit on unread texts, None to leave the vectors as they are.

    ``gains``: by encoder and layer, mean-pooled. ``worst``: the lowest end of their intervals, the cost when wrong.
    """

    reader: str
    p: float | None
    held_out: bool
    gains: dict[str, str]
    worst: float

    @property
    def recommendation(self) -> str:
        """The advice as a sentence."""
        if self.p is not None:
            return f"Turn at p = {self.p:g}." if self.p else "Subtract the mean (p = 0)."
        return "Choose p on held-out data, and raw may win." if self.held_out else "Leave the vectors as they are."


def advice(scores: pd.DataFrame, reader: str) -> Advice:
    """The p that gains on every recorded encoder, the largest in its worst case; else one that held-out data choose.

    Where even a chosen p loses significantly: leave it.
    """
    rows = _at(scores, reader=reader, fit="unread", turn="whitening")
    least = rows.groupby("p")["gain_low"].min()
    picked = chosen(_at(scores), reader)
    if least.max() > 0:
        p, held_out, used = float(least.idxmax()), False, rows[rows["p"] == least.idxmax()]
    elif (picked["gain_high"] >= 0).all():
        p, held_out, used = None, True, picked
    else:
        p, held_out, used = None, False, picked
    gains = {f"{row['encoder']}, layer {row['layer']}": text(row) for _, row in used.iterrows()}
    return Advice(reader, p, held_out, gains, float(used["gain_low"].min()))
