"""Similarity without training: names of its vectors, and the intervals over pairs that a record brings along."""

from __future__ import annotations

import pandas as pd

from isonb.lab.runs.recordings import FOLDER
from isonb.lab.statistics.seeds import LEVEL, Interval
from isonb.lab.studies.study import Study

__all__ = ["PLAIN_VECTORS", "SETS", "TRANSFORMS", "kept", "pair_gain", "pair_interval"]

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
SETS = {"stsb_test": "STS-B"} | {f"sts{year}": f"STS-{year}" for year in range(12, 17)} | {"sickr": "SICK-R"}


def kept(name: str) -> pd.DataFrame | None:
    """The recorded table ``softdecay_<name>.csv``; None where there is none."""
    path = FOLDER / f"softdecay_{name}.csv"
    return pd.read_csv(path) if path.exists() else None


def pair_interval(estimate: float, low: float, high: float, pairs: float) -> Interval:
    """An interval of a paired bootstrap over pairs."""
    return Interval(estimate, low, high, LEVEL, int(pairs), "percentile")


def pair_gain(study: Study, arm: str, suite: str, protocol: str) -> Interval | None:
    """What an arm changes against plain first-last vectors, in points of Spearman x 100, with its interval over pairs.

    None where the run's record doesn't say, or where there is no run.
    """
    name = f"metric.difference.spearman.{protocol}"
    ends = [list(study.units(column, arm, [suite]).values()) for column in (name, f"{name}.low", f"{name}.high")]
    pairs = list(study.units("metric.pairs", arm, [suite]).values())
    if not all(ends) or not pairs:
        return None
    (estimate,), (low,), (high,) = ends
    return pair_interval(estimate, low, high, pairs[0])
