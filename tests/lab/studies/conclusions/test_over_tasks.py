"""Gains over several tasks together, on made-up runs of the head to head."""

import pytest
from scipy import stats

from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.lab.studies.conclusions.answers import together
from isonb.lab.studies.conclusions.over_tasks import over_tasks, seed_means
from isonb.lab.studies.designs import head_to_head as versus
from isonb.lab.studies.study import Study
from isonb.lab.sweeps.grids import Planned

TASKS = ("english_sentiment", "english_paraphrase", "english_entailment")
SUITES = ("sentiment (tiny)", "paraphrase (tiny)", "entailment (tiny)")
PLAIN = {"english_sentiment": 0.7, "english_paraphrase": 0.9, "english_entailment": 0.51}  # one answer scores 0.5
GAINS = {"cosreg": (0.03, 0.05, 0.04), "isobn": (-0.02, 0.01, 0.02)}  # in lead-of-plain units, by seed


def record(task, method, seed):
    lead = PLAIN[task] - 0.5
    noise = 0.004 * lead * (seed - 2)  # its mean over the seeds is 0, so the lead is as written above
    score = PLAIN[task] + noise + (GAINS[method][seed - 1] * lead if method != "none" else 0)
    config = resolve({"task": task, "model": "tiny", "method": method, "seed": seed, "eval_examples": 400})
    return Record(config=config, metrics={"accuracy": score, "baseline.accuracy": 0.5}, series={}, manifest={})


@pytest.fixture
def study(tmp_path):
    live = {
        suite: [record(task, method, seed) for method in ("none", *GAINS) for seed in (1, 2, 3)]
        for suite, task in zip(SUITES, TASKS, strict=True)
    }
    planned = [Planned(one.config, one.run_id) for records in live.values() for one in records]
    return Study.of(versus.DESIGN, planned, tmp_path, live)


def test_the_gains_of_a_seed_are_averaged_in_units_of_what_training_adds(study):
    found = over_tasks(study).set_index("arm")
    assert list(found.index) == ["IsoBN", "CosReg"]
    for arm, method in (("CosReg", "cosreg"), ("IsoBN", "isobn")):
        row, known = found.loc[arm], stats.ttest_1samp(GAINS[method], 0)
        assert (row.tasks, row.n) == (2, 3)  # the third task is not learned
        assert row["mean"] == pytest.approx(sum(GAINS[method]) / 3)
        interval = known.confidence_interval(0.95)
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high))
    raw = sorted(float(stats.ttest_1samp(values, 0).pvalue) for values in GAINS.values())
    assert found.p.min() == pytest.approx(2 * raw[0])
    assert found.outcome.to_dict() == {"IsoBN": versus.OPEN, "CosReg": versus.ABOVE}


def test_a_task_can_be_left_out(study):
    assert over_tasks(study, SUITES[:1]).tasks.tolist() == [1, 1]


def test_seeds_that_a_task_lacks_are_left_out():
    assert seed_means({("a", 1): 1.0, ("a", 2): 3.0, ("b", 2): 1.0}, {"a": 1.0, "b": 0.5}) == [2.5]
    assert seed_means({("a", 1): 1.0}, {}) == []


def test_no_runs_give_no_rows(tmp_path):
    empty = over_tasks(Study.of(versus.DESIGN, [], tmp_path, {}))
    assert empty.empty
    assert together(empty) == ""


def test_in_words(study):
    spread = sorted(float(stats.sem(values)) for values in GAINS.values())
    visible = (stats.t.ppf(0.975, 2) + stats.t.ppf(0.8, 2)) * sum(spread) / 2  # the median of two
    assert together(over_tasks(study)) == (
        "Over 2 tasks together, CosReg is clearly above plain fine-tuning, and none is clearly below. For half of the "
        f"2 methods a true gain of {100 * visible:.1f}% of the plain model's lead would have shown."
    )
