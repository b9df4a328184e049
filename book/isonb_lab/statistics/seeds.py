"""What a handful of seeds can show: intervals, p-values of a family, the effects they see, several cells as one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from scipy import stats as scipy_stats

from isonb.errors import InputError

Array: TypeAlias = NDArray[np.float64]

STUDENTS = ("student", "random effects", "expanded")  # intervals as wide as Student's law with n - 1 makes them
POWER = 0.8  # a true effect counts as detectable if four of five repetitions show it
NODES = 2000  # of the quadrature over the spread that a sample happens to have
DIGITS = 12  # of a difference of scores; what follows them is the rounding of the scores, not what seeds vary


LEVEL = 0.95  # of an interval, where nothing else is said


class StatsError(InputError):
    """Numbers that a statistic can't take: too few, not finite, unpaired, constant, or an unknown option."""


@dataclass(frozen=True)
class Interval:
    """An estimate between two ends at a confidence ``level``; ``n``: what was resampled, ``method``: how."""

    estimate: float
    low: float
    high: float
    level: float
    n: int
    method: str

    @property
    def ends(self) -> tuple[float, float, float]:
        """The estimate, and its two ends."""
        return self.estimate, self.low, self.high

    def excludes(self, value: float = 0.0) -> bool:
        """Whether ``value`` lies outside."""
        return not self.low <= value <= self.high


def student(values: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Student's interval of the mean: exact for normal values however few. At least 2 values."""
    x = finite(values, "values", 2)
    if not 0 < level < 1:
        raise StatsError(f"level must be between 0 and 1; got {level}. Pass 0.95 for a 95% interval.")
    half = float(_quantile((1 + level) / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x)))
    return Interval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, level, len(x), "student")


def paired_p(differences: ArrayLike) -> float:
    """Two-sided p-value of Student's paired test that the mean difference is 0; 1 where all are the same.

    Differences that are all the same (of a few rows, say, that every seed has wrong) tell nothing of other seeds.

    >>> round(paired_p([1.0, 2.0, 3.0]), 4), paired_p([0.0, 0.0]), paired_p([0.81 - 0.80, 0.72 - 0.71, 0.93 - 0.92])
    (0.0742, 1.0, 1.0)
    """
    x = finite(differences, "differences", 2)
    if constant(x.round(DIGITS)):
        return 1.0
    error = float(x.std(ddof=1)) / len(x) ** 0.5
    return float(2 * scipy_stats.t.sf(abs(float(x.mean())) / error, len(x) - 1))


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


def minimum_detectable(spread: float, n: int, *, alpha: float = 0.05, power: float = POWER) -> float:
    """The minimum detectable effect: the true mean that a two-sided t test shows at ``alpha`` with that ``power``.

    Delta with P(abs(T) > t_(1 - alpha/2)) = power, where T follows the noncentral t with n - 1 degrees of freedom and
    noncentrality delta sqrt(n) / spread. The law is integrated over the sample's spread, so that it holds at every
    level (the usual series fails at large noncentralities). In a family of m tests under Holm's method a first
    rejection is made at alpha / m: pass that.

    Args:
        spread: standard deviation of one value, in the unit of the answer; 0 gives 0.
        n: how many values, at least 2.
        alpha: two-sided level at which the verdict is given, in (0, 1).
        power: share of the repetitions that show the effect, in (alpha, 1).

    >>> round(minimum_detectable(1.0, 5), 2), round(minimum_detectable(1.0, 5, alpha=0.05 / 32), 2)
    (1.68, 4.26)
    """
    if n < 2 or not 0 < alpha < power < 1 or not 0 <= spread < math.inf:
        got = f"spread {spread}, n {n}, alpha {alpha} and power {power}"
        raise StatsError(f"spread must be finite, n >= 2 and 0 < alpha < power < 1; got {got}. Pass such numbers.")
    return _shift(n, alpha, power) * spread / math.sqrt(n)


@cache
def _shift(n: int, alpha: float, power: float) -> float:
    """The noncentrality at which n values are significant at ``alpha`` with that ``power``."""
    border = _quantile(1 - alpha / 2, n - 1)
    spreads = np.sqrt(scipy_stats.chi2.ppf((np.arange(NODES) + 0.5) / NODES, n - 1) / (n - 1))

    def short(shift: float) -> float:
        tails = scipy_stats.norm.sf(border * spreads - shift) + scipy_stats.norm.cdf(-border * spreads - shift)
        return float(tails.mean()) - power

    return float(optimize.brentq(short, 0.0, border * float(spreads[-1]) + 10))


def share(count: int, n: int, *, level: float = LEVEL) -> Interval:
    """The share ``count`` / ``n`` with the exact interval of Clopper and Pearson (1934).

    >>> failed = share(2, 5)
    >>> round(failed.estimate, 2), round(failed.low, 3), round(failed.high, 3)
    (0.4, 0.053, 0.853)
    """
    if not 0 <= count <= n or n < 1 or not 0 < level < 1:
        got = f"{count} of {n} at level {level}"
        raise StatsError(f"a share needs 0 <= count <= n, n >= 1 and a level in (0, 1); got {got}. Pass such numbers.")
    ends = scipy_stats.binomtest(count, n).proportion_ci(level, method="exact")
    return Interval(count / n, float(ends.low), float(ends.high), level, n, "Clopper-Pearson")


