"""The dial over learned sets alone: what is left of a mean once the sets are out on which a reader says the commonest
label of all.

Exploratory: the plans take the mean of all sets, and their verdicts stay. Where a set isn't learned its gain is that of
chance, or a constant 0 that makes every gain of the mean, and its interval, smaller.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from isonb_lab.claims.table import at_baseline

from . import deployed, dial
from .hypotheses import Answer, answers_by, rows_with

OF = {"linear head": ("sst2", "cola", "mrpc", "qnli"), "neighbours": ("sst2", "cola")}  # the sets of a reader
READERS = tuple(OF)
# Of the rows that are read, those with the commonest label of the training rows, and all.
COMMONEST = {"sst2": (444, 872), "cola": (721, 1043), "mrpc": (279, 408), "qnli": (303, 600)}
DEPLOYED = COMMONEST | {"sst2": (1353, 2693), "qnli": (2702, 5463)}
NAMES = {"sst2": "SST-2", "cola": "CoLA", "mrpc": "MRPC", "qnli": "QNLI"}
KEY = ("encoder", "layer", "pool", "reader", "fit", "texts", "turn", "strength", "p", "chosen")


def learned(scores: pd.DataFrame, commonest: Mapping[str, tuple[int, int]] = COMMONEST) -> pd.Series[bool]:
    """Which rows are of a set that the reader has learned there: from the vectors as they are, or from turned ones.

    As for a run (:func:`~isonb_lab.claims.table.at_baseline`): above the commonest label's share by more than 1.96 of
    its sampling error.
    """
    share = scores["set"].map({name: right / rows for name, (right, rows) in commonest.items()})
    count = scores["set"].map({name: rows for name, (_, rows) in commonest.items()})
    runs = scores.assign(majority=share, metric="accuracy", rows=count)
    return ~(at_baseline(runs) & at_baseline(runs.assign(score=runs["score"] - runs["gain"])))


def over_learned(scores: pd.DataFrame, commonest: Mapping[str, tuple[int, int]] = COMMONEST) -> pd.DataFrame:
    """The mean of each turn over its learned sets, with their names in ``sets``; a turn that has none has no row.

    ``scores``: a row a set. The sets were drawn again by themselves, so each end of the interval of the mean lies as
    far from it as the root of the sum of squares of theirs, over their number (Zou and Donner 2008).
    """
    rows = scores[scores["set"].isin(commonest) & scores["reader"].isin(READERS)]
    rows = rows[learned(rows, commonest)]
    rows = rows.assign(low=(rows["gain"] - rows["gain_low"]) ** 2, high=(rows["gain_high"] - rows["gain"]) ** 2)
    rows["name"] = rows["set"].map(NAMES)
    cells = rows.groupby([name for name in KEY if name in rows], sort=False)
    means, ends = cells[["score", "gain"]].mean(), cells[["low", "high"]].sum() ** 0.5
    ends = ends.div(cells.size(), axis=0)
    means["gain_low"], means["gain_high"] = means["gain"] - ends["low"], means["gain"] + ends["high"]
    return means.assign(sets=cells["name"].agg(", ".join), set="all").reset_index()


def unlearned(means: pd.DataFrame, of: tuple[str, ...]) -> str:
    """How many turns of :func:`over_learned` leave out which of these sets: "CoLA in 3 of 4, MRPC in 1"."""
    out = {NAMES[name]: int((~means["sets"].str.contains(NAMES[name])).sum()) for name in of}
    first, *others = (f"{name} in {count}" for name, count in out.items() if count)
    return ", ".join([f"{first} of {len(means)}", *others])


def verdicts(scores: pd.DataFrame) -> list[Answer]:
    """What H5 and H6 would read over learned sets alone. ``scores``: of the dial, a row a set."""
    means = over_learned(rows_with(scores, encoder="smollm2", pool="mean", fit="own"))
    places = means[means["turn"].isin(("raw", "whitening"))]
    best = places.loc[places.groupby(["encoder", "layer", "pool", "fit", "reader"])["gain"].idxmax()]
    rules = {name: dial.HYPOTHESES[name] for name in ("H5", "H6")}
    return answers_by(rules, {"scores": means, "best": best}, "as expected")


def deployed_means() -> pd.DataFrame:
    """The scores of :func:`isonb_lab.papers.deployed.read`, those of heads and neighbours over learned sets alone."""
    others = deployed.read()
    return pd.concat([others[~others["reader"].isin(READERS)], over_learned(deployed.read_sets(), DEPLOYED)])
