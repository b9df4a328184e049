"""Resampled pairs: their interval against a slower way, their p-value where nothing differs."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from isonb_lab.statistics.resampling import rank_difference
from isonb_lab.statistics.seeds import StatsError


def drawn(n, seed=0, ties=True):
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 6, n).astype(float) if ties else generator.normal(size=n)
    return gold, gold + generator.normal(size=n), np.round(gold + 2 * generator.normal(size=n), 1)


def test_the_interval_is_that_of_the_general_bootstrap():
    gold, a, b = drawn(80)

    def difference(rows):
        return spearmanr(gold[rows], a[rows]).statistic - spearmanr(gold[rows], b[rows]).statistic

    found = rank_difference(gold, a, b)
    slow = [difference(rows) for rows in np.random.default_rng(0).integers(0, 80, (400, 80))]
    assert found.interval.estimate == pytest.approx(difference(slice(None)), abs=1e-12)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        tuple(np.quantile(slow, [0.025, 0.975])), abs=0.04
    )
    assert 0.05 < found.p < 0.2  # the interval includes 0, not by much
    assert rank_difference(gold, b, a).p == pytest.approx(found.p, abs=1e-12)


def test_the_mean_over_parts_and_equal_sides():
    gold, a, b = drawn(60)
    parts = [range(20), range(20, 60)]
    found = rank_difference(gold, a, b, parts)
    gaps = [spearmanr(gold[p], a[p]).statistic - spearmanr(gold[p], b[p]).statistic for p in map(list, parts)]
    assert found.interval.estimate == pytest.approx(np.mean(gaps), abs=1e-12)
    by_size = rank_difference(gold, a, b, parts, by_size=True).interval
    assert by_size.estimate == pytest.approx((gaps[0] * 20 + gaps[1] * 40) / 60, abs=1e-12)
    assert by_size.low < by_size.estimate < by_size.high
    same = rank_difference(gold, a, a)
    assert (same.interval.low, same.interval.high, same.p) == (0.0, 0.0, 1.0)


def test_a_p_value_without_a_difference_is_about_uniform():
    below = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        gold = generator.normal(size=60)
        a, b = gold + generator.normal(size=(2, 60))
        below += rank_difference(gold, a, b, draws=1000).p < 0.2
    assert 10 <= below <= 32  # 20 +- 3 standard deviations


def test_large_sets_get_fewer_draws(monkeypatch):
    monkeypatch.setattr("isonb_lab.statistics.resampling.WORK", 100_000)
    gold, a, b = drawn(60)
    assert rank_difference(gold, a, b).draws == 1666
    assert rank_difference(gold, a, b, draws=1200).draws == 1200
    with pytest.raises(StatsError, match="must be pairs"):
        rank_difference(gold, a[:-1], b)
    with pytest.raises(StatsError, match="at least 2 pairs"):
        rank_difference(gold, a, b, [[0], range(1, 60)])
    with pytest.raises(StatsError, match="half of the draws"):
        rank_difference([1.0, 1.0, 1.0], a[:3], b[:3])
