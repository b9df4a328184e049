"""Levels of reached isotropy and what the plan says of them, on made-up runs with a known answer."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isonb_lab.papers import dose as STUDY

TOKENS = "metric.end.tokens.isoscore_all_layers"
TIMES = (0.1, 0.35, 0.7, 1.4, 2.5, 4.5)  # of the plain isotropy, 0.1


def rows(method, weight, times, gain, spread=0.002):
    """Runs of one level: isotropy and score scattered about their means, the same scatter at every call."""
    noise = np.linspace(-1, 1, 10)
    draws = np.random.default_rng(abs(int(1000 * weight)) + (method == "istar")).permutation(noise)
    score = 0.9 + 0.01 * gain + spread * draws + 0.01 * noise
    measured = {TOKENS: 0.1 * times, "metric.end.cls.isoscore_unbiased": 0.1 * times}
    measured |= {"metric.end.features.isoscore_unbiased": 0.001}
    runs = pd.DataFrame({"seed": range(1, 11), "score": score, "majority": 0.5, "metric": "accuracy", "rows": 2000})
    runs = runs.assign(**{name: value * (1 + 0.02 * noise) for name, value in measured.items()})
    settings = {"task": "task", "model": "tiny", "head": "pooler", "method.name": method, "method.weight": weight}
    return runs.assign(**settings)


def result(gains, **changes):
    treated = [
        rows(method, (i + 1 if times > 1 else -i - 1), times, gain, **changes)
        for method, _ in STUDY.PLACES.values()
        for i, (times, gain) in enumerate(zip(TIMES, gains, strict=True))
    ]
    runs = pd.concat([rows("none", 0.0, 1.0, 0.0), *treated], ignore_index=True)
    return STUDY.task_runs(runs, "task")


def outcomes(gains, **changes):
    return {token.name: token.outcome for token in STUDY.hypotheses(STUDY.levels(result(gains, **changes), "tokens"))}


@pytest.mark.parametrize(
    ("gains", "spread", "expected"),
    [
        ((-5, -2, 0, 0, -2, -5), 0.002, dict.fromkeys(("D1", "D2", "D3", "D4", "D5"), "holds")),
        ((-5, -2, 0, 0, 3, -5), 0.002, {"D2": "contradicted", "D3": "holds"}),
        ((2, -2, 0, 0, 0, -5), 0.002, {"D2": "holds", "D3": "contradicted", "D4": "contradicted"}),
        ((-5, -2, 0, -3, 0, 0), 0.002, {"D4": "contradicted", "D5": "contradicted"}),
        ((0,) * 6, 0.08, {"D1": "holds"} | dict.fromkeys(("D2", "D3", "D4", "D5"), "open")),  # what no seed could show
    ],
)
def test_hypotheses_follow_the_gains(gains, spread, expected):
    assert outcomes(gains, spread=spread).items() >= expected.items()


def test_gains_are_those_of_scipys_paired_test_with_holms_correction_over_twelve():
    runs = result((-5, -0.3, 0, 0, -0.2, -5))
    table = STUDY.levels(runs, "tokens").set_index("weight")
    plain = runs[runs["place"] == "plain"].set_index("seed")["score"]
    levels = runs[runs["place"] != "plain"].groupby(["place", "weight"])
    tests = {key: stats.ttest_rel(level.set_index("seed")["score"], plain).pvalue for key, level in levels}
    order = sorted(tests, key=tests.get)
    corrected = np.minimum(1, np.maximum.accumulate([(12 - i) * tests[key] for i, key in enumerate(order)]))
    for key, p in zip(order, corrected, strict=True):
        if key[0] == "tokens":
            assert table.loc[key[1], "p"] == pytest.approx(p, rel=1e-9)


def test_levels_enough_apart_that_do_not_reach_far_enough_contradict_nothing():
    table = STUDY.levels(result((0, 0, 0, 0, 0, 0)), "tokens")
    near = table.assign(times=table["times"].clip(upper=3.9))
    assert STUDY.hypotheses(near)[0].outcome == "open"
    same = near.assign(**{"reached low": 0.01, "reached high": 0.5})
    assert STUDY.hypotheses(same)[0].outcome == "contradicted"


def test_a_level_without_all_its_seeds_is_no_level_and_six_are_needed():
    runs = result((-5, -2, 0, 0, -2, -5))
    cut = runs[~((runs["weight"] == 6) & (runs["place"] == "tokens") & (runs["seed"] == 4))]
    table = STUDY.levels(cut, "tokens")
    assert sorted(table["weight"]) == [-3, -2, -1, 0, 4, 5]
    assert STUDY.hypotheses(table) == []
    assert STUDY.levels(runs[runs["place"] != "plain"], "tokens").empty


def test_a_level_is_near_only_if_it_is_so_whichever_run_is_left_out():
    """One run of ten at 2.05 times the plain isotropy lifts the mean of nine at 0.35 to 0.52."""
    runs = result((-5, -2, -3, 0, -2, -5))
    level = (runs["weight"] == -3) & (runs["place"] == "tokens")
    calm = runs.assign(**{TOKENS: runs[TOKENS].mask(level, 0.052)})
    lifted = runs.assign(**{TOKENS: runs[TOKENS].mask(level, 0.035).mask(level & (runs["seed"] == 1), 0.205)})
    answers = [STUDY.hypotheses(STUDY.levels(item, "tokens"))[4] for item in (calm, lifted)]
    assert [answer.outcome for answer in answers] == ["contradicted", "open"]
    assert answers[1].why.startswith("0.65: no level near it")
    table = STUDY.levels(lifted, "tokens").set_index("weight")
    assert table.loc[-3, "times least"] == pytest.approx(0.35, rel=0.01)


def test_what_the_head_reads_is_told_beside_what_was_moved():
    table = STUDY.levels(result((0, 0, 0, 0, 0, 0)), "tokens")
    assert table["read"].tolist() == pytest.approx([1 + 127 * 0.001] * 7)
    assert (table["read high"] > table["read"]).all()


def test_the_search_has_single_runs_in_order_of_isotropy():
    runs = result((0, 0, 0, 0, 0, 0))
    tried = STUDY.search(pd.concat([runs, runs[runs["seed"] == 1].assign(seed=0)], ignore_index=True), "[CLS]")
    assert set(tried["seed"]) == {0}
    assert set(tried["place"]) == {"[CLS]", "plain"}
    assert tried["reached"].is_monotonic_increasing
