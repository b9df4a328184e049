"""The head to head: arms, settings in words, the choice on the holdout, and that the plan keeps to the choice."""

from collections import defaultdict

import pandas as pd
import pytest
from scipy import stats
from support import columns_of

from isonb_lab.claims import comparing
from isonb_lab.claims.study import PLAIN
from isonb_lab.claims.table import task_and_encoder
from isonb_lab.claims.verdicts import NO_SETTING
from isonb_lab.papers import arms
from isonb_lab.papers import head_to_head as versus
from isonb_lab.papers.arms import METHODS
from isonb_lab.papers.studies import load_study
from isonb_lab.runs.manifest import processor_kinds
from isonb_lab.runs.settings import resolve
from isonb_lab.sweeps.grids import load_grid

BASE = {"task": "sst2", "model": "minilm"}


@pytest.mark.parametrize(
    ("inputs", "arm", "setting"),
    [
        ({"learning_rate": 5e-5}, PLAIN, "rate = 5e-05"),
        ({"method": {"name": "istar", "weight": -0.3}}, arms.LOWER, "λ = -0.3"),
        ({"method": {"name": "softdecay", "alpha": -0.8}}, arms.SOFTDECAY, "first α = -0.8"),
        ({"method": {"name": "isolayer"}}, arms.ISOLAYER, "layer's rate = 0.001"),
        ({"method": "isobn"}, arms.ISOBN, "β = 0.5"),
    ],
)
def test_the_tuned_setting_in_words(inputs, arm, setting):
    settings = columns_of(resolve(BASE | {"method": "none"} | inputs))
    assert (versus.arm_of(settings), versus.setting(settings)) == (arm, setting)


def runs_by_cell(grid):
    """The settings of the runs that a grid asks for, by task and arm."""
    results = defaultdict(list)
    for run in load_grid(grid, "small"):
        settings = columns_of(run.config)
        results[task_and_encoder(settings), versus.arm_of(settings)].append(settings)
    return results


def test_every_method_has_three_tries_and_the_published_one_is_the_first():
    cells = runs_by_cell("head_to_head_tuning")
    assert {arm for _, arm in cells} == set(arms.ARMS)
    for cell, runs in cells.items():
        assert len(runs) == len({versus.setting(run) for run in runs}) == 3, cell
        assert {run["seed"] for run in runs} == {0}
        name = runs[0]["method.name"]
        if name not in ("none", "istar"):
            assert versus.setting(runs[0]) == versus.setting(columns_of(resolve(BASE | {"method": name})))


@pytest.fixture(scope="module")
def tuning():
    return load_study(versus.TUNING)


def test_the_plan_keeps_to_what_the_holdout_chose(tuning):
    """Also for plain training, whose best rate is that of every method; and no seed was tuned on."""
    best = versus.chosen(tuning)
    planned = runs_by_cell("head_to_head")
    rates = {suite: runs[0]["learning_rate"] for (suite, arm), runs in planned.items() if arm == PLAIN}
    for (suite, arm), runs in planned.items():
        tuned = arms.LOWER if arm == arms.LAST else arm
        assert {versus.setting(run) for run in runs} == {best[suite, tuned]}
        assert {run["learning_rate"] for run in runs} == {rates[suite]}
        assert 0 not in {run["seed"] for run in runs}


def test_the_other_choice_is_that_of_the_tuning_elsewhere_where_it_differs(head_to_head, tuning):
    """All runs are recorded and of one kind of processor: the same run ends elsewhere on another kind."""
    here, second = (versus.chosen(study) for study in (tuning, load_study(versus.TUNING_ELSEWHERE)))
    differing = {cell: text for cell, text in second.items() if text != here[cell]}
    planned = runs_by_cell("head_to_head_other_choice")
    assert {cell: versus.setting(runs[0]) for cell, runs in planned.items() if cell[1] != PLAIN} == differing
    other = load_study(versus.OTHER_CHOICE)
    assert set(other.plan.query("arm == @PLAIN")["run_id"]) <= set(head_to_head.runs["run_id"])
    studies = (head_to_head, tuning, other)
    assert not any(study.absent for study in studies)
    assert pd.concat([processor_kinds(study.runs) for study in studies]).nunique() == 1


def test_all_comparisons_are_tested_together(head_to_head):
    """48 of them; the two without a working setting are no tests."""
    result = comparing.against_plain(head_to_head, METHODS)
    tested = result[result.p.notna()]
    assert (set(result.arm), len(result), len(tested)) == (set(METHODS), 48, 46)
    assert set(result[result.p.isna()].outcome) == {NO_SETTING}
    scores = head_to_head.runs.set_index(["suite", "arm", "seed"])["score"].sort_index()
    gains = [(scores[row.suite, row.arm] - scores[row.suite, PLAIN]).dropna() for row in tested.itertuples()]
    least = min(stats.ttest_1samp(gain, 0).pvalue for gain in gains)
    assert tested.p.min() == pytest.approx(46 * least, rel=1e-6)
    clear = tested[tested.outcome != comparing.OPEN]
    assert clear[["arm", "suite", "outcome"]].to_numpy().tolist() == [[arms.ISOLAYER, "STS-B", comparing.ABOVE]]
    assert (clear.p <= 0.05).all()
