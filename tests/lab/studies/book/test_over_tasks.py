"""Gains over several tasks together, on made-up runs of the head to head."""

from dataclasses import replace

import pytest
from made_up import scored_run, study_of
from scipy import stats

from isonb_lab.claims import comparing
from isonb_lab.papers import arms
from isonb_lab.papers import head_to_head as versus
from isonb_lab.papers.over_tasks import over_tasks, steady

TASKS = ("english_sentiment", "english_paraphrase", "english_entailment")
SUITES = ("sentiment (tiny)", "paraphrase (tiny)", "entailment (tiny)")
PLAIN = dict(zip(TASKS, (0.7, 0.9, 0.52), strict=True))  # the majority baseline scores 0.5
GAINS = {"cosreg": (0.03, 0.05, 0.04), "isobn": (-0.02, 0.01, 0.02)}  # in lead-of-plain units, by seed


def record(task, method, seed, gain):
    lead = PLAIN[task] - 0.5
    noise = 0.004 * lead * (seed - 1)  # its mean over the seeds is 0, so the lead is as written above
    settings = {"task": task, "model": "tiny", "method": method, "seed": seed, "eval_examples": 400}
    return scored_run(settings, PLAIN[task] + noise + gain * lead)


def gaining(*gains):
    """A study of the first tasks, on each of which methods gain that by seed; plain training is beside them."""
    records = {
        suite: [
            record(task, name, seed, gain)
            for name, row in ({"none": (0, 0, 0)} | some).items()
            for seed, gain in enumerate(row)
        ]
        for suite, task, some in zip(SUITES, TASKS, gains, strict=False)
    }
    return study_of(versus.DESIGN, records)


@pytest.fixture
def study():
    return gaining(GAINS, GAINS, GAINS)


def test_the_gains_of_a_seed_are_averaged_in_units_of_what_training_adds(study):
    result = over_tasks(study).set_index("arm")
    assert list(result.index) == ["IsoBN", "CosReg"]
    for arm, method in (("CosReg", "cosreg"), ("IsoBN", "isobn")):
        row, reference = result.loc[arm], stats.ttest_1samp(GAINS[method], 0)
        assert (row.tasks, row.n) == (2, 3)  # plain runs of the third failed
        assert row["mean"] == pytest.approx(sum(GAINS[method]) / 3)
        interval = reference.confidence_interval(0.95)
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high))
    least = min(stats.ttest_1samp(values, 0).pvalue for values in GAINS.values())
    assert result.p.min() == pytest.approx(2 * least)
    assert result.outcome.to_dict() == {"IsoBN": comparing.OPEN, "CosReg": comparing.ABOVE}


def test_a_task_without_a_working_setting_is_none_of_a_method(study):
    result = over_tasks(replace(study, no_setting=frozenset({("CosReg", SUITES[0])}))).set_index("arm")
    assert result["tasks"].to_dict() == {"IsoBN": 2, "CosReg": 1}


def test_what_one_task_carries_is_no_outcome_of_all():
    """A large gain on one task, and none on the other: clear together, and told as carried by the first."""
    (row,) = over_tasks(gaining({"cosreg": (0.6, 0.63, 0.61)}, {"cosreg": (0.02, -0.02, 0.0)})).to_dict("records")
    assert row["low"] > 0
    assert row["p"] < 0.05
    assert (row["carried"], row["outcome"]) == (SUITES[0], comparing.OPEN)


def test_tasks_on_which_plain_training_failed_once_are_left_out(head_to_head):
    assert steady(head_to_head) == ("SST-2", "CoLA", "STS-B", "MRPC", "SST-2 (tiny)")
    assert "sentiment (tiny)" in head_to_head.decisive, "though others learned it"


def test_over_all_tasks_no_method_is_clearly_above_or_below(head_to_head):
    """I-STAR (lower) loses a tenth of what training adds, and MRPC alone carries that."""
    result = over_tasks(head_to_head).set_index("arm")
    assert set(result["outcome"]) == {comparing.OPEN}
    assert result["carried"].to_dict() == dict.fromkeys(result.index, "") | {arms.LOWER: "MRPC"}
    assert result.loc[arms.LOWER, "p"] < 0.05
