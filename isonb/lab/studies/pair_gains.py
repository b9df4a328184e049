"""What a method changes in similarity: the intervals over pairs that the record of a run brings along."""

from __future__ import annotations

from isonb.lab.statistics.intervals import Interval
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import LEVEL

__all__ = ["pair_gain", "points"]


def points(estimate: float, low: float, high: float, pairs: float) -> Interval:
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
    return points(estimate, low, high, pairs[0])
