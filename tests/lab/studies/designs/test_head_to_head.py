"""The head to head: arms, settings in words, the choice on the holdout, and that the plan keeps to the choice."""

from collections import defaultdict

import pandas as pd
import pytest
from scipy import stats

from isonb.lab.runs.arithmetic import processor_kinds
from isonb.lab.runs.settings import resolve
from isonb.lab.studies.designs import head_to_head as versus
from isonb.lab.studies.study import PLAIN, Study
from isonb.lab.studies.verdicts import OUTCOMES
from isonb.lab.sweeps.grids import load_grid

BASE = {"task": "sst2", "model": "minilm"}


@pytest.mark.parametrize(
    ("given", "arm", "setting"),
    [
        ({"learning_rate": 5e-5}, PLAIN, "rate = 5e-05"),
        ({"method": {"name": "istar", "weight": -0.3}}, versus.LOWER, "λ = -0.3"),
        ({"method": {"name": "istar", "weight": 1}}, versus.RAISE, "λ = 1"),
        ({"method": {"name": "istar", "weight": -0.3, "layers": -1}}, versus.LAST, "λ = -0.3"),
        ({"method": {"name": "softdecay", "alpha": -0.8}}, versus.SOFTDECAY, "first α = -0.8"),
        ({"method": {"name": "isolayer"}}, versus.ISOLAYER, "layer's rate = 0.001"),
        ({"method": "isobn"}, versus.ISOBN, "β = 0.5"),
    ],
)
def test_arms_and_settings(given, arm, setting):
    config = resolve(BASE | {"method": "none"} | given)
    assert (versus.arm_of(config), versus.setting(config)) == (arm, setting)


def test_whitening_is_no_arm():
    assert versus.arm_of(resolve(BASE | {"method": "whitening"})) is None


def test_a_task_has_the_encoder_beside_it_where_it_is_not_minilm():
    configs = [resolve(BASE | {"method": "none"} | more) for more in ({}, {"model": "tiny"})]
    assert [versus.DESIGN.suite_of(config) for config in configs] == ["SST-2", "SST-2 (tiny)"]


def by_cell(planned):
    found = defaultdict(list)
    for run in planned:
        found[versus.DESIGN.suite_of(run.config), versus.arm_of(run.config)].append(run)
    return found


def test_every_method_has_three_tries_and_the_published_one_is_the_first():
    cells = by_cell(load_grid("head_to_head_tuning", "small"))
    assert {arm for _, arm in cells} == set(versus.ARMS)
    for (suite, arm), runs in cells.items():
        assert len(runs) == len({versus.setting(run.config) for run in runs}) == 3, (suite, arm)
        assert {run.config["seed"] for run in runs} == {0}
        name = runs[0].config["method"]["name"]
        if name not in ("none", "istar"):
            usual = resolve(BASE | {"method": name})
            assert versus.setting(runs[0].config) == versus.setting(usual)


def test_the_plan_keeps_to_what_the_holdout_chose():
    """Also for plain training, whose best rate is that of every method; and no seed was tuned on."""
    best = versus.chosen(Study.load(versus.TUNING))
    study = Study.load("head_to_head")
    rates = {}
    for run in study.planned:
        suite, arm = study.design.suite_of(run.config), versus.arm_of(run.config)
        assert run.config["seed"] != 0
        if arm == PLAIN:
            rates[suite] = run.config["learning_rate"]
        tuned = versus.LOWER if arm == versus.LAST else arm
        assert versus.setting(run.config) == best[suite, tuned]
    for run in study.planned:
        assert run.config["learning_rate"] == rates[study.design.suite_of(run.config)]


def test_the_other_choice_is_that_of_the_tuning_elsewhere_where_it_differs():
    here, there = (versus.chosen(Study.load(design)) for design in (versus.TUNING, versus.TUNING_ELSEWHERE))
    apart = {cell: words for cell, words in there.items() if words != here[cell]}
    other = Study.load(versus.OTHER_CHOICE)
    planned = {(versus.suite_of(run.config), versus.arm_of(run.config)): run.config for run in other.planned}
    assert {cell: versus.setting(config) for cell, config in planned.items() if cell[1] != PLAIN} == apart
    study = Study.load("head_to_head")
    assert {run.run_id for run in other.planned if run.config["method"]["name"] == "none"} <= set(study.runs["run_id"])


def test_the_best_score_on_the_holdout_decides():
    study = Study.load(versus.TUNING)
    tried = versus.tried(study)
    for (suite, arm), part in tried.groupby(["suite", "arm"]):
        assert part.chosen.sum() == 1, (suite, arm)
        assert part.held[part.chosen].iloc[0] == part.held.max()
    one = tried.iloc[0]
    logged = study.series[(study.series.run_id == one.run_id) & (study.series.name == "step.validation.accuracy")]
    assert one.held == pytest.approx(logged.value.max())


def test_a_change_is_paired_by_seed_and_measured_where_the_method_acts():
    study = Study.load("head_to_head")
    runs = study.runs.set_index(["suite", "arm", "seed"])
    for arm in (versus.LOWER, versus.ISOLAYER, versus.ISOBN):
        mine, plain = versus.CLOUDS.get(arm, ("end.cls", "end.cls"))
        changes = versus.changed(study, arm, "isoscore")
        assert changes
        for (suite, seed), value in changes.items():
            a, b = runs.loc[(suite, arm, seed)], runs.loc[(suite, PLAIN, seed)]
            known = a[f"metric.{mine}.isoscore"] - b[f"metric.{plain}.isoscore"]
            assert value == pytest.approx(known)
            assert pd.notna(value)


def test_all_runs_are_recorded_and_all_are_of_one_kind_of_processor():
    """The same run ends elsewhere on another kind; the tuning is of the same kind, too."""
    found = [Study.load(design) for design in (versus.DESIGN, versus.TUNING, versus.OTHER_CHOICE)]
    assert not any(study.absent for study in found)
    assert pd.concat([processor_kinds(study.runs) for study in found]).nunique() == 1


def test_every_contradiction_is_judged():
    judged = Study.load("head_to_head").verdicts()
    assert [one.claim.number for one in judged] == ["C1 down", "C1 up", "C2", "C3", "C4", "C5", "C6"]
    assert all(one.outcome in OUTCOMES for one in judged)


def test_eight_comparisons_are_tested_together():
    study = Study.load("head_to_head")
    found = versus.against_plain(study)
    assert set(found.arm) <= set(versus.METHODS)
    raw = {i: float(stats.ttest_1samp(gains(study, row), 0).pvalue) for i, row in enumerate(found.itertuples())}
    order = sorted(raw.values())
    assert min(found.p) == pytest.approx(min(1.0, order[0] * len(order)), rel=1e-6)
    for row in found.itertuples():
        side = versus.ABOVE if row.mean > 0 else versus.BELOW
        assert row.outcome == (side if row.p <= 0.05 else versus.OPEN)


def gains(study, row):
    runs = study.runs.query("suite == @row.suite").set_index(["arm", "seed"]).score
    return (runs[row.arm] - runs[PLAIN]).dropna()
