"""A study on made-up runs: supported and contradicted claims, too few seeds, failed runs, a task that none learned."""

from dataclasses import replace

import pytest
from made_up import scored_run, study_of
from scipy import stats

from isonb_lab.claims.design import Design, StudyError
from isonb_lab.claims.summary import cell_rows, claim_rows, tally
from isonb_lab.claims.verdicts import NO_SETTING, Change, Claim, Prediction, Reason, smallest_visible, tail
from isonb_lab.papers.studies import load_study
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


def record_of(task, arm, seed, score):
    series = {"step.validation.accuracy": [(k, score * k / 10) for k in range(1, 11)]}
    series |= {"step.early": [(5, 1.0)], "layer.share": [(100, 1.0)]}
    settings = {"task": task, "method": NAMES[arm], "seed": seed, "eval_examples": 400}
    return scored_run(settings, score, series=series)


def study_with(scores):
    """The study of five seeds; ``scores`` of some (suite, arm) in place of the usual ones."""
    records = {}
    for task, means in SCORES.items():
        usual = {arm: [mean + 0.01 * k * (1 + (arm != "none")) for k in range(-2, 3)] for arm, mean in means.items()}
        suite = DESIGN.suite({"task": task})
        records[suite] = [
            record_of(task, arm, seed, score)
            for arm in NAMES
            for seed, score in enumerate(scores.get((suite, arm), usual[arm]))
        ]
    return study_of(DESIGN, records)


@pytest.fixture(scope="module")
def study():
    return study_with({})


def test_every_outcome(study):
    """Of the first two sentiment alone counts: nothing learned entailment."""
    result = [verdict.outcome for verdict in study.verdicts()]
    assert result == ["supported", "contradicted", "supported", "not testable", "supported"]


def test_a_task_that_nothing_learned_says_so(study):
    assert study.unlearned("sentiment") is None
    assert study.unlearned("entailment") is Reason.UNLEARNED
    assert study.unlearned("nowhere") is Reason.NO_RUNS
    assert study.decisive == ("sentiment",)
    (cell,) = cell_rows(study.verdicts()[:1], tested=False)
    assert (cell["cell"], cell["outcome"]) == ("entailment", "not testable")


def test_a_task_counts_where_plain_training_fails_now_and_then():
    """Three of five plain runs at the baseline: another arm learned the task, so the comparison is told."""
    plain, cosreg = [0.50, 0.81, 0.49, 0.50, 0.82], [0.80, 0.82, 0.81, 0.79, 0.83]
    shaky = study_with({("entailment", "none"): plain, ("entailment", "CosReg"): cosreg})
    assert shaky.unlearned("entailment") is None
    failures = shaky.failures(["entailment"]).set_index("arm")
    assert failures["failed"].to_dict() == {"none": 3, "CosReg": 0, "IsoBN": 5}
    exact = stats.binomtest(3, 5).proportion_ci(method="exact")
    assert failures.loc["none", ["share", "low", "high"]].tolist() == pytest.approx([0.6, exact.low, exact.high])
    sentiment, entailment = shaky.verdicts()[0].cells
    assert (sentiment.outcome, entailment.outcome) == ("supported", "inconclusive")


@pytest.mark.parametrize(("failed", "why"), [(2, None), (3, Reason.UNLEARNED)])
def test_a_task_is_learned_where_one_arm_learns_it_in_most_of_its_runs(failed, why):
    """Whatever plain training does there."""
    lost = {"none": 5, "IsoBN": 5, "CosReg": failed}
    study = study_with({("sentiment", arm): [0.5] * k + [0.8] * (5 - k) for arm, k in lost.items()})
    assert study.unlearned("sentiment") is why


def test_a_method_without_a_working_setting_says_nothing_there(study):
    """It neither supports nor contradicts a claim, whatever its runs were."""
    broken = replace(study, no_setting=frozenset({("CosReg", "sentiment")}))
    first, second, *_ = broken.verdicts()
    assert [cell.outcome for cell in first.cells] == [NO_SETTING, "not testable"]
    assert first.cells[0].explanation == "each setting of CosReg that was tried failed"
    assert (first.outcome, second.outcome) == ("not testable", "contradicted")


def test_paired_differences_by_hand(study):
    result = study.paired("score", "CosReg", suites=["sentiment"]).iloc[0]
    assert result["n"] == 5
    assert result["mean"] == pytest.approx(0.05)
    reference = stats.ttest_1samp([0.03, 0.04, 0.05, 0.06, 0.07], 0).confidence_interval(0.95)
    assert (result["low"], result["high"]) == pytest.approx((reference.low, reference.high))
    stricter = study.paired("score", "CosReg", suites=["sentiment"], alpha=0.05 / 32).iloc[0]
    assert stricter["mde"] == pytest.approx(smallest_visible(student([0.03, 0.04, 0.05, 0.06, 0.07]), 0.05 / 32))
    assert stricter["mde"] > 2 * result["mde"]


def test_a_single_seed_has_no_interval():
    study = study_with({("sentiment", "none"): [0.5], ("sentiment", "CosReg"): [0.6]})
    assert study.paired("score", "CosReg", suites=["sentiment"]).empty
    result = study.paired("score", "CosReg", suites=["sentiment"], fewest=1).iloc[0]
    assert (result["n"], result["mean"]) == (1, pytest.approx(0.1))
    assert result[["low", "high", "mde"]].isna().all()


def test_the_tail_is_the_mean_of_the_last_updates(study):
    score = study.units("score", "none", ["sentiment"])
    late = study.units(tail("step.validation.accuracy"), "none", ["sentiment"])
    assert late == {unit: pytest.approx(0.9 * value) for unit, value in score.items()}  # updates 8, 9 and 10
    runs = list(study.runs["run_id"])
    assert study.tails("step.nothing", runs) == study.tails("step.validation.accuracy", []) == {}


def test_tables(study):
    judged = study.verdicts()
    rows = claim_rows(judged)
    assert list(rows[0].values()) == ["1. CosReg gains", "supported (tiny; sentiment)", "1 · 0 of 1"]
    assert [row["cells for · against"] for row in (rows[1], rows[3])] == ["0 · 1 of 1", "–"]
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
    assert [row["cell"] for row in cell_rows(study.verdicts()) if row["claim"] == 1] == ["sentiment"]


def test_an_unknown_study_names_those_there_are():
    with pytest.raises(StudyError, match="shrink_the_longest"):
        load_study("nosuch")
