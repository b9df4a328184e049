"""Similarity without training: names of its vectors, and the intervals over pairs that a record brings along."""

from __future__ import annotations

import pandas as pd

from isonb_lab.claims.design import SIMILARITY_NAMES
from isonb_lab.claims.study import Study
from isonb_lab.runs.recordings import FOLDER
from isonb_lab.statistics.seeds import LEVEL, Interval, student

PLAIN_VECTORS = {"last": "plain, last", "first_last": "plain, first-last", "one_last": "plain, 1-last"}
TRANSFORMS = {
    "sbert_wk": "SBERT-WK",
    "flow": "BERT-flow",
    "whitening": "whitening",
    "whitebert": "WhiteBERT",
    "softdecay": "SoftDecay",
    "zero_mean": "zero-mean",
    "all_but_the_top": "all-but-the-top",
    "cluster_removal": "cluster removal",
    "simcse": "SimCSE",
    "tension": "tension",
}
SETS = SIMILARITY_NAMES


WITHOUT = "STS-B"  # most of whose pairs stand in the sets of 2012 to 2016


def shared_pairs(task: str = "stsb_test") -> float:
    """The share of a set's pairs that stand in the sets of 2012 to 2016, too, by ``sts_overlap.csv``.

    >>> round(shared_pairs(), 2)
    0.73
    """
    table = pd.read_csv(FOLDER / "sts_overlap.csv").set_index(["set", "other"])
    row = table.loc[(task, "sts12 to sts16")]
    return float(row["shared"] / row["pairs"])


def over_sets(gains: pd.DataFrame, arm: str, *, without: str = "") -> dict[str, Interval]:
    """The mean gain of an arm over the similarity sets with Student's interval over them, by encoder.

    Args:
        gains: ``suite`` ("minilm, STS-B"), ``arm`` and ``mean``, a row a set.
        arm: whose gains.
        without: a set to leave out, :data:`WITHOUT` since it shares its pairs with others.
    """
    some = gains[(gains["arm"] == arm) & (gains["suite"].str.split(", ").str[1] != without)]
    by_model = some.groupby(some["suite"].str.split(", ").str[0])["mean"]
    return {str(model): student(values.tolist()) for model, values in by_model if len(values) > 1}


def recorded_table(name: str) -> pd.DataFrame:
    """The recorded table ``softdecay_<name>.csv``."""
    return pd.read_csv(FOLDER / f"softdecay_{name}.csv")


def above(other: str) -> dict[str, Interval]:
    """SoftDecay less another transform, both on the same resampled pairs, by encoder and set: "minilm, STS-13"."""
    table = recorded_table("direct")
    return {
        f"{row['model']}, {SETS[row['task']]}": pair_interval(row["difference"], row["low"], row["high"], row["pairs"])
        for row in table[table["other"] == other].to_dict("records")
    }


def pair_interval(estimate: float, low: float, high: float, pairs: float) -> Interval:
    """An interval of a paired bootstrap over pairs."""
    return Interval(estimate, low, high, LEVEL, int(pairs), "percentile")


def pair_gain(study: Study, arm: str, suite: str, protocol: str) -> Interval | None:
    """What an arm changes against plain first-last vectors, in points of Spearman x 100, with its interval over pairs.

    None where the run's record doesn't say, or where there is no run.
    """
    name = f"metric.difference.spearman.{protocol}"
    columns = (name, f"{name}.low", f"{name}.high", "metric.pairs")
    numbers = [list(study.units(column, arm, [suite]).values()) for column in columns]
    if not all(numbers):
        return None
    return pair_interval(*(value for (value,) in numbers))
