r"""Resampling: how far a number would move with other seeds, pairs or texts; always the same draws.

Percentile intervals of a mean over few seeds are too short: with n draws no bootstrap interval is wider than the range
of the data, which covers the centre of a symmetric law with probability :math:`1 - 2^{1-n}` (0.94 at n = 5, 0.75 at
n = 3). Hence the interval of a mean is *expanded*: its quantiles are taken further out, so that the width matches
Student's interval (Hesterberg 2015). Measured coverage of a nominal 95% interval of the mean of normal values, 1,000
samples each: 0.93 at n = 5, 0.95 from n = 10 on; of exponential ones 0.85, 0.91 at n = 10 and 0.94 at n = 50. Student's
interval (:func:`isonb_lab.statistics.seeds.student`) is the one for a handful of seeds.

A bootstrap draws a text twice and so plants pairs of cosine 1 and distance 0 into every measure that compares points
with each other. A random half holds each text once. For a mean the spread over halves is, in expectation, exactly the
standard error of the whole sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats as scipy_stats
from torch import Tensor

from isonb_lab.statistics.seeds import LEVEL, Array, Interval, StatsError, finite

Rows: TypeAlias = NDArray[np.int64]
DRAWS = 10_000
CELLS = 4_000_000  # resampled values held at a time
COUNTS = 500_000  # the same where samples are kept as counts
WORK = 100_000_000  # resampled values of a difference in all; larger sets get fewer draws
FEWEST = 1000
RANKED = 5  # points that a correlation of ranks needs: four are in order by chance in 2 of 4! cases, more than 5%


def bootstrap(values: ArrayLike, *, level: float = LEVEL, draws: int = DRAWS) -> Interval:
    """Expanded interval of the mean of ``values`` (n,): scores or paired differences, one a seed or one an example.

    Raises :class:`StatsError` for fewer than 2 values and for NaN.

    >>> mean = bootstrap([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> mean.estimate, round(mean.low, 1), round(mean.high, 1)
    (3.0, 1.2, 4.8)
    """
    x = finite(values, "values", 2)
    n = len(x)
    means = np.concatenate([x[rows].mean(axis=1) for rows in _resamples(n, draws, np.random.default_rng(0), CELLS)])
    tail = float(scipy_stats.norm.cdf(np.sqrt(n / (n - 1)) * scipy_stats.t.ppf((1 - level) / 2, n - 1)))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(x.mean()), float(low), float(high), level, n, "expanded")


def _resamples(n: int, draws: int, generator: np.random.Generator, cells: int) -> Iterator[Rows]:
    """Row numbers drawn with replacement, (draws, n) in pieces that fit in memory."""
    step = max(1, cells // n)
    return (generator.integers(0, n, (min(step, draws - start), n)) for start in range(0, draws, step))


@dataclass(frozen=True)
class RankDifference:
    """``interval`` of Spearman(gold, a) - Spearman(gold, b); ``p`` two-sided, of no difference; ``draws`` made."""

    interval: Interval
    p: float
    draws: int


def rank_difference(
    gold: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    parts: Sequence[Sequence[int]] | None = None,
    *,
    by_size: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
) -> RankDifference:
    """Percentile bootstrap interval over pairs, which are resampled together; ranks are taken anew in every draw.

    ``parts`` are row numbers: the correlation is then the mean of those of the parts, each resampled within itself; the
    plain mean, or with ``by_size`` weighted by their numbers of pairs. Ten thousand draws, or fewer (never under a
    thousand) where that would be more than 1e8 values. ``p`` is twice the share of the draws on the smaller side of 0.
    A constant side has correlation 0, as in :func:`isonb_lab.data.scores.spearman`; draws with constant gold values
    have none and are left out. Raises :class:`~isonb_lab.statistics.seeds.StatsError` for sides of different
    length, a part of fewer than 2 pairs, and when half of the draws have no value.

    >>> apart = rank_difference([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5])
    >>> round(apart.interval.estimate, 4), apart.interval.low >= 0
    (0.1714, True)
    """
    y, p, q = finite(gold, "gold", 2), finite(a, "a", 2), finite(b, "b", 2)
    if not len(y) == len(p) == len(q):
        raise StatsError(f"gold, a and b must be pairs; got {len(y)}, {len(p)} and {len(q)} values. Align them.")
    rows = [np.arange(len(y))] if parts is None else [np.asarray(part, dtype=np.int64) for part in parts]
    if min(len(part) for part in rows) < 2:
        raise StatsError("each part must have at least 2 pairs; got one of fewer. Leave it out or use more pairs.")
    draws = max(FEWEST, min(draws, WORK // len(y)))
    generator = np.random.default_rng(seed)
    weights = [len(part) if by_size else 1 for part in rows]
    once = [_differences(y[part], p[part], q[part], np.ones((1, len(part))))[0] for part in rows]
    estimate = np.average(once, weights=weights)
    drawn = [_resampled(y[part], p[part], q[part], draws, generator) for part in rows]
    sampled = np.average(drawn, axis=0, weights=weights)
    sampled = sampled[~np.isnan(sampled)]
    if 2 * len(sampled) < draws or np.isnan(estimate):
        raise StatsError(f"half of the draws must have a value; got {len(sampled)} of {draws}. Use more pairs.")
    side = min(int((sampled <= 0).sum()), int((sampled >= 0).sum()))
    share = min(1.0, 2 * (side + 1) / (len(sampled) + 1))
    return RankDifference(_percentile(float(estimate), sampled, len(y)), share, draws)


def _percentile(estimate: float, drawn: Array, n: int) -> Interval:
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(estimate, float(low), float(high), LEVEL, n, "percentile")


def rank_correlation(x: Array, y: Array) -> Interval:
    """Spearman's correlation of two sides (n,), and its percentile interval over the n pairs.

    Draws in which one side is constant have no correlation. Fewer than 5 points, and a constant side (whose correlation
    is 0), say nothing: any correlation is possible.

    >>> rank_correlation(np.arange(5.0), np.arange(5.0) ** 2).ends
    (1.0, 1.0, 1.0)
    >>> rank_correlation(np.arange(3.0), np.arange(3.0)).ends
    (1.0, -1.0, 1.0)
    """
    estimate = float(_rank_correlations(x, y))
    if len(x) < RANKED or math.isnan(estimate):
        return Interval(estimate if estimate == estimate else 0.0, -1.0, 1.0, LEVEL, len(x), "percentile")
    rows = np.concatenate([*_resamples(len(x), DRAWS, np.random.default_rng(0), CELLS)])
    return _percentile(estimate, _rank_correlations(x[rows], y[rows]), len(x))


def _rank_correlations(x: Array, y: Array) -> Array:
    """Pearson's correlation of mid-ranks along the last axis; NaN where a side is constant."""
    a, b = (ranks - ranks.mean(-1, keepdims=True) for ranks in (scipy_stats.rankdata(side, axis=-1) for side in (x, y)))
    with np.errstate(invalid="ignore"):
        return np.asarray((a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1)), dtype=np.float64)


def correlation_of_means(x: Array, y: Array) -> Interval:
    """Spearman's correlation between the column means of ``x`` and of ``y``, both (n, k), and its percentile interval.

    Rows, one a seed, are drawn with replacement, the same ones on both sides; means and ranks are taken anew in every
    draw. A side whose means are all equal has correlation 0. Raises :class:`StatsError` for sides of other shapes, for
    fewer than 2 rows or columns, and for NaN.

    >>> correlation_of_means(np.eye(4) + np.arange(4), np.arange(16.0).reshape(4, 4)).ends
    (1.0, 1.0, 1.0)
    """
    if x.shape != y.shape or x.ndim != 2 or min(x.shape) < 2 or not np.isfinite([x, y]).all():
        got = f"shapes {x.shape} and {y.shape}"
        raise StatsError(f"two sides must be finite and of one shape, at least 2 by 2; got {got}. Pass whole rows.")
    rows = np.concatenate([*_resamples(len(x), DRAWS, np.random.default_rng(0), CELLS // x.shape[1])])
    means = (np.concatenate([[side.mean(0)], side[rows].mean(1)]) for side in (x, y))
    each = np.nan_to_num(_rank_correlations(*means))
    return _percentile(float(each[0]), each[1:], len(x))


def _resampled(gold: Array, a: Array, b: Array, draws: int, generator: np.random.Generator) -> Array:
    n, differences = len(gold), []
    for rows in _resamples(n, draws, generator, COUNTS):
        picked = (rows + n * np.arange(len(rows))[:, None]).ravel()
        counts = np.bincount(picked, minlength=rows.size).reshape(rows.shape).astype(np.float64)
        differences.append(_differences(gold, a, b, counts))
    return np.concatenate(differences)


def _differences(gold: Array, a: Array, b: Array, counts: Array) -> Array:
    """Spearman(gold, a) - Spearman(gold, b) of samples that hold row i ``counts[:, i]`` times (draws, n)."""
    y, p, q = (mid_ranks(values, counts) for values in (gold, a, b))
    weighted = counts * y
    spread = np.einsum("ij,ij->i", weighted, y)
    first, second = (_correlation(weighted, side, counts, spread) for side in (p, q))
    return np.asarray(np.where(spread > 0, first - second, np.nan), dtype=np.float64)


def _correlation(weighted: Array, side: Array, counts: Array, spread: Array) -> Array:
    scale = np.sqrt(spread * np.einsum("ij,ij,ij->i", counts, side, side))
    product = np.einsum("ij,ij->i", weighted, side)
    return np.asarray(np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0), dtype=np.float64)


def mid_ranks(values: Array, counts: Array) -> Array:
    """Centred mid-ranks (draws, n) of every row in each sample that holds row i ``counts[:, i]`` times.

    Values are sorted once, not in every draw.

    >>> mid_ranks(np.array([5.0, 1.0, 5.0]), np.ones((1, 3))).tolist()
    [[0.5, -1.0, 0.5]]
    """
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts: NDArray[np.int64] = np.searchsorted(place[order], np.arange(len(distinct)))
    inside = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks = np.cumsum(inside, axis=1) - (inside - 1) / 2
    middle = (counts.sum(axis=1, keepdims=True) + 1) / 2
    return np.asarray((ranks - middle)[:, place], dtype=np.float64)


def halves(n: int, draws: int = 100, seed: int = 0) -> Tensor:
    """``draws`` random halves of n items as index rows, (draws, n // 2), each in ascending order.

    >>> halves(5, draws=2).shape
    torch.Size([2, 2])
    """
    if n < 4 or draws < 2:
        raise StatsError(f"halves need at least 4 items and 2 draws; got n = {n}, draws = {draws}. Give more texts.")
    order = torch.rand(draws, n, generator=torch.Generator().manual_seed(seed)).argsort(-1)
    return order[:, : n // 2].sort(-1).values


def standard_error(statistic: Callable[[Tensor], Tensor], n: int, draws: int = 100) -> Tensor:
    r"""Standard error of a smooth statistic of n independent items, from random halves.

    ``statistic`` takes the indices of some items and returns a tensor, the same shape each time; so does this function.
    The spread over halves of m = n // 2 items is scaled by :math:`\sqrt{m/(n-m)}`, which is 1 for even n. Resample what
    is independent: sentences, not the tokens of a sentence. A statistic that depends on n itself (a maximum, the
    dimension of a small sample) is shifted on halves; its spread is still usable, its mean over halves is not.

    >>> x = torch.arange(100.0)
    >>> error = standard_error(lambda rows: x[rows].mean(), len(x), draws=2000)
    >>> bool((error / (x.std() / 10) - 1).abs() < 0.05)
    True
    """
    values = torch.stack([torch.as_tensor(statistic(rows)) for rows in halves(n, draws)])
    return values.std(0).mul(float((n // 2) / (n - n // 2)) ** 0.5)
