"""What would decide an open claim, against the power of Student's test and against numbers worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isonb.lab.studies.design import study_file
from isonb.lab.studies.verdicts import Claim, Prediction, judge, judge_prediction

undecided = study_file("undecided")


def judged(values, **options):
    prediction = Prediction("gain", lambda study, suites: {}, "greater", **options)
    units = {("a", seed): value for seed, value in enumerate(values)}
    return judge(Claim(1, "It gains", (prediction,)), [judge_prediction(prediction, units, ["a"], {})])


STUDY = SimpleNamespace(
    suites=("a", "b"), others={}, runs=pd.DataFrame({"suite": ["a", "a", "b"], "manifest.seconds": [30.0, 40.0, 900.0]})
)
OPEN = [0.03, -0.02, 0.02, -0.01, 0.005]


@pytest.mark.parametrize("room", [0.0, 0.025])
def test_so_many_seeds_decide_in_four_of_five_repetitions(room):
    (row,) = undecided.needs(STUDY, [judged(OPEN, room=room)])
    n, gap = row["seeds"], max(np.mean(OPEN), room - np.mean(OPEN))
    power = [stats.nct.sf(stats.t.ppf(0.975, k - 1), k - 1, gap * k**0.5 / np.std(OPEN, ddof=1)) for k in (n - 1, n)]
    assert power[0] < 0.8 <= power[1]
    assert (row["runs"], row["hours"]) == (2 * n, pytest.approx(2 * n * 35 / 3600))
    assert row["what"] == "more seeds"


def test_a_decided_claim_needs_nothing_and_a_missing_encoder_is_named():
    assert undecided.needs(STUDY, [judged([0.1, 0.11, 0.12])]) == []
    asked = judge(Claim(2, "It depends", (), needs="a larger encoder"), [])
    (row,) = undecided.needs(STUDY, [asked])
    assert (row["what"], row["seeds"], row["hours"]) == ("a larger encoder", None, None)


def test_a_mean_on_its_border_has_no_number_of_seeds():
    (row,) = undecided.needs(STUDY, [judged([0.02, -0.02, 0.03, -0.03, 0.0001])])
    assert row["seeds"] is None
    assert "border" in row["what"]
