"""A study on made-up runs: supported and contradicted claims, too few seeds, failed runs, a task that none learned."""

from dataclasses import replace

import pytest
from made_up import scored_run, study_of
from scipy import stats

from isonb_lab.claims.design import Design, StudyError
from isonb_lab.claims.summary import cell_rows, claim_rows, tally
from isonb_lab.claims.verdicts import NO_SETTING, Change, Claim, Prediction, Reason, smallest_visible
from isonb_lab.papers import arms
from isonb_lab.papers.studies import design_of, load_study
from isonb_lab.runs.settings import resolve
from isonb_lab.runs.table import flat
from isonb_lab.statistics.seeds import student

SCORES = {  # task -> arm -> mean score; the majority baseline scores 0.5
    "english_sentiment": {"none": 0.80, "CosReg": 0.85, "IsoBN": 0.70},
    "english_entailment": {"none": 0.49, "CosReg": 0.52, "IsoBN": 0.40},
}
NAMES = {"CosReg": "cosreg", "IsoBN": "isobn", "none": "none"}


def gains(arm, **options):
    return Prediction("score", Change("score", arm), "greater", **options)


DESIGN = Design(
    name="made_up",
    page="papers/made_up",
    recordings=(),
    arm=lambda settings: {v: k for k, v in NAMES.items()}.get(settings["method.name"]),
    claims=(
        Claim(1, "CosReg gains", (gains("CosReg", trained=True, arms=("CosReg",)),)),
        Claim(2, "IsoBN gains", (gains("IsoBN", trained=True),)),
        Claim(3, "CosReg changes the score everywhere", (gains("CosReg"),)),
        Claim(4, "Nothing was run", (gains("I-STAR"),)),
        Claim(5, "One is one", (gains("CosReg"),), kind="identity"),
    ),
    suite=lambda settings: settings["task"].removeprefix("english_"),
)


def settings_of(task, arm, seed):
    return {"task": task, "method": NAMES[arm], "seed": seed, "eval_examples": 400}


PLAN = [flat(resolve(settings_of(task, arm, k))) for task in SCORES for arm in NAMES for k in range(5)]


def record_of(task, arm, seed, score=None):
    score = SCORES[task][arm] + 0.01 * (seed - 2) * (1 + (arm != "none")) if score is None else score
    series = {"step.validation.accuracy": [(k, score * k / 10) for k in range(1, 11)]}
    series |= {"step.early": [(5, 1.0)], "layer.share": [(100, 1.0)]}
    return scored_run(settings_of(task, arm, seed), score, series=series)


@pytest.fixture
def study():
    records = {DESIGN.suite({"task": t}): [record_of(t, arm, k) for arm in NAMES for k in range(5)] for t in SCORES}
    return study_of(DESIGN, records, PLAN)


def outcomes(study):
    return {verdict.claim.number: verdict.outcome for verdict in study.verdicts()}


def test_every_outcome(study):
    assert outcomes(study) == {
        1: "supported",  # sentiment alone counts: nothing learned entailment
        2: "contradicted",
        3: "supported",
        4: "not testable",
        5: "supported",
    }


def test_a_task_that_nothing_learned_says_so(study):
    assert study.unlearned("sentiment") is None
    assert study.unlearned("entailment") is Reason.UNLEARNED
    assert study.unlearned("nowhere") is Reason.NO_RUNS
    assert study.decisive == ("sentiment",)
    (cell,) = (row for row in cell_rows(study.verdicts()[:1], tested=False))
    assert (cell["cell"], cell["outcome"]) == ("entailment", "not testable")


def with_scores(study, suite, arm, scores):
    """The study with other scores of an arm, and its failed runs found anew."""
    every = study.runs.set_index(["suite", "arm", "seed"])["score"].to_dict()
    every |= {(suite, arm, seed): score for seed, score in enumerate(scores)}
    records = {
        name: [record_of(f"english_{name}", a, k, every[name, a, k]) for a in NAMES for k in range(5)]
        for name in study.suites
    }
    return study_of(study.design, records, PLAN)


def test_a_task_counts_where_plain_training_fails_now_and_then(study):
    """Three of five plain runs at the baseline: another arm learned the task, so the comparison is told."""
    shaky = with_scores(study, "entailment", "none", [0.50, 0.81, 0.49, 0.50, 0.82])
    shaky = with_scores(shaky, "entailment", "CosReg", [0.80, 0.82, 0.81, 0.79, 0.83])
    assert shaky.unlearned("entailment") is None
    failures = shaky.failures(["entailment"]).set_index("arm")
    assert failures["failed"].to_dict() == {"none": 3, "CosReg": 0, "IsoBN": 5}
    for row in failures.itertuples():
        exact = stats.binomtest(int(row.failed), int(row.n)).proportion_ci(method="exact")
        assert (row.share, row.low, row.high) == pytest.approx((row.failed / 5, exact.low, exact.high))
    (first,) = (result for result in shaky.verdicts() if result.claim.number == 1)
    assert [(cell.name, cell.outcome) for cell in first.cells] == [
        ("sentiment", "supported"),
        ("entailment", "inconclusive"),
    ]


