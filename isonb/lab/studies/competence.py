"""Whether a run has learned its task, and how far a model is ahead of the majority baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from scipy import stats as scipy_stats

from isonb.lab.statistics.intervals import Interval, finite

__all__ = ["failed", "lead", "row_error"]

CORRELATIONS = ("matthews", "pearson", "spearman")
LEVEL = 0.95


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


def failed(runs: pd.DataFrame) -> pd.Series[bool]:
    """Which runs of one task failed: those at the majority baseline, or below half of the task's best score.

    A run is at the baseline if its score isn't above it by more than 1.96 of the baseline's :func:`row_error`: so far
    the rows alone can carry a model that answers the same for every example. Columns: ``score``, ``majority``,
    ``metric``, ``rows``. A run without a score hasn't failed: nothing is known of it.

    >>> runs = pd.DataFrame({"score": [0.80, 0.69, 0.71], "majority": 0.684, "metric": "accuracy", "rows": 408})
    >>> failed(runs).tolist()
    [False, True, True]
    >>> runs = pd.DataFrame({"score": [0.76, 0.71, 0.27], "majority": 0.0, "metric": "pearson", "rows": 1500})
    >>> failed(runs).tolist()
    [False, False, True]
    """
    base = runs["majority"].astype(float).fillna(0.0)
    chance = [row_error(*row) for row in zip(runs["metric"], base, runs["rows"], strict=True)]
    floor = base + scipy_stats.norm.ppf((1 + LEVEL) / 2) * pd.Series(chance, index=runs.index, dtype=float)
    return (runs["score"] <= floor) | (runs["score"] < runs["score"].max() / 2)


def lead(scores: Sequence[float], baseline: float, metric: str, rows: int, level: float = LEVEL) -> Interval:
    """How far the mean score lies above ``baseline``, the score of the majority baseline.

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
