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
    for (suite, arm), runs in cells.items():
        assert len(runs) == len({versus.setting(run) for run in runs}) == 3, (suite, arm)
        assert {run["seed"] for run in runs} == {0}
        name = runs[0]["method.name"]
        if name not in ("none", "istar"):
            usual = columns_of(resolve(BASE | {"method": name}))
            assert versus.setting(runs[0]) == versus.setting(usual)


def test_the_plan_keeps_to_what_the_holdout_chose():
    """Also for plain training, whose best rate is that of every method; and no seed was tuned on."""
    best = versus.chosen(load_study(versus.TUNING))
    planned = runs_by_cell("head_to_head")
    rates = {suite: runs[0]["learning_rate"] for (suite, arm), runs in planned.items() if arm == PLAIN}
    for (suite, arm), runs in planned.items():
        tuned = arms.LOWER if arm == arms.LAST else arm
        assert {versus.setting(run) for run in runs} == {best[suite, tuned]}
        assert {run["learning_rate"] for run in runs} == {rates[suite]}
        assert 0 not in {run["seed"] for run in runs}


def test_the_other_choice_is_that_of_the_tuning_elsewhere_where_it_differs(head_to_head):
    here, second = (versus.chosen(load_study(design)) for design in (versus.TUNING, versus.TUNING_ELSEWHERE))
    differing = {cell: text for cell, text in second.items() if text != here[cell]}
    planned = runs_by_cell("head_to_head_other_choice")
    assert {cell: versus.setting(runs[0]) for cell, runs in planned.items() if cell[1] != PLAIN} == differing
    plain = load_study(versus.OTHER_CHOICE).plan.query("arm == @PLAIN")["run_id"]
    assert set(plain) <= set(head_to_head.runs["run_id"])


def test_all_runs_are_recorded_and_all_are_of_one_kind_of_processor():
    """The same run ends elsewhere on another kind; the tuning is of the same kind, too."""
    results = [load_study(design) for design in (versus.DESIGN, versus.TUNING, versus.OTHER_CHOICE)]
    assert not any(study.absent for study in results)
    assert pd.concat([processor_kinds(study.runs) for study in results]).nunique() == 1


def test_all_comparisons_are_tested_together(head_to_head):
    """48 of them; the two without a working setting are no tests."""
    result = comparing.against_plain(head_to_head, METHODS)
    assert set(result.arm) == set(METHODS)
    tested = result[result.p.notna()]
    assert (len(result), len(tested)) == (48, 46)
    assert set(result[result.p.isna()].outcome) == {NO_SETTING}
    raw = sorted(float(stats.ttest_1samp(gains(head_to_head, row), 0).pvalue) for row in tested.itertuples())
    assert tested.p.min() == pytest.approx(raw[0] * 46, rel=1e-6)
    clear = tested[tested.outcome != comparing.OPEN]
    assert clear[["arm", "suite", "outcome"]].to_numpy().tolist() == [[arms.ISOLAYER, "STS-B", comparing.ABOVE]]
    assert (clear.p <= 0.05).all()


def gains(study, row):
    runs = study.runs[study.runs["suite"] == row.suite].set_index(["arm", "seed"])["score"]
    return (runs[row.arm] - runs[PLAIN]).dropna()
