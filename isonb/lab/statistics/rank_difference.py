"""Whether one set of similarities correlates better than another with the same gold values, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isonb.lab.statistics.bootstrap import DRAWS
from isonb.lab.statistics.seeds import Array, Interval, StatsError, finite

CELLS = 500_000  # resampled values held at a time
WORK = 100_000_000  # resampled values in all; larger sets get fewer draws
FEWEST = 1000


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
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> RankDifference:
    """Percentile bootstrap interval over pairs, which are resampled together; ranks are taken anew in every draw.

    ``parts`` are row numbers: the correlation is then the mean of those of the parts, each resampled within itself; the
    plain mean, or with ``by_size`` weighted by their numbers of pairs. Ten thousand draws, or fewer (never under a
    thousand) where that would be more than 1e8 values. ``p`` is twice the share of the draws on the smaller side of 0.
    A constant side has correlation 0, as in :func:`isonb.lab.data.scores.spearman`; draws with constant gold values
    have none and are left out. Raises :class:`~isonb.lab.statistics.seeds.StatsError` for sides of different
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
    apart = np.average(drawn, axis=0, weights=weights)
    apart = apart[~np.isnan(apart)]
    if 2 * len(apart) < draws or np.isnan(estimate):
        raise StatsError(f"half of the draws must have a value; got {len(apart)} of {draws}. Use more pairs.")
    low, high = np.quantile(apart, [(1 - level) / 2, (1 + level) / 2])
    side = min(int((apart <= 0).sum()), int((apart >= 0).sum()))
    share = min(1.0, 2 * (side + 1) / (len(apart) + 1))
    interval = Interval(float(estimate), float(low), float(high), level, len(y), "percentile")
    return RankDifference(interval, share, draws)


def _resampled(gold: Array, a: Array, b: Array, draws: int, generator: np.random.Generator) -> Array:
    n, differences = len(gold), []
    step = max(1, CELLS // n)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        picked = generator.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(picked.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        differences.append(_differences(gold, a, b, counts))
    return np.concatenate(differences)


def _differences(gold: Array, a: Array, b: Array, counts: Array) -> Array:
    """Spearman(gold, a) - Spearman(gold, b) of samples that hold row i ``counts[:, i]`` times (draws, n)."""
    y, p, q = (_ranks(values, counts) for values in (gold, a, b))
    weighted = counts * y
    spread = np.einsum("ij,ij->i", weighted, y)
    one, other = (_correlation(weighted, side, counts, spread) for side in (p, q))
    return np.asarray(np.where(spread > 0, one - other, np.nan), dtype=np.float64)


def _correlation(weighted: Array, side: Array, counts: Array, spread: Array) -> Array:
    scale = np.sqrt(spread * np.einsum("ij,ij,ij->i", counts, side, side))
    product = np.einsum("ij,ij->i", weighted, side)
    return np.asarray(np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0), dtype=np.float64)


def _ranks(values: Array, counts: Array) -> Array:
    """Centred mid-ranks of every row in each sample, from counts alone: values are sorted once, not in every draw."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts: NDArray[np.int64] = np.searchsorted(place[order], np.arange(len(distinct)))
    inside = np.add.reduceat(counts[:, order], starts, axis=1)
    ranks = np.cumsum(inside, axis=1) - (inside - 1) / 2
    middle = (counts.sum(axis=1, keepdims=True) + 1) / 2
    return np.asarray((ranks - middle)[:, place], dtype=np.float64)
