"""Whether the plain model has learned a task: where it hasn't, no gain or loss of a method can be told."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats as scipy_stats

from isonb.lab.statistics.intervals import Interval, finite

__all__ = ["lead", "row_error"]

CORRELATIONS = ("matthews", "pearson", "spearman")


def row_error(metric: str, score: float, rows: int) -> float:
    """Standard error of a score over the rows it was measured on.

    sqrt(s (1 - s) / n) for shares; (1 - s^2) / sqrt(n - 1) for correlations, as of a normal pair (for Matthews, that
    of two labels, an approximation).

    >>> round(row_error("accuracy", 0.8, 400), 3), round(row_error("pearson", 0.8, 1501), 4)
    (0.02, 0.0093)
    """
    if metric in CORRELATIONS:
        return (1 - score**2) / math.sqrt(rows - 1)
    return math.sqrt(max(score * (1 - score), 0.0) / rows)


def lead(scores: Sequence[float], baseline: float, metric: str, rows: int, level: float = 0.95) -> Interval:
    """How far the mean score lies above ``baseline``, the score of one answer for every example.

    The interval speaks of new seeds and new rows: the half-width is the root of the sum of the squares of Student's
    over seeds and the normal one over rows. One seed alone has the rows' part only.

    >>> found = lead([0.80, 0.82, 0.81], 0.684, "accuracy", 408)
    >>> round(found.estimate, 3), found.low > 0
    (0.126, True)
    """
    x = finite(list(scores), "scores", 1)
    mean, n = float(x.mean()), len(x)
    tail = (1 + level) / 2
    over_rows = scipy_stats.norm.ppf(tail) * row_error(metric, mean, rows)
    over_seeds = scipy_stats.t.ppf(tail, n - 1) * x.std(ddof=1) / math.sqrt(n) if n > 1 else 0.0
    half = float(math.hypot(over_rows, over_seeds))
    return Interval(mean - baseline, mean - baseline - half, mean - baseline + half, level, n, "seeds and rows")
