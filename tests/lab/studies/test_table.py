"""Which runs failed: at the majority baseline, or below half of the best; accuracies and correlations, one by one."""

import math

import numpy as np
import pandas as pd
import pytest

from isonb.lab.studies.table import failed, lead, row_error


def table(scores, majority, metric, rows):
    return pd.DataFrame({"score": scores, "majority": majority, "metric": metric, "rows": rows})


def test_a_run_fails_up_to_what_the_rows_alone_can_carry_above_the_majority_baseline():
    """0.5 + 1.96 sqrt(0.25 / 400) = 0.549: at the baseline, just below that border, just above it."""
    border = 0.5 + 1.959964 * math.sqrt(0.5 * 0.5 / 400)
    scores = [0.40, 0.50, border - 1e-6, border + 1e-6, 0.80]
    assert failed(table(scores, 0.5, "accuracy", 400)).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("metric", ["matthews", "pearson", "spearman"])
def test_a_correlation_fails_near_zero(metric):
    """The baseline's error is 1 / sqrt(n - 1) there: 0.196 for 101 rows."""
    scores = [-0.3, 0.0, 0.1959, 0.1961, 0.35]
    assert failed(table(scores, 0.0, metric, 101)).tolist() == [True, True, True, False, False]
    assert failed(table(scores, float("nan"), metric, 101)).tolist() == [True, True, True, False, False]


def test_a_run_below_half_of_the_best_of_its_task_failed():
    """Far above the baseline's error, 0.062 for 1,001 rows, and still no model of the task."""
    assert failed(table([0.80, 0.41, 0.40, 0.399, 0.27], 0.0, "pearson", 1001)).tolist() == [False] * 3 + [True] * 2


def test_more_rows_make_a_smaller_border():
    assert failed(table([0.8, 0.53], 0.5, "accuracy", 400)).tolist() == [False, True]
    assert failed(table([0.8, 0.53], 0.5, "accuracy", 4000)).tolist() == [False, False]


def test_where_nothing_learned_all_runs_failed():
    assert failed(table([0.52, 0.50, 0.49], 0.5, "accuracy", 400)).all()


def test_a_run_without_a_score_has_not_failed():
    assert failed(table([0.8, np.nan], 0.5, "accuracy", 400)).tolist() == [False, False]


def test_the_error_over_rows_is_that_of_simulated_rows():
    draw = np.random.default_rng(1)
    shares = draw.binomial(300, 0.7, 20_000) / 300
    assert row_error("accuracy", 0.7, 300) == pytest.approx(shares.std(), rel=0.03)
    x, noise = draw.normal(size=(2, 4000, 300))
    y = 0.8 * x + 0.6 * noise
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    found = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    assert row_error("pearson", 0.8, 300) == pytest.approx(found.std(), rel=0.05)


def test_one_seed_has_the_rows_part_of_a_lead_alone():
    one = lead([0.8], 0.5, "accuracy", 400)
    assert (one.estimate, one.high - one.estimate) == pytest.approx((0.3, 1.959964 * 0.02))
    assert lead([0.8, 0.7, 0.9], 0.5, "accuracy", 400).low < one.low
