"""Four methods on STS-B and SST-2: what is judged, and when training has stopped gaining."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isonb_lab.claims.comparing import against_plain
from isonb_lab.claims.study import PLAIN, Study
from isonb_lab.papers import evidence_methods as methods

GAINS = np.array([0.010, 0.014, 0.009, 0.013, 0.011, 0.012])  # of IsoLayer, a seed each
LOWER = "I-STAR (lower)"


@pytest.fixture
def study():
    """STS-B with plain training, IsoLayer and, of three seeds of six, I-STAR."""
    plain = 0.85 + 0.002 * np.arange(6)
    scores = {PLAIN: plain, "IsoLayer": plain + GAINS, LOWER: plain[:3] - 0.05}
    planned = [("STS-B", arm, seed) for arm in scores for seed in range(1, 7)]
    runs = [(*cell, scores[cell[1]][cell[2] - 1]) for cell in planned if cell[2] <= len(scores[cell[1]])]
    runs = pd.DataFrame(runs, columns=["suite", "arm", "seed", "score"])
    runs = runs.assign(metric="pearson", majority=0.0, failed=False, rows=1500, source="recorded")
    runs["run_id"] = runs["arm"] + runs["seed"].astype(str)
    plan = pd.DataFrame(planned, columns=["suite", "arm", "seed"]).assign(cell="")
    plan["run_id"] = (plan["arm"] + plan["seed"].astype(str)).where(lambda ids: ids.isin(set(runs["run_id"])))
    stored = [
        (seed, step, 0.8 + 0.01 * step + 0.001 * seed * (step == 5)) for seed in range(1, 7) for step in (3, 4, 5)
    ]
    series = pd.DataFrame(stored, columns=["seed", "step", "value"]).sample(frac=1, random_state=0)
    series = series.assign(name="step.validation.pearson", suite="STS-B", arm=PLAIN, run_id="")
    return Study(methods.DESIGN, runs, series, plan)


def test_a_cell_is_judged_when_it_is_whole_and_the_others_count_in_its_family(study):
    (row,) = methods.cells(study).reset_index().itertuples()
    assert (row.arm, row.suite, row.n, row.outcome) == ("IsoLayer", "STS-B", 6, "above")
    assert row.p == pytest.approx(9 * stats.ttest_1samp(GAINS, 0).pvalue)
    assert row.most == pytest.approx(stats.ttest_1samp(GAINS, 0).confidence_interval(1 - 0.05 / 9).high)
    half = against_plain(study, methods.METHODS).set_index("arm")
    assert set(half.index) == {"IsoLayer", LOWER}
    assert half.loc["IsoLayer", "p"] < row.p


def test_what_the_last_pass_gained(study):
    result = methods.last_pass(study, "STS-B")
    want = stats.ttest_1samp(0.01 + 0.001 * np.arange(1, 7), 0).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx(tuple(want))


def test_how_much_rounder_a_method_leaves_the_vectors_that_it_acts_on(study):
    runs = study.runs
    runs["metric.end.cls.isoscore_unbiased"] = np.where(runs["arm"] == PLAIN, 0.01 * runs["seed"], 5)
    runs["metric.end.second.isoscore_unbiased"] = np.where(runs["arm"] == "IsoLayer", 0.03 * runs["seed"], 7)
    runs["metric.end.tokens.isoscore_star_all_layers"] = np.where(runs["arm"] == LOWER, 0.1, 0.2)
    assert methods.rounder(study, "IsoLayer", "STS-B") == pytest.approx(3)
    assert methods.rounder(study, LOWER, "STS-B") == pytest.approx(0.5)


@pytest.mark.parametrize(("task", "most"), [("STS-B", 0.005), ("SST-2", 0.0102)])
def test_with_a_linear_head_no_method_gains_and_a_gain_of_a_point_and_a_half_would_have_shown(task, most, studies):
    study = studies["evidence_methods"]
    cells = methods.cells(study).xs(task, level="suite")
    assert set(cells.index) == set(methods.METHODS) - ({"entropy"} if task == "STS-B" else set())
    assert set(zip(cells["n"], cells["outcome"], strict=True)) == {(6, "not significant")}
    assert cells["most"].max() < most
    assert cells["mde"].max() < 0.015
    assert min(study.units("score", PLAIN, [task]).values()) > 0.85


def test_sst2_was_cut_short_and_sts_b_was_not(studies):
    study = studies["evidence_methods"]
    assert methods.last_pass(study, "SST-2").low > 0.005
    assert methods.last_pass(study, "STS-B").high < 0.005
