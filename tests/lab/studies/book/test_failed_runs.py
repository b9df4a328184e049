"""Failed fine-tunings: the recorded counts, against scipy, and made-up runs."""

import pandas as pd
import pytest
from scipy import stats

from isonb_lab.claims.study import PLAIN
from isonb_lab.papers import failed_runs
from isonb_lab.papers.arms import COSREG, METHODS, SOFTDECAY, SPECTRUM
from isonb_lab.papers.failed_runs import FAST, prevented, unsteady_runs
from isonb_lab.runs.recordings import recorded


@pytest.fixture(scope="module")
def runs(head_to_head):
    return unsteady_runs(head_to_head)


def test_three_regularisers_never_failed_where_plain_training_did_in_four_of_ten(runs):
    result = prevented(runs)
    assert result.arms == (COSREG, SOFTDECAY, SPECTRUM)
    for share, count, n in ((result.methods, 0, 30), (result.plain, 4, 10)):
        exact = stats.binomtest(count, n).proportion_ci(method="exact")
        assert (share.estimate, share.n) == (count / n, n)
        assert (share.low, share.high) == pytest.approx((exact.low, exact.high))
    assert result.p == pytest.approx(stats.fisher_exact([[0, 30], [4, 6]]).pvalue)


def test_cosreg_against_plain_training_with_new_seeds():
    """Against a table of the recording and scipy; the settings are those of the cell of the head to head."""
    wide = recorded("evidence_head_to_head").runs.pivot(index="seed", columns="method.name", values="metric.accuracy")
    chance = 0.549  # 0.5 and what 400 rows of two classes explain
    assert set(wide.index) == set(range(11, 41))
    gains = failed_runs.gains_with_new_seeds()
    assert gains["gain"].to_dict() == pytest.approx((100 * (wide["cosreg"] - wide["none"])).to_dict())
    assert gains["failed"].to_dict() == (wide <= chance).any(axis=1).to_dict()
    lost, result = (wide <= chance).sum(), failed_runs.with_new_seeds()
    assert result.methods.estimate * 30 == pytest.approx(lost["cosreg"])
    assert result.plain.estimate * 30 == pytest.approx(lost["none"])
    table = [[lost[name], 30 - lost[name]] for name in ("cosreg", "none")]
    assert result.p == pytest.approx(stats.fisher_exact(table).pvalue)


def test_the_runs_with_new_seeds_have_the_settings_of_the_head_to_head(head_to_head):
    """All but the seed and how much of a run is measured."""
    new, old = failed_runs.new_seeds(), head_to_head.runs.query("suite == 'sentiment (tiny)'")
    others = {"cloud_examples", "track_every", "seed", "run_id", "score", "failed"}
    names = [name for name in new if name in old and "." not in name and name not in others]
    names += ["method.weight", "method.layers"]
    assert len(names) > 20
    sides = [frame[names].astype(object).where(lambda rows: rows.notna(), "") for frame in (new, old)]
    for arm in (PLAIN, COSREG):
        (first,), (second,) = (side[side["arm"] == arm].astype(str).drop_duplicates().to_numpy() for side in sides)
        assert [value.removesuffix(".0") for value in first] == [value.removesuffix(".0") for value in second]


def test_the_unsteady_tasks_are_those_on_which_a_plain_run_failed(runs):
    assert set(runs["suite"]) == {"sentiment (tiny)", FAST}
    assert set(runs["arm"]) == {PLAIN, *METHODS}
    counts = runs.groupby(["suite", "arm"]).size()
    assert (counts == 5).all(), "five seeds each, and none of the tuning"
    failed = runs[runs["arm"] == PLAIN].groupby("suite")["failed"].sum()
    assert failed.to_dict() == {"sentiment (tiny)": 2, FAST: 2}


def test_an_arm_that_lacks_a_task_or_failed_once_is_none_of_those_that_never_did():
    counts = {PLAIN: {"a": 3, "b": 1}, "x": {"a": 0, "b": 0}, "y": {"a": 0}, "z": {"a": 0, "b": 1}}
    result = pd.DataFrame(
        [
            (suite, arm, seed, seed < count)
            for arm, part in counts.items()
            for suite, count in part.items()
            for seed in range(5)
        ],
        columns=["suite", "arm", "seed", "failed"],
    )
    outcome = prevented(result)
    assert (outcome.arms, outcome.methods.n, outcome.plain.estimate) == (("x",), 10, 0.4)
    nobody = prevented(result[result["arm"].isin([PLAIN, "z"])])
    assert (nobody.arms, nobody.methods.n, nobody.methods.high, nobody.p) == ((), 0, 1.0, 1.0)