def finite(values: ArrayLike, name: str, least: int) -> Array:
    """``values`` as a float64 vector of at least ``least`` finite numbers, or :class:`StatsError`."""
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise StatsError(f"{name} must be numbers; got {error}. Pass a list or an array.") from error
    if x.ndim != 1 or len(x) < least:
        raise StatsError(f"{name} must be a list of at least {least}; got shape {x.shape}. Pass more, along one axis.")
    if not np.isfinite(x).all():
        bad = x[~np.isfinite(x)][0]
        raise StatsError(f"{name} must be finite; got {bad}. Leave out or explain the runs that have no number.")
    return x


def constant(x: Array) -> bool:
    """Whether all values are equal up to rounding; differences of scores are rounded to :data:`DIGITS` before."""
    return bool(np.ptp(x) <= 1e-12 * np.abs(x).max())


def random_effects(cells: Sequence[Interval], *, level: float = LEVEL) -> Interval:
    """The mean over cells whose true values may differ; it speaks of cells like these.

    Weights 1 / (e_i^2 + tau^2) with the cells' standard errors e_i and the variance tau^2 between cells by DerSimonian
    and Laird (1986); the interval by Hartung and Knapp (2001), from Student's law with k - 1 degrees of freedom, which
    keeps its level with few cells, in its modified form: never surer than the cells' own errors make it. Printed
    numbers have no errors and their mean no width. ``n`` of the result is the number of cells. Raises
    :class:`~isonb_lab.statistics.seeds.StatsError` for fewer than 2 cells.

    >>> cells = [Interval(x, x - 0.2, x + 0.2, 0.95, 50, "percentile") for x in (0.9, 1.0, 1.1)]
    >>> mean = random_effects(cells)
    >>> round(mean.estimate, 2), round(mean.low, 2), round(mean.high, 2)
    (1.0, 0.75, 1.25)
    """
    if len(cells) < 2:
        raise StatsError(f"random effects need at least 2 cells; got {len(cells)}. Use the cell's own interval.")
    values = np.array([cell.estimate for cell in cells], dtype=np.float64)
    errors = np.array([standard_error(cell) for cell in cells], dtype=np.float64)
    if all(cell.method == "printed" for cell in cells):
        mean = float(values.mean())
        return Interval(mean, mean, mean, level, len(cells), "printed")
    fixed, k = 1 / np.maximum(errors, 1e-12) ** 2, len(cells)
    pairs = np.triu(np.outer(fixed, fixed / fixed.sum()), 1)  # sums over pairs cancel nothing where one error is 0
    q = float((pairs * np.subtract.outer(values, values) ** 2).sum())  # Cochran's
    between = max(0.0, (q - (k - 1)) / float(2 * pairs.sum()))
    weights = 1 / (1 / fixed + between)
    mean = float((weights * values).sum() / weights.sum())
    error = float(np.sqrt((weights * (values - mean) ** 2).sum() / ((k - 1) * weights.sum())))
    error = max(error, float(1 / np.sqrt(weights.sum())))  # cells that agree by luck aren't surer than their errors
    half = _quantile((1 + level) / 2, k - 1) * error
    return Interval(mean, mean - half, mean + half, level, k, "random effects")


def _freedom(interval: Interval) -> float:
    """The degrees of freedom of the law behind an interval: n - 1 of Student's; the normal one has no end of them."""
    return interval.n - 1 if interval.method in STUDENTS else math.inf


@cache  # a page of verdicts asks ten thousand times for a few of them
def _quantile(share: float, freedom: float) -> float:
    return float(scipy_stats.t.ppf(share, freedom))


def upper_tail(interval: Interval, errors: float) -> float:
    """The chance that an estimate is larger by so many standard errors than what it estimates.

    >>> round(upper_tail(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile"), 1.645), 3)
    0.05
    """
    return float(scipy_stats.t.sf(errors, _freedom(interval)))


def standard_error(interval: Interval) -> float:
    """The standard error behind an interval.

    >>> round(standard_error(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile")), 3)
    1.0
    """
    half = (interval.high - interval.low) / 2
    return float(half / _quantile((1 + interval.level) / 2, _freedom(interval)))


def at_level(interval: Interval, level: float) -> Interval:
    """The interval of the same data at another level, by the law behind it.

    >>> wide = at_level(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile"), 0.99)
    >>> round(wide.high, 2), wide.level
    (2.58, 0.99)
    """
    half = standard_error(interval) * _quantile((1 + level) / 2, _freedom(interval))
    return replace(interval, low=interval.estimate - half, high=interval.estimate + half, level=level)