@pytest.mark.parametrize(("failed", "why"), [(2, None), (3, Reason.UNLEARNED)])
def test_a_task_is_learned_where_one_arm_learns_it_in_most_of_its_runs(study, failed, why):
    """Whatever plain training does there."""
    for arm in ("none", "IsoBN"):
        study = with_scores(study, "sentiment", arm, [0.5] * 5)
    study = with_scores(study, "sentiment", "CosReg", [0.5] * failed + [0.8] * (5 - failed))
    result = study.failures(["sentiment"]).set_index("arm")["failed"]
    assert result.to_dict() == {"none": 5, "CosReg": failed, "IsoBN": 5}
    assert study.unlearned("sentiment") is why


def test_a_method_without_a_working_setting_says_nothing_there(study):
    """It neither supports nor contradicts a claim, whatever its runs were."""
    broken = replace(study, no_setting=frozenset({("CosReg", "sentiment")}))
    result = {verdict.claim.number: verdict for verdict in broken.verdicts()}
    assert [(cell.name, cell.outcome) for cell in result[1].cells] == [
        ("sentiment", NO_SETTING),
        ("entailment", "not testable"),
    ]
    assert result[1].cells[0].explanation == "each setting of CosReg that was tried ended at the majority baseline"
    assert (result[1].outcome, result[2].outcome) == ("not testable", "contradicted")


def test_paired_differences_by_hand(study):
    result = study.paired("score", "CosReg", suites=["sentiment"]).iloc[0]
    assert result["n"] == 5
    assert result["mean"] == pytest.approx(0.05)
    reference = stats.ttest_1samp([0.03, 0.04, 0.05, 0.06, 0.07], 0).confidence_interval(0.95)
    assert (result["low"], result["high"]) == pytest.approx((reference.low, reference.high))
    stricter = study.paired("score", "CosReg", suites=["sentiment"], alpha=0.05 / 32).iloc[0]
    assert stricter["mde"] == pytest.approx(smallest_visible(student([0.03, 0.04, 0.05, 0.06, 0.07]), 0.05 / 32))
    assert stricter["mde"] > 2 * result["mde"]


def test_the_tail_is_the_mean_of_the_last_updates(study):
    score = study.units("score", "none", ["sentiment"])
    tail = study.tail("step.validation.accuracy", "none", ["sentiment"])
    assert tail == {unit: pytest.approx(0.9 * value) for unit, value in score.items()}  # updates 8, 9 and 10


def test_tables(study):
    judged = study.verdicts()
    rows = claim_rows(judged)
    assert rows[0] == {
        "claim": "1. CosReg gains",
        "verdict": "supported (tiny; sentiment)",
        "cells for · against": "1 · 0 of 1",
    }
    assert rows[1]["cells for · against"] == "0 · 1 of 1"
    assert rows[3]["cells for · against"] == "–"
    assert rows[4]["claim"].endswith("(identity)")
    counts = {outcome: count for outcome, count in tally(judged).items() if count}
    assert counts == {"supported": 2, "contradicted": 1, "not testable": 1}


def test_the_mean_over_cells_stands_below_them(study):
    """And is no cell where there is one alone."""
    rows = [row for row in cell_rows(study.verdicts()) if row["claim"] == 3]
    assert [row["cell"] for row in rows] == ["sentiment", "entailment", "mean, over seeds"]
    assert rows[2]["mean"] == pytest.approx((rows[0]["mean"] + rows[1]["mean"]) / 2)
    assert (rows[2]["outcome"], rows[2]["n"]) == ("supported", 5)
    assert rows[2]["low"] < rows[2]["mean"] < rows[2]["high"]
    assert rows[2]["mde"] > 0
    assert [row["cell"] for row in cell_rows(study.verdicts()) if row["claim"] == 1] == ["sentiment"]


@pytest.mark.parametrize("call", [lambda: load_study("nosuch"), lambda: design_of("Study")])
def test_unknown_studies_name_those_there_are(call):
    with pytest.raises(StudyError, match="shrink_the_longest"):
        call()


def test_a_prediction_can_be_judged_on_the_runs_of_another_study(study, head_to_head):
    """By the other study's suites, and by what learned and has a setting there."""
    design = replace(study.design, claims=(Claim(6, "Entropy gains", (arms.scored(arms.ENTROPY),)),))
    whole = replace(study, design=design, others={arms.HEAD_TO_HEAD: head_to_head})
    (second,) = whole.verdicts()
    assert [cell.name for cell in second.cells] == list(head_to_head.suites)
    for cell in second.cells:
        assert (cell.interval is None) == bool(head_to_head.unlearned(cell.name))
