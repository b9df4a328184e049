"""Whether two quantities go together over several tasks: against scipy by task, and all orders counted one by one."""

import itertools

import numpy as np
import pytest
from scipy import stats

from isonb.lab.statistics.seeds import StatsError
from isonb.lab.studies.design import study_file

association = study_file("association").association

TASKS, METHODS = ("a", "b", "c"), ("one", "two", "three", "four", "five")


def table(values, methods=METHODS):
    return {task: dict(zip(methods, row, strict=True)) for task, row in zip(TASKS, values, strict=False)}


DRAW = np.random.default_rng(2)
X, Y = DRAW.normal(size=(2, 3, 5))
Y[:, 1] = Y[:, 2]  # a tie on every task


def mean_correlation(x, y):
    return float(np.mean([stats.spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]))


def test_each_task_has_scipys_correlation():
    found = association(table(X), table(Y))
    assert list(found.each) == list(TASKS)
    assert list(found.each.values()) == pytest.approx(
        [stats.spearmanr(a, b).statistic for a, b in zip(X, Y, strict=True)]
    )
    assert found.mean == pytest.approx(mean_correlation(X, Y))


def test_methods_are_permuted_in_the_same_way_on_all_tasks():
    """All 120 orders, one by one: the share whose mean lies as far from 0."""
    found = abs(mean_correlation(X, Y))
    orders = [list(order) for order in itertools.permutations(range(5))]
    far = [abs(mean_correlation(X[:, order], Y)) >= found - 1e-9 for order in orders]
    assert association(table(X), table(Y)).p == pytest.approx(np.mean(far))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (table([[1, 2]], METHODS[:2]), table([[1, 2]], METHODS[:2])),
        (table(X), table(Y[:2])),
        (table(X), table(Y, (*METHODS[:4], "six"))),
        (table(X), table([*Y[:2], [1] * 5])),
        ({}, {}),
    ],
)
def test_tables_that_do_not_fit_are_refused(x, y):
    with pytest.raises(StatsError, match="got"):
        association(x, y)
