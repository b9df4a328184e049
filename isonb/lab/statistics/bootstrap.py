r"""Bootstrap intervals: resample what varies (seeds or examples), ten thousand times, always the same draws.

Percentile intervals of a mean over few seeds are too short: with n draws no bootstrap interval is wider than the range
of the data, which covers the centre of a symmetric law with probability :math:`1 - 2^{1-n}` (0.94 at n = 5, 0.75 at
n = 3). Hence the interval of a mean is *expanded*: its quantiles are taken further out, so that the width matches
Student's interval (Hesterberg 2015). Measured coverage of a nominal 95% interval of the mean of normal values, 1,000
samples each: 0.93 at n = 5, 0.95 from n = 10 on; of exponential ones 0.85, 0.91 at n = 10 and 0.94 at n = 50. Student's
interval (:func:`isonb.lab.statistics.seeds.student`) is the one for a handful of seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as scipy_stats

from isonb.lab.statistics.seeds import Array, Interval, StatsError, finite

Rows: TypeAlias = NDArray[np.int64]
DRAWS = 10_000
CELLS = 4_000_000  # resampled values held at a time


def bootstrap(values: ArrayLike, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Expanded interval of the mean of ``values`` (n,): scores or paired differences, one a seed or one an example.

    Raises :class:`StatsError` for fewer than 2 values and for NaN.

    >>> mean = bootstrap([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> mean.estimate, round(mean.low, 1), round(mean.high, 1)
    (3.0, 1.2, 4.8)
    """
    x = finite(values, "values", 2)
    n = len(x)
    means = np.concatenate([x[rows].mean(axis=1) for rows in _resamples(n, draws, seed)])
    tail = float(scipy_stats.norm.cdf(np.sqrt(n / (n - 1)) * scipy_stats.t.ppf((1 - level) / 2, n - 1)))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(x.mean()), float(low), float(high), level, n, "expanded")


def spearman(x: ArrayLike, y: ArrayLike, *, level: float = 0.95, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Spearman's rank correlation with its percentile interval over pairs; ranks are taken anew in every draw.

    Draws in which one side is constant have no correlation and are left out. Raises :class:`StatsError` for fewer than
    4 pairs, NaN, sides of different length, and where half of the draws have no value.

    >>> spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]).estimate
    0.8
    """
    a, b = finite(x, "x", 4), finite(y, "y", 4)
    if len(a) != len(b):
        raise StatsError(f"x and y must be pairs; got {len(a)} and {len(b)} values. Align them.")
    drawn = np.concatenate([_rank_correlation(a[rows], b[rows]) for rows in _resamples(len(a), draws, seed)])
    good = drawn[~np.isnan(drawn)]
    if 2 * len(good) < len(drawn):
        raise StatsError(f"half of the draws must have a value; got {len(good)} of {len(drawn)}. Use more examples.")
    tail = (1 - level) / 2
    low, high = np.quantile(good, [tail, 1 - tail])
    estimate = float(_rank_correlation(a[None], b[None])[0])
    return Interval(estimate, float(low), float(high), level, len(a), "percentile")


def _resamples(n: int, draws: int, seed: int) -> Iterator[Rows]:
    """Row numbers drawn with replacement, (draws, n) in pieces that fit in memory."""
    generator = np.random.default_rng(seed)
    step = max(1, CELLS // n)
    return (generator.integers(0, n, (min(step, draws - start), n)) for start in range(0, draws, step))


def _rank_correlation(x: Array, y: Array) -> Array:
    """Pearson's correlation of mid-ranks along the last axis; NaN where a side is constant."""
    a, b = (scipy_stats.rankdata(values, axis=-1) for values in (x, y))
    a, b = a - a.mean(axis=-1, keepdims=True), b - b.mean(axis=-1, keepdims=True)
    scale = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    correlation: Array = np.divide((a * b).sum(axis=-1), scale, out=np.full(scale.shape, np.nan), where=scale > 0)
    return correlation
