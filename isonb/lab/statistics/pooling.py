"""Several cells as one number: the mean of random effects, and whether the cells differ beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import stats as scipy_stats

from isonb.lab.statistics.seeds import Array, Interval, StatsError

__all__ = ["STUDENTS", "Heterogeneity", "heterogeneity", "law", "random_effects", "standard_error"]

STUDENTS = ("student", "random effects", "expanded")  # intervals as wide as Student's law with n - 1 makes them


def random_effects(cells: Sequence[Interval], *, level: float = 0.95) -> Interval:
    """The mean over cells whose true values may differ; it speaks of cells like these.

    Weights 1 / (e_i^2 + tau^2) with the cells' standard errors e_i and the variance tau^2 between cells by DerSimonian
    and Laird (1986); the interval by Hartung and Knapp (2001), from Student's law with k - 1 degrees of freedom, which
    keeps its level with few cells. ``n`` of the result is the number of cells. Raises
    :class:`~isonb.lab.statistics.seeds.StatsError` for fewer than 2 cells.

    >>> cells = [Interval(x, x - 0.2, x + 0.2, 0.95, 50, "percentile") for x in (0.9, 1.0, 1.1)]
    >>> mean = random_effects(cells)
    >>> round(mean.estimate, 2), round(mean.low, 2), round(mean.high, 2)
    (1.0, 0.75, 1.25)
    """
    if len(cells) < 2:
        raise StatsError(f"random effects need at least 2 cells; got {len(cells)}. Use the cell's own interval.")
    values, errors = _estimates(cells)
    if not errors.any():
        mean = float(values.mean())
        return Interval(mean, mean, mean, level, len(cells), "printed")
    fixed = 1 / np.maximum(errors, 1e-12) ** 2
    q, k = _q(values, fixed), len(cells)
    between = max(0.0, (q - (k - 1)) / float(fixed.sum() - (fixed**2).sum() / fixed.sum()))
    weights = 1 / (1 / fixed + between)
    mean = float((weights * values).sum() / weights.sum())
    error = float(np.sqrt((weights * (values - mean) ** 2).sum() / ((k - 1) * weights.sum())))
    error = max(error, float(1 / np.sqrt(weights.sum())))  # cells that agree by luck aren't surer than their errors
    half = float(scipy_stats.t.ppf((1 + level) / 2, k - 1)) * error
    return Interval(mean, mean - half, mean + half, level, k, "random effects")


@dataclass(frozen=True)
class Heterogeneity:
    """``i2``: the share of the variance between cells that chance doesn't explain. ``p``: Cochran's test of none."""

    i2: float
    p: float


def heterogeneity(cells: Sequence[Interval]) -> Heterogeneity | None:
    """Whether cells differ beyond chance: I2 (Higgins and Thompson 2002) in [0, 1] and the p-value of Cochran's Q.

    None for fewer than two cells, or cells without a width.

    >>> heterogeneity([Interval(x, x - 0.1, x + 0.1, 0.95, 50, "percentile") for x in (0.0, 0.0)])
    Heterogeneity(i2=0.0, p=1.0)
    >>> spread = heterogeneity([Interval(x, x - 0.1, x + 0.1, 0.95, 50, "percentile") for x in (-1.0, 1.0)])
    >>> round(spread.i2, 2), spread.p < 0.001
    (1.0, True)
    """
    values, errors = _estimates(cells)
    if len(cells) < 2 or not errors.all():
        return None
    q, free = _q(values, 1 / errors**2), len(cells) - 1
    return Heterogeneity(max(0.0, (q - free) / q) if q > 0 else 0.0, float(scipy_stats.chi2.sf(q, free)))


def law(interval: Interval) -> Any:
    """The law behind an interval: Student's with n - 1 degrees of freedom, or the normal one."""
    return _student(interval.n - 1) if interval.method in STUDENTS else scipy_stats.norm


@cache
def _student(free: int) -> Any:
    return scipy_stats.t(free)


def standard_error(interval: Interval) -> float:
    """The standard error behind an interval.

    >>> round(standard_error(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile")), 3)
    1.0
    """
    half = (interval.high - interval.low) / 2
    return float(half / law(interval).ppf((1 + interval.level) / 2))


def _estimates(cells: Sequence[Interval]) -> tuple[Array, Array]:
    """Estimates and standard errors."""
    values, errors = ([cell.estimate for cell in cells], [standard_error(cell) for cell in cells])
    return np.array(values, dtype=np.float64), np.array(errors, dtype=np.float64)


def _q(values: Array, weights: Array) -> float:
    """Cochran's Q."""
    mean = (weights * values).sum() / weights.sum()
    return float((weights * (values - mean) ** 2).sum())
