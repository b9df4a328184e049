"""Several cells as one number, against the formulas worked by hand and by simulation."""

import numpy as np
import pytest
from scipy import stats

from isonb_lab.statistics.seeds import Interval, StatsError, random_effects

VALUES, ERRORS = np.array([0.10, 0.30, 0.35, 0.65]), np.array([0.05, 0.08, 0.10, 0.20])


def normal(value, error, level=0.95):
    half = stats.norm.ppf((1 + level) / 2) * error
    return Interval(value, value - half, value + half, level, 50, "percentile")


CELLS = [normal(value, error) for value, error in zip(VALUES, ERRORS, strict=True)]


def by_hand(values, errors, level=0.95):
    """DerSimonian and Laird's variance between cells, and the interval of Hartung and Knapp; Cochran's Q."""
    k, weights = len(values), errors**-2.0
    fixed = np.average(values, weights=weights)
    q = sum(w * (y - fixed) ** 2 for w, y in zip(weights, values, strict=True))
    between = max(0.0, (q - (k - 1)) / (sum(weights) - sum(weights**2) / sum(weights)))
    spread = 1 / (errors**2 + between)
    mean = np.average(values, weights=spread)
    error = np.sqrt(np.average((values - mean) ** 2, weights=spread) / (k - 1))
    return mean, stats.t.ppf((1 + level) / 2, k - 1) * error, q


def test_the_mean_of_random_effects_is_that_by_hand():
    mean, half, q = by_hand(VALUES, ERRORS)
    assert q > 3, "the cells differ beyond chance"
    result = random_effects(CELLS)
    assert (result.estimate, result.low, result.high) == pytest.approx((mean, mean - half, mean + half))
    assert (result.n, result.method) == (4, "random effects")
    assert random_effects(CELLS, level=0.8).high < result.high


def test_the_interval_covers_the_mean_of_cells_that_differ():
    """Of 2,000 simulated sets of five cells with a spread between them, about 95% (and not fewer)."""
    draw, hits = np.random.default_rng(3), 0
    for _ in range(2000):
        values = 0.3 + 0.2 * draw.normal(size=5) + ERRORS.mean() * draw.normal(size=5)
        hits += not random_effects([normal(value, ERRORS.mean()) for value in values]).excludes(0.3)
    assert 0.935 <= hits / 2000 <= 0.99


def test_one_cell_needs_no_mean_and_printed_ones_have_no_width():
    with pytest.raises(StatsError, match="at least 2 cells; got 1"):
        random_effects(CELLS[:1])
    point = random_effects([Interval(v, v, v, 0.95, 5, "printed") for v in (1.0, 3.0)])
    assert (point.low, point.estimate, point.high) == (2, 2, 2)
