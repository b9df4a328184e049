"""Random halves and resampled pairs: the spread that theory gives, and intervals against slower ways."""

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from isonb.measures.cosine import mean_cosine
from isonb_lab.statistics.resampling import halves, rank_difference, standard_error
from isonb_lab.statistics.seeds import StatsError
from tests.support import normal


def drawn(n):
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 6, n).astype(float)
    return gold, gold + generator.normal(size=n), np.round(gold + 2 * generator.normal(size=n), 1)


def test_the_interval_is_that_of_the_general_bootstrap():
    gold, a, b = drawn(80)

    def difference(rows):
        return spearmanr(gold[rows], a[rows]).statistic - spearmanr(gold[rows], b[rows]).statistic

    result = rank_difference(gold, a, b)
    slow = [difference(rows) for rows in np.random.default_rng(0).integers(0, 80, (400, 80))]
    assert result.interval.estimate == pytest.approx(difference(slice(None)), abs=1e-12)
    ends = np.quantile(slow, [0.025, 0.975])
    assert (result.interval.low, result.interval.high) == pytest.approx(tuple(ends), abs=0.04)
    assert 0.05 < result.p < 0.2  # the interval includes 0, not by much
    assert rank_difference(gold, b, a).p == pytest.approx(result.p, abs=1e-12)


def test_the_mean_over_parts_and_equal_sides():
    gold, a, b = drawn(60)
    parts = [range(20), range(20, 60)]
    result = rank_difference(gold, a, b, parts)
    gaps = [spearmanr(gold[p], a[p]).statistic - spearmanr(gold[p], b[p]).statistic for p in map(list, parts)]
    assert result.interval.estimate == pytest.approx(np.mean(gaps), abs=1e-12)
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


@pytest.mark.parametrize(
    ("rows", "parts", "message"),
    [
        (slice(-1), None, "must be pairs"),
        (slice(None), [[0], range(1, 60)], "at least 2 pairs"),
        (slice(None), [[0, 0, 0]], "half of the draws"),  # three equal pairs have no ranks
    ],
)
def test_pairs_that_have_no_rank_difference_are_refused(rows, parts, message):
    gold, a, b = drawn(60)
    with pytest.raises(StatsError, match=message):
        rank_difference(gold, a[rows], b, *([] if parts is None else [parts]))


@pytest.mark.parametrize("n", [40, 41])
def test_a_mean_gets_its_textbook_error(n):
    x = normal(n, 3) * torch.tensor([1.0, 5.0, 0.1])
    errors = standard_error(lambda rows: x[rows].mean(0), n, draws=6000)
    torch.testing.assert_close(errors, x.std(0) / n**0.5, rtol=0.04, atol=0)


def test_a_pair_statistic_gets_the_error_that_new_samples_show():
    """Mean cosine of 60 points off the origin: the error from one sample is the spread over 300 fresh ones."""
    clouds = normal(300, 60, 5, seed=1) + 0.5
    errors = [standard_error(lambda rows, x=x: mean_cosine(x[rows]), 60, 100) for x in clouds[:40]]
    torch.testing.assert_close(torch.stack(errors).mean(), mean_cosine(clouds).std(), rtol=0.12, atol=0)


@pytest.mark.parametrize(("n", "draws"), [(3, 10), (10, 1)])
def test_too_little_to_halve(n, draws):
    with pytest.raises(StatsError, match="at least 4 items and 2 draws"):
        halves(n, draws)
