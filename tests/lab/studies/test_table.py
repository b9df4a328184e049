"""Which runs failed: at the majority baseline, or below half of the best; accuracies and correlations, one by one."""

import math

import numpy as np
import pandas as pd
import pytest

from isonb_lab.claims.table import failed, lead, row_error

NAN = float("nan")
BORDER = 0.5 + 1.959964 * math.sqrt(0.5 * 0.5 / 400)  # 0.549: what 400 rows alone can carry


@pytest.mark.parametrize(
    ("scores", "majority", "metric", "rows", "fail"),
    [
        ([0.40, 0.50, BORDER - 1e-6, BORDER + 1e-6, 0.80], 0.5, "accuracy", 400, [1, 1, 1, 0, 0]),
        ([0.8, 0.53], 0.5, "accuracy", 4000, [0, 0]),  # more rows make a smaller border
        ([0.8, NAN], 0.5, "accuracy", 400, [0, 0]),  # without a score nothing is known
        # the baseline's error is 1 / sqrt(n - 1) near a correlation of 0: 0.196 for 101 rows
        ([-0.3, 0.0, 0.1959, 0.1961, 0.35], 0.0, "matthews", 101, [1, 1, 1, 0, 0]),
        ([-0.3, 0.0, 0.1959, 0.1961, 0.35], NAN, "spearman", 101, [1, 1, 1, 0, 0]),
        ([0.80, 0.41, 0.40, 0.399, 0.27], 0.0, "pearson", 1001, [0, 0, 0, 1, 1]),  # below half of the best
    ],
)
def test_a_run_fails_near_the_majority_baseline_or_below_half_of_the_best(scores, majority, metric, rows, fail):
    runs = pd.DataFrame({"score": scores, "majority": majority, "metric": metric, "rows": rows})
    assert failed(runs).tolist() == list(map(bool, fail))


def test_the_error_over_rows_is_that_of_simulated_rows():
    draw = np.random.default_rng(1)
    shares = draw.binomial(300, 0.7, 5_000) / 300
    assert row_error("accuracy", 0.7, 300) == pytest.approx(shares.std(), rel=0.03)
    x, noise = draw.normal(size=(2, 4000, 300))
    y = 0.8 * x + 0.6 * noise
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    result = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    assert row_error("pearson", 0.8, 300) == pytest.approx(result.std(), rel=0.05)


def test_one_seed_has_the_rows_part_of_a_lead_alone():
    first = lead([0.8], 0.5, "accuracy", 400)
    assert (first.estimate, first.high - first.estimate) == pytest.approx((0.3, 1.959964 * 0.02))
    assert lead([0.8, 0.7, 0.9], 0.5, "accuracy", 400).low < first.low
