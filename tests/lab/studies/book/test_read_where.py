"""Doses of what the head reads, judged on simulated runs whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isonb_lab.papers import read_where as study

DOSE = study.DOSES["SST-2, linear head"]
REACHED = {0.0: 2.6, -0.01: 2.0, 0.001: 5.0, 0.003: 15.0, 0.01: 40.0, 0.1: 70.0, 1.0: 95.0}


def simulated(slope=0.0, fall=0.0, spread=0.005, seeds=30):
    """Runs of a dose whose score changes by ``slope`` a doubling, and by ``fall`` at the highest level."""
    draw = np.random.default_rng(3)
    rows = []
    for seed in range(1, seeds + 1):
        local = draw.normal(0.79, 0.01)
        for weight, reached in REACHED.items():
            score = local + slope * np.log2(reached) + (fall if weight == 1.0 else 0.0) + draw.normal(0, spread)
            method = "log_isoscore" if weight else "none"
            rows.append((seed, method, weight, score, reached * draw.uniform(0.97, 1.03)))
    runs = pd.DataFrame(rows, columns=["seed", "method.name", "weight", "score", study.READ])
    return runs.assign(task=DOSE.task, model=DOSE.model, head=DOSE.head, epochs=2)


def judged(frame):
    cells = study.doses(frame, DOSE)
    slope = study.slopes(cells)
    return {cell.name: cell.outcome for cell in study.hypotheses(study.levels(cells), slope, slope.p, 30)}


@pytest.mark.parametrize(
    ("truth", "outcomes"),
    [
        ({}, dict.fromkeys(("R1", "R2", "R3", "R4"), "holds")),
        ({"slope": -0.004}, {"R1": "contradicted"}),
        ({"fall": -0.02}, {"R2": "contradicted", "R3": "contradicted"}),  # a level that loses two points
        ({"spread": 0.04, "seeds": 5}, dict.fromkeys(("R1", "R2", "R3"), "open")),  # few unsteady seeds
    ],
)
def test_hypotheses_follow_the_truth(truth, outcomes):
    assert judged(simulated(**truth)).items() >= outcomes.items()


def test_levels_that_overlap_are_judged_with_all_seeds_alone():
    frame = simulated()
    frame.loc[frame["weight"] == 0.003, study.READ] = 40.0
    assert judged(frame)["R4"] == "contradicted"
    assert judged(frame[frame["seed"] < 20])["R4"] == "open"


def test_seeds_that_an_arm_lacks_are_left_out_of_all():
    frame = simulated()
    cells = study.doses(frame[~((frame["seed"] > 28) & (frame["weight"] == 0.1))], DOSE)
    assert {len(rows) for rows in cells.values()} == {28}


def test_slopes_and_simultaneous_intervals_are_those_of_scipy():
    cells = study.doses(simulated(slope=0.002), DOSE)
    read, scores = (pd.DataFrame({w: rows[name] for w, rows in cells.items()}) for name in (study.READ, "score"))
    each = [stats.linregress(np.log2(read.loc[seed]), 100 * scores.loc[seed]).slope for seed in read.index]
    assert study.slopes(cells).interval.estimate == pytest.approx(np.mean(each))
    assert study.slopes(cells).p == pytest.approx(stats.ttest_1samp(each, 0).pvalue)
    gain = 100 * (cells[1.0]["score"] - cells[0.0]["score"])
    low, high = stats.ttest_1samp(gain, 0).confidence_interval(1 - 0.05 / 6)
    level = study.levels(cells).set_index("weight").loc[1.0]
    assert (level["gain low"], level["gain high"]) == pytest.approx((low, high))


def failing(lost_by, seeds=60):
    """Runs of all arms of the failures; ``lost_by`` says how many of the first seeds an arm loses."""
    plain = {"method.name": "none", "learning_rate": 1e-3, "max_grad_norm": 1.0, "warmup": 0.1}
    rows = [
        plain | dict(settings) | {"seed": seed, "score": 0.5 if seed <= 40 + lost_by.get(arm, 0) else 0.9}
        for arm, settings in study.ARMS.items()
        for seed in range(41, 41 + seeds)
    ]
    runs = pd.DataFrame(rows).assign(majority=0.5, metric="accuracy", rows=400, weight=0.0, **{study.READ: 2.0})
    return runs.assign(task="english_sentiment", model="tiny", head="pooler", epochs=8)


def test_failures_are_those_of_fishers_test():
    table = study.failures(failing({"plain": 16})).set_index("arm")
    assert table.loc["plain", "failed"] == 16
    assert table.loc["entropy", "p"] == pytest.approx(7 * stats.fisher_exact([[0, 60], [16, 44]]).pvalue)
    exact = stats.binomtest(16, 60).proportion_ci(method="exact")
    assert table.loc["plain", ["low", "high"]].tolist() == pytest.approx(list(exact))


@pytest.mark.parametrize(
    ("lost", "seeds", "outcomes"),
    [
        ({"plain": 16}, 60, ("holds", "holds")),
        ({"plain": 16, "half the rate": 16}, 60, ("holds", "contradicted")),
        ({"plain": 16, "half the rate": 16}, 30, ("holds", "open")),
        ({"plain": 2}, 60, ("open", "open")),  # lower, and not significantly
    ],
)
def test_regularisers_and_brakes_are_answered_by_all_their_arms(lost, seeds, outcomes):
    result = study.answers(failing(lost, seeds)).set_index("name")["outcome"]
    assert (result["F1"], result["F2"]) == outcomes
    assert set(result[["R1", "W1", "W2", "H3"]]) == {"open"}  # none of their runs is there


def test_a_contradiction_says_which_shares_it_rests_on_and_what_the_test_could_show():
    result = study.answers(failing({"plain": 5, "entropy": 7, "half the rate": 1})).set_index("name")["why"]
    assert "Runs failed: 5 with plain training, 7 with entropy; by the plan" in result["F1"]
    assert "Runs failed" not in result["F2"]
    assert all("An arm that never fails would show in 12% of such experiments" in result[name] for name in ("F1", "F2"))


@pytest.mark.parametrize(("gain", "outcome"), [(0.02, "contradicted"), (0.0, "holds"), (-0.02, "holds")])
def test_length_is_asked_of_isolayer_and_three_passes(gain, outcome):
    draw = np.random.default_rng(5)
    frame = simulated()
    plain = frame[frame["weight"] == 0].assign(epochs=3, learning_rate=1e-3)
    layer = plain.assign(score=plain["score"] + gain + draw.normal(0, 0.002, len(plain)), **{"method.name": "isolayer"})
    both, change = pd.concat([plain, layer]), 100 * (layer["score"] - plain["score"])
    first = study.length(both)
    assert (first.interval.estimate, first.p) == pytest.approx((change.mean(), stats.ttest_1samp(change, 0).pvalue))
    assert study.answers(both).set_index("name")["outcome"]["H3"] == outcome


def test_each_target_takes_another_weight_the_nearest_first():
    search = pd.DataFrame({"weight": [0.0, 0.1, 0.2, 0.3], study.READ: [1.5, 4.0, 5.2, 16.0]})
    assert study.nearest(search, (5, 15)) == {5: (0.2, 5.2), 15: (0.3, 16.0)}
    assert study.nearest(search, (4.5, 5)) == {4.5: (0.1, 4.0), 5: (0.2, 5.2)}


def test_what_is_said_of_cosreg_and_of_half_the_rate_is_recorded():
    """Head to head and Who is right say that sixty later seeds gain again, and that half the rate gains as much."""
    table = study.failures(study.runs()).set_index("arm")
    assert set(table["seeds"]) == {study.FAILING}
    assert min(table.loc[["CosReg", "half the rate"], "gain low"]) > 0
    assert table.loc["CosReg", "gain low"] < table.loc["half the rate", "gain high"]
