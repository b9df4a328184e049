"""A study on made-up runs: one supported claim, one contradicted, too few seeds, a task at the majority answer."""

from dataclasses import replace

import pandas as pd
import pytest

from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.lab.statistics.intervals import Interval
from isonb.lab.studies import arms
from isonb.lab.studies.design import Design, StudyError
from isonb.lab.studies.study import STUDIES, Study, _why_not, design_of
from isonb.lab.studies.summary import cell_rows, claim_rows, tally
from isonb.lab.studies.verdicts import FEWEST, Claim, Part, by_cell, difference
from isonb.lab.sweeps.grids import Planned

SCORES = {  # task -> arm -> mean score; one answer for every example scores 0.5
    "english_sentiment": {"none": 0.80, "CosReg": 0.85, "IsoBN": 0.70},
    "english_entailment": {"none": 0.51, "CosReg": 0.60, "IsoBN": 0.40},
}
NAMES = {"CosReg": "cosreg", "IsoBN": "isobn", "none": "none"}


def gain(arm):
    return lambda study, suites: by_cell(
        difference(study.units("score", arm, suites), study.units("score", "none", suites))
    )


DESIGN = Design(
    name="made_up",
    page="papers/made_up",
    recordings=(),
    arm=lambda config: {v: k for k, v in NAMES.items()}.get(config["method"]["name"]),
    claims=(
        Claim(1, "CosReg gains", (Part("score", gain("CosReg"), "greater", gated=True),)),
        Claim(2, "IsoBN gains", (Part("score", gain("IsoBN"), "greater", gated=True),)),
        Claim(3, "CosReg changes the score everywhere", (Part("score", gain("CosReg"), "greater"),)),
        Claim(4, "Nothing was run", (Part("score", gain("I-STAR"), "greater"),)),
        Claim(5, "One is one", (Part("score", gain("CosReg"), "greater"),), kind="identity"),
    ),
    suite=lambda config: config["task"].removeprefix("english_"),
)


def config_of(task, arm, seed):
    return resolve({"task": task, "method": NAMES[arm], "seed": seed, "eval_examples": 400})


def record_of(task, arm, seed):
    score = SCORES[task][arm] + 0.01 * (seed - 2) * (1 + (arm != "none"))
    metrics = {"accuracy": score, "baseline.accuracy": 0.5}
    series = {"step.validation.accuracy": [(k, score * k / 10) for k in range(1, 11)]}
    return Record(config=config_of(task, arm, seed), metrics=metrics, series=series, manifest={})


@pytest.fixture
def study(tmp_path):
    seeds = {"english_sentiment": 5, "english_entailment": 5}
    records = {}
    for task in SCORES:
        suite = task.removeprefix("english_")
        records[suite] = [record_of(task, arm, k) for arm in NAMES for k in range(seeds[task])]
    planned = [Planned(r.config, r.run_id) for found in records.values() for r in found]
    planned.append(Planned(extra := config_of("english_sentiment", "none", 9), run_id_of(extra)))
    return Study.of(DESIGN, planned, tmp_path, records)


def run_id_of(config):
    from isonb.lab.runs.run_ids import run_id

    return run_id(config)


def outcomes(study):
    return {one.claim.number: one.outcome for one in study.verdicts("live")}


def test_every_outcome(study):
    assert outcomes(study) == {
        1: "supported",  # sentiment alone counts: entailment is at the majority answer
        2: "contradicted",
        3: "supported",
        4: "not testable",
        5: "supported",
    }


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(0.18, 0.22, ""), (0.14, 0.26, ""), (0.05, 0.35, "too unsure"), (-0.1, 0.5, "not clearly above one answer")],
)
def test_a_lead_counts_from_three_half_widths_on(low, high, words):
    """0.2 ahead: half-widths of 0.02, 0.06, 0.15 and 0.3."""
    found = _why_not(Interval(0.2, low, high, 0.95, 5, "seeds and rows"))
    assert words in found
    assert bool(words) == bool(found)


def test_the_gate_says_why(study):
    assert study.learned("sentiment") == ""
    assert "not clearly above one answer" in study.learned("entailment")
    assert study.learned("nowhere") == "no plain runs"
    (cell,) = (row for row in cell_rows(study.verdicts("live")[:1], tested=False))
    assert (cell["cell"], cell["outcome"]) == ("entailment", "not testable")


