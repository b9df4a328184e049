"""The head to head: arms, settings in words, the choice on the holdout, and that the plan keeps to the choice."""

from collections import defaultdict
from statistics import fmean

import pandas as pd
import pytest
from scipy import integrate, stats
from support import columns_of

from isonb.lab.runs.arithmetic import processor_kinds
from isonb.lab.runs.settings import resolve
from isonb.lab.statistics.association import association
from isonb.lab.statistics.seeds import student
from isonb.lab.studies import comparing
from isonb.lab.studies.designs import head_to_head as versus
from isonb.lab.studies.study import PLAIN, Study
from isonb.lab.studies.verdicts import NO_SETTING, by_cell, difference
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
    settings = columns_of(resolve(BASE | {"method": "none"} | given))
    assert (versus.arm_of(settings), versus.setting(settings)) == (arm, setting)


def test_whitening_is_no_arm():
    assert versus.arm_of(columns_of(resolve(BASE | {"method": "whitening"}))) is None


def test_a_task_has_the_encoder_beside_it_where_it_is_not_minilm():
    configs = [columns_of(resolve(BASE | {"method": "none"} | more)) for more in ({}, {"model": "tiny"})]
    assert [versus.DESIGN.suite_of(config) for config in configs] == ["SST-2", "SST-2 (tiny)"]


def runs_by_cell(grid):
    """The settings of the runs that a grid asks for, by task and arm."""
    found = defaultdict(list)
    for run in load_grid(grid, "small"):
        settings = columns_of(run.config)
        found[versus.suite_of(settings), versus.arm_of(settings)].append(settings)
    return found


def test_every_method_has_three_tries_and_the_published_one_is_the_first():
    cells = runs_by_cell("head_to_head_tuning")
    assert {arm for _, arm in cells} == set(versus.ARMS)
    for (suite, arm), runs in cells.items():
        assert len(runs) == len({versus.setting(run) for run in runs}) == 3, (suite, arm)
        assert {run["seed"] for run in runs} == {0}
        name = runs[0]["method.name"]
        if name not in ("none", "istar"):
            usual = columns_of(resolve(BASE | {"method": name}))
            assert versus.setting(runs[0]) == versus.setting(usual)


def test_the_plan_keeps_to_what_the_holdout_chose():
    """Also for plain training, whose best rate is that of every method; and no seed was tuned on."""
    best = versus.chosen(Study.load(versus.TUNING))
    planned = runs_by_cell("head_to_head")
    rates = {suite: runs[0]["learning_rate"] for (suite, arm), runs in planned.items() if arm == PLAIN}
    for (suite, arm), runs in planned.items():
        tuned = versus.LOWER if arm == versus.LAST else arm
        assert {versus.setting(run) for run in runs} == {best[suite, tuned]}
        assert {run["learning_rate"] for run in runs} == {rates[suite]}
        assert 0 not in {run["seed"] for run in runs}


def test_the_other_choice_is_that_of_the_tuning_elsewhere_where_it_differs(head_to_head):
    here, there = (versus.chosen(Study.load(design)) for design in (versus.TUNING, versus.TUNING_ELSEWHERE))
    apart = {cell: words for cell, words in there.items() if words != here[cell]}
    planned = runs_by_cell("head_to_head_other_choice")
    assert {cell: versus.setting(runs[0]) for cell, runs in planned.items() if cell[1] != PLAIN} == apart
    plain = Study.load(versus.OTHER_CHOICE).plan.query("arm == @PLAIN")["run_id"]
    assert set(plain) <= set(head_to_head.runs["run_id"])


def test_the_best_score_on_the_holdout_decides():
    study = Study.load(versus.TUNING)
    tried = versus.tried(study)
    for (suite, arm), part in tried.groupby(["suite", "arm"]):
        assert part.chosen.sum() == 1, (suite, arm)
        assert part.held[part.chosen].iloc[0] == part.held.max()
    one = tried.iloc[0]
    logged = study.series[(study.series.run_id == one.run_id) & (study.series.name == "step.validation.accuracy")]
    assert one.held == pytest.approx(logged.value.max())


@pytest.mark.parametrize(
    ("arm", "mine", "plain"),
    [
        (versus.LOWER, "tokens", "tokens"),
        (versus.ENTROPY, "cls", "cls"),
        (versus.ISOLAYER, "second", "cls"),
        (versus.ISOBN, "features", "features"),
    ],
)
def test_a_change_is_paired_by_seed_and_measured_where_the_method_acts(head_to_head, arm, mine, plain):
    runs = head_to_head.runs.set_index(["suite", "arm", "seed"])
    changes = comparing.changed(head_to_head, arm, "isoscore")
    assert {suite for suite, _ in changes} == set(head_to_head.suites)
    for (suite, seed), value in changes.items():
        a, b = runs.loc[(suite, arm, seed)], runs.loc[(suite, PLAIN, seed)]
        assert value == pytest.approx(a[f"metric.end.{mine}.isoscore"] - b[f"metric.end.{plain}.isoscore"])
        assert pd.notna(value)


