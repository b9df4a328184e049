"""What a handful of seeds can show: an interval, an effect size, and p-values of a family of tests."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as scipy_stats

from isonb.lab.statistics.intervals import Array, Interval, StatsError, finite

__all__ = ["dz", "holm", "student"]


def student(values: ArrayLike, *, level: float = 0.95) -> Interval:
    """Student's interval of the mean: exact for normal values however few. At least 2 values."""
    x = finite(values, "values", 2)
    if not 0 < level < 1:
        raise StatsError(f"level must be between 0 and 1; got {level}. Pass 0.95 for a 95% interval.")
    half = float(scipy_stats.t.ppf((1 + level) / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x)))
    return Interval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, level, len(x), "student")


def dz(values: ArrayLike) -> float:
    """Cohen's d_z of paired differences, mean / standard deviation (n - 1).

    The limit for equal differences is signed infinity, and 0 when all are 0.
    """
    x = finite(values, "values", 2)
    if _constant(x):
        return math.copysign(math.inf, x.mean()) if x.mean() else 0.0
    return float(x.mean() / x.std(ddof=1))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values of a family of tests, under the same names and in the same order.

    Rejecting what is at most alpha keeps the chance of any false rejection at alpha, whatever the dependence.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    p = finite(list(p_values.values()), "p-values", 1)
    if p.min() < 0 or p.max() > 1:
        raise StatsError(f"p-values must lie in [0, 1]; got {p.min()} to {p.max()}. Pass unadjusted p-values.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return dict(zip(p_values, adjusted.tolist(), strict=True))


def _constant(x: Array) -> bool:
    """Equal up to rounding."""
    return bool(np.ptp(x) <= 1e-12 * np.abs(x).max())