def test_a_reservation_keeps_scores_from_being_judged(study):
    design = replace(study.design, reservation="nothing was tuned")
    found = {one.claim.number: one for one in replace(study, design=design).verdicts("live")}
    assert [found[number].outcome for number in (1, 2, 3)] == ["not testable", "not testable", "supported"]
    assert {cell.reason for cell in found[1].cells} == {"nothing was tuned"}


def test_two_seeds_are_too_few(study):
    few = Study(study.design, study.runs[study.runs["seed"] < 2], study.series, study.planned, study.live_suites)
    assert set(outcomes(few).values()) == {"not testable"}


def test_paired_differences_by_hand(study):
    found = study.paired("score", "CosReg", suites=["sentiment"]).iloc[0]
    assert found["n"] == 5
    assert found["mean"] == pytest.approx(0.05)
    assert found["low"] < 0.05 < found["high"]


def test_tails_and_firsts_of_series(study):
    score = study.units("score", "none", ["sentiment"])
    first = study.first("step.validation.accuracy", "none", ["sentiment"])
    tail = study.tail("step.validation.accuracy", "none", ["sentiment"])
    for unit, value in score.items():
        assert first[unit] == pytest.approx(0.1 * value)
        assert tail[unit] == pytest.approx(0.9 * value)  # updates 8, 9 and 10
    assert study.tail_score("none", ["sentiment"]) == tail


def test_what_is_absent_is_named(study):
    assert [run.config["seed"] for run in study.absent] == [9]


def test_tables(study):
    rows = claim_rows({"live": study.verdicts("live")})
    assert rows[0] == {"claim": "1. CosReg gains", "verdict": "supported", "cells in support": "1 of 1"}
    both = claim_rows(dict.fromkeys(("recorded", "live"), study.verdicts("live")))
    assert list(both[0])[1:] == ["recorded", "recorded: cells in support", "live", "live: cells in support"]
    assert rows[4]["claim"].endswith("(identity)")
    assert tally(study.verdicts("live")) == {
        "supported": 2,
        "contradicted": 1,
        "inconclusive": 0,
        "not testable": 1,
    }
    assert tally(study.verdicts("live"), "identity")["supported"] == 1


def test_a_table_of_the_study_is_made_once(study):
    made = []

    def table(of):
        made.append(of)
        return of.values()

    assert study.once(table) is study.once(table)
    assert made == [study]


def test_values_are_long(study):
    found = study.values()
    assert list(found.columns) == ["suite", "arm", "seed", "source", "value"]
    assert len(found) == 30


@pytest.mark.parametrize("call", [lambda: Study.load("nosuch"), lambda: design_of("Study")])
def test_unknown_studies_name_those_there_are(call):
    with pytest.raises(StudyError, match="shrink_the_longest"):
        call()


@pytest.mark.parametrize("name", STUDIES)
def test_every_paper_has_a_study_on_its_recorded_runs(name):
    study = Study.load(name)
    assert study.design.name == name
    judged = study.verdicts()
    numbers = [one.claim.number for one in judged if isinstance(one.claim.number, int)]
    assert numbers == sorted(numbers)
    seeds = study.recorded.groupby(["suite", "arm"])["seed"].nunique()
    few = (seeds >= FEWEST).sum() < 2  # a recording that is still to come has no pair of arms to compare
    assert few or cell_rows(judged), "no cell can be judged"
    coverage = study.coverage()
    assert isinstance(coverage, pd.DataFrame)
    assert len(coverage)


def test_a_part_can_be_judged_on_the_runs_of_another_study(study):
    """By the other study's suites and by what its plain model has learned; live runs are the study's own."""
    borrowed = arms.scored(arms.ENTROPY)
    design = replace(study.design, claims=(Claim(6, "Entropy gains", (borrowed,)),))
    ((there,), other) = (replace(study, design=design).verdicts(), Study.load(arms.HEAD_TO_HEAD))
    assert [cell.name for cell in there.cells] == list(other.suites)
    for cell in there.cells:
        assert (cell.outcome == "not testable") == bool(other.learned(cell.name))
    (live,) = replace(study, design=design).verdicts("live")
    assert (live.outcome, live.cells) == ("not testable", ())