def test_cosreg_makes_the_tokens_that_it_acts_on_more_isotropic(head_to_head, verdicts):
    """C2 where the method acts: lower mean cosine and higher IsoScore* on each of the six tasks."""
    for name, sign in (("mean_cosine", -1), (comparing.ALL_LAYERS, 1)):
        for values in by_cell(comparing.changed(head_to_head, versus.COSREG, name)).values():
            assert sign * student(values).estimate > student(values).high - student(values).estimate
    (second,) = (one for one in verdicts["head_to_head"] if one.claim.number == "C2")
    assert second.words == "supported"
    assert [cell.outcome for cell in second.parts[0].cells] == ["supported"] * 6


def test_isotropy_of_the_tokens_times_four_and_divided_by_three_leaves_the_score(head_to_head):
    """I-STAR on SST-2 (tiny): IsoScore* of the tokens from 0.18 to 0.75 and to 0.06, the score within half a point."""
    runs = head_to_head.runs[head_to_head.runs["suite"] == "SST-2 (tiny)"]
    means = runs.groupby("arm")[[f"metric.end.tokens.{comparing.ALL_LAYERS}", "score"]].mean()
    isotropy, score = (means[column] for column in means)
    assert isotropy[[versus.LOWER, PLAIN, versus.RAISE]].tolist() == pytest.approx([0.06, 0.18, 0.75], abs=0.005)
    assert (score[[versus.LOWER, versus.RAISE]] - score[PLAIN]).tolist() == pytest.approx([-0.001, 0.004], abs=6e-4)


def test_all_runs_are_recorded_and_all_are_of_one_kind_of_processor():
    """The same run ends elsewhere on another kind; the tuning is of the same kind, too."""
    found = [Study.load(design) for design in (versus.DESIGN, versus.TUNING, versus.OTHER_CHOICE)]
    assert not any(study.absent for study in found)
    assert pd.concat([processor_kinds(study.runs) for study in found]).nunique() == 1


def test_all_comparisons_are_tested_together(head_to_head):
    """48 of them; the two without a working setting are no tests."""
    found = comparing.against_plain(head_to_head)
    assert set(found.arm) == set(versus.METHODS)
    tested = found[found.p.notna()]
    assert (len(found), len(tested)) == (48, 46)
    assert set(found[found.p.isna()].outcome) == {NO_SETTING}
    raw = sorted(float(stats.ttest_1samp(gains(head_to_head, row), 0).pvalue) for row in tested.itertuples())
    assert tested.p.min() == pytest.approx(raw[0] * 46, rel=1e-6)
    clear = tested[tested.outcome != comparing.OPEN]
    assert clear[["arm", "suite", "outcome"]].to_numpy().tolist() == [[versus.ISOLAYER, "STS-B", comparing.ABOVE]]
    assert (clear.p <= 0.05).all()


def test_what_a_verdict_of_the_head_to_head_can_see(head_to_head):
    """The median minimum detectable effect, by scipy's quadrature of the power at alpha / 46: about seven points."""
    found = comparing.against_plain(head_to_head)
    assert found.visible.median() == pytest.approx(0.073, abs=0.001)
    row = found[(found.arm == versus.SOFTDECAY) & (found.suite == "CoLA")].iloc[0]
    spread, border = gains(head_to_head, row).std(), stats.t.ppf(1 - 0.05 / 46 / 2, 4)

    def seen(s):
        power = stats.norm.sf(border * s - row.visible * 5**0.5 / spread)
        return power * 2 * 4 * s * stats.chi2.pdf(4 * s**2, 4)  # of the sample's spread s, in units of the true one

    assert integrate.quad(seen, 0, 6)[0] == pytest.approx(0.8, abs=0.002)


def gains(study, row):
    runs = study.runs[study.runs["suite"] == row.suite].set_index(["arm", "seed"])["score"]
    return (runs[row.arm] - runs[PLAIN]).dropna()


# --- isotropy and gain -----------------------------------------------------------------------------------------------

FOUR = ("SST-2", "CoLA", "STS-B", "SST-2 (tiny)")
SENTENCES = {versus.ISOLAYER: ("second", "cls"), versus.SOFTDECAY: ("features", "features")}
SENTENCES |= {versus.ISOBN: ("features", "features")}


def associated(study, arms, suites=FOUR):
    """How the change of IsoScore of the sentence vectors that a method ends with goes with its gain."""

    def by_method(of):
        every = {arm: by_cell(of(arm)) for arm in arms}
        return {suite: {arm: fmean(cells[suite]) for arm, cells in every.items()} for suite in suites}

    def moved(arm):
        mine, plain = SENTENCES.get(arm, ("cls", "cls"))
        places = ((mine, arm), (plain, PLAIN))
        return difference(*(study.units(f"metric.end.{place}.isoscore", one) for place, one in places))

    def gained(arm):
        return difference(study.units("score", arm), study.units("score", PLAIN))

    return association(by_method(moved), by_method(gained))


def test_isotropy_and_gain_go_together_by_two_methods(head_to_head):
    """Clear over four tasks together; not without the two methods that lose most, nor over all six tasks."""
    found = associated(head_to_head, versus.METHODS)
    assert list(found.each.values()) == pytest.approx([0.57, 0.26, 0.36, 0.52], abs=0.005)
    assert found.p == pytest.approx(0.005, abs=5e-4)
    rest = [arm for arm in versus.METHODS if arm != versus.LOWER]
    assert associated(head_to_head, rest).p == pytest.approx(0.03, abs=0.01)
    assert associated(head_to_head, [arm for arm in rest if arm != versus.SPECTRUM]).p > 0.1
    assert associated(head_to_head, versus.METHODS, head_to_head.suites).p > 0.1
