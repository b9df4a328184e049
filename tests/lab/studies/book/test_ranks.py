"""Ranks of methods: rank sets, and whether gains follow isotropy over methods; against scipy and by simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from isonb_lab.papers.association import association
from isonb_lab.papers.rank_sets import rank_sets
from isonb_lab.statistics.seeds import StatsError

TASKS, METHODS = ("a", "b", "c"), ("one", "two", "three", "four", "five")


def table(values, methods=METHODS):
    return {task: dict(zip(methods, row, strict=True)) for task, row in zip(TASKS, values, strict=False)}


DRAW = np.random.default_rng(2)
X, Y = DRAW.normal(size=(2, 3, 5))
Y[:, 1] = Y[:, 2]  # a tie on every task


def correlations(x, y):
    return [stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]


def test_each_task_has_scipys_correlation_and_methods_are_permuted_in_the_same_way_on_all():
    """All 120 orders, one by one: the share whose mean lies as far from 0."""
    result, each = association(table(X), table(Y)), correlations(X, Y)
    assert result.each == pytest.approx(dict(zip(TASKS, each, strict=True)))
    assert result.mean == pytest.approx(np.mean(each))
    orders = map(list, itertools.permutations(range(5)))
    far = [abs(np.mean(correlations(X[:, order], Y))) >= abs(np.mean(each)) - 1e-9 for order in orders]
    assert result.p == pytest.approx(np.mean(far))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (table([[1, 2]], METHODS[:2]), table([[1, 2]], METHODS[:2])),
        (table(X), table(Y[:2])),
        (table(X), table(Y, (*METHODS[:4], "six"))),
        (table(X), table([*Y[:2], [1] * 5])),
    ],
)
def test_tables_that_do_not_fit_are_refused(x, y):
    with pytest.raises(StatsError, match="got"):
        association(x, y)


def scores(means, spread, seeds, draw):
    return {f"m{i}": dict(enumerate(mean + spread * draw.standard_normal(seeds))) for i, mean in enumerate(means)}


def test_clear_methods_have_one_rank_and_equal_ones_all():
    draw = np.random.default_rng(1)
    clear = rank_sets(scores([0.9, 0.5, 0.1], 0.001, 5, draw))
    assert [(value.best, value.worst) for value in clear.values()] == [(1, 1), (2, 2), (3, 3)]
    assert (clear["m0"].beats, clear["m2"].loses_to) == (("m1", "m2"), ("m0", "m1"))
    alike = rank_sets(scores([0.5] * 9, 0.01, 5, draw))
    assert all((item.best, item.worst) == (1, 9) for item in alike.values())


def test_the_true_ranks_are_covered():
    """Of 300 simulated comparisons of five methods, two of them alike, at most 5% leave a true rank out (and noise)."""
    draw = np.random.default_rng(2)
    truth = [(1, 1), (2, 3), (2, 3), (4, 4), (5, 5)]
    missed = 0
    for _ in range(300):
        result = rank_sets(scores([1.0, 0.6, 0.6, 0.3, 0.0], 0.2, 5, draw)).values()
        missed += any(item.best > high or item.worst < low for item, (low, high) in zip(result, truth, strict=True))
    assert missed / 300 < 0.08


def test_methods_without_shared_seeds_are_refused():
    with pytest.raises(StatsError, match="a and b must share 2 seeds; got 1"):
        rank_sets({"a": {0: 0.1, 1: 0.2}, "b": {1: 0.1, 2: 0.3}})
    assert rank_sets({"a": {0: 0.1}})["a"].worst == 1
