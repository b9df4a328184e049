"""Statistics of few seeds, against scipy, values worked by hand, and simulated coverage."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from isonb.errors import InputError
from isonb_lab.statistics.resampling import bootstrap
from isonb_lab.statistics.seeds import Interval, StatsError, holm, minimum_detectable, random_effects, share, student

FIVE = np.array([0.8, 1.9, -0.3, 1.1, 0.4])


def test_student_is_scipys():
    theirs = stats.ttest_1samp(FIVE, 0).confidence_interval(0.9)
    ours = student(FIVE, level=0.9)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_expanded_against_every_resample():
    """All 3,125 of them, at quantiles so far out that the width is Student's where many values are normal."""
    means = np.array(list(itertools.product(FIVE, repeat=5))).mean(1)
    tail = stats.norm.cdf(math.sqrt(5 / 4) * stats.t.ppf(0.025, 4))
    ours = bootstrap(FIVE, draws=200_000)
    assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(means, [tail, 1 - tail])), abs=0.03)
    x = np.random.default_rng(0).normal(size=200)
    ours, theirs = bootstrap(x, draws=50_000), student(x)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


@given(st.lists(st.integers(0, 60).map(lambda k: k / 200), min_size=1, max_size=8), st.sampled_from([0.05, 0.2]))
@example([0.01, 0.04], 0.05)  # which Bonferroni's method tells apart
def test_holm_rejects_what_the_step_down_rejects(p, alpha):
    result = holm({str(i): value for i, value in enumerate(p)})
    rejected = set()
    for rank, i in enumerate(np.argsort(p, kind="stable")):
        if p[i] * (len(p) - rank) > alpha:
            break
        rejected.add(str(i))
    assert {name for name, value in result.items() if value <= alpha} == rejected


@pytest.mark.parametrize("n", [3, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 32])  # of one test, and of the first step of Holm's method over 32
def test_the_minimum_detectable_effect_is_shown_in_four_of_five_samples(n, alpha):
    samples = np.random.default_rng(5).normal(minimum_detectable(0.03, n, alpha=alpha), 0.03, (20_000, n))
    shown = (stats.ttest_1samp(samples, 0, axis=1).pvalue <= alpha).mean()
    assert shown == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("count", "n"), [(0, 30), (4, 10), (5, 5)])
def test_the_interval_of_a_share_is_that_of_the_beta_law(count, n):
    ours = share(count, n)
    low = stats.beta.ppf(0.025, count, n - count + 1) if count else 0
    high = stats.beta.ppf(0.975, count + 1, n - count) if count < n else 1
    assert (ours.estimate, ours.low, ours.high) == pytest.approx((count / n, low, high))


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimum_detectable(1.0, 1),
        lambda: minimum_detectable(-1.0, 5),
        lambda: minimum_detectable(math.inf, 5),
        lambda: minimum_detectable(1.0, 5, alpha=0.9),
        lambda: share(3, 2),
        lambda: share(-1, 2),
        lambda: share(1, 2, level=1),
        lambda: bootstrap([1.0]),
        lambda: bootstrap([1.0, math.nan]),
        lambda: bootstrap([[1.0, 2.0]]),
        lambda: bootstrap(["a", "b"]),
        lambda: student(FIVE, level=0),
        lambda: holm({"a": math.nan}),
        lambda: holm({}),
    ],
)
def test_bad_input(call):
    with pytest.raises(StatsError, match="got"):
        call()
    assert issubclass(StatsError, InputError)


VALUES, ERRORS = np.array([0.10, 0.30, 0.35, 0.65]), np.array([0.05, 0.08, 0.10, 0.20])
CELLS = [
    Interval(value, value - half, value + half, 0.95, 50, "percentile")
    for value, half in zip(VALUES, stats.norm.ppf(0.975) * ERRORS, strict=True)
]


def test_the_mean_of_random_effects_is_that_by_hand():
    """DerSimonian and Laird's variance between cells by Cochran's Q, and the interval of Hartung and Knapp."""
    weights = ERRORS**-2.0
    q = (weights * (VALUES - np.average(VALUES, weights=weights)) ** 2).sum()
    assert q > 3, "the cells differ beyond chance"
    between = (q - 3) / (weights.sum() - (weights**2).sum() / weights.sum())
    spread = 1 / (ERRORS**2 + between)
    mean = np.average(VALUES, weights=spread)
    half = stats.t.ppf(0.975, 3) * np.sqrt(np.average((VALUES - mean) ** 2, weights=spread) / 3)
    result = random_effects(CELLS)
    assert (result.estimate, result.low, result.high) == pytest.approx((mean, mean - half, mean + half))
    assert (result.n, result.method) == (4, "random effects")
    assert random_effects(CELLS, level=0.8).high < result.high


@pytest.mark.parametrize("errors", [(0, 0.2, 0.3), (0, 0, 0.2), (0, 0, 0)])
def test_a_cell_without_width_is_the_limit_of_narrow_ones(errors):
    ends = []
    for least in (0.0, 1e-6):
        cells = [Interval(x, x - e, x + e, 0.95, 9, "percentile") for x, e in zip((1, 2, 5), errors, strict=True)]
        cells = [replace(cell, low=cell.low - least, high=cell.high + least) for cell in cells]
        ends.append(random_effects(cells).ends)
    assert ends[0] == pytest.approx(ends[1], abs=1e-4)


def test_one_cell_needs_no_mean_and_printed_ones_have_no_width():
    with pytest.raises(StatsError, match="at least 2 cells; got 1"):
        random_effects(CELLS[:1])
    point = random_effects([Interval(v, v, v, 0.95, 5, "printed") for v in (1.0, 3.0)])
    assert (point.low, point.estimate, point.high) == (2, 2, 2)
