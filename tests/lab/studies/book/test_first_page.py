"""The first page has no kernel, so its numbers stand in its source: they are those that the runs give now."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import isonb
from isonb.lab.runs.recordings import recorded, scored
from isonb.lab.studies import comparing
from isonb.lab.studies.design import study_file
from isonb.lab.studies.study import PLAIN, Study
from isonb.lab.studies.verdicts import by_cell, difference

arms = study_file("arms")
dose = study_file("dose")
failed_runs = study_file("failed_runs")
softdecay = study_file("softdecay")
LOWER, RAISE = arms.LOWER, arms.RAISE
METHODS = arms.METHODS

SUITE = "SST-2 (tiny)"
HOME = Path(isonb.__file__).parents[1]


def words(page):
    return " ".join((HOME / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", ["book/intro.md", "README.md"])
def test_what_a_cosine_gains_and_loses_by_whitening(page, studies):
    found = softdecay.vector_gains(studies["softdecay"]).query("protocol == 'mean'")
    found = found[found["arm"] == softdecay.WHITENING]
    means = found.groupby(found["suite"].str.split(", ").str[0])["mean"]
    assert means.count().to_dict() == {"minilm": 7, "tiny": 7}
    assert f"{means.mean()['tiny']:.1f} points" in words(page)
    assert f"takes {-means.mean()['minilm']:.1f}" in words(page)


@pytest.mark.parametrize("page", ["book/intro.md", "README.md"])
def test_how_far_isotropy_moved_and_how_little_the_score(page, head_to_head):
    means = head_to_head.runs.groupby(["suite", "arm"])[f"metric.end.tokens.{comparing.ALL_LAYERS}"].mean()[SUITE]
    paired = {arm: head_to_head.paired("score", arm, suites=[SUITE]) for arm in (RAISE, LOWER)}
    gains = {arm: float(found["mean"].iloc[0]) for arm, found in paired.items()}
    assert f"{means[RAISE] / means[PLAIN]:.1f} times rounder" in words(page)
    assert f"{means[PLAIN] / means[LOWER]:.1f} times less round" in words(page)
    assert f"{100 * gains[RAISE]:+.1f} and {100 * gains[LOWER]:+.1f} points" in words(page)


@pytest.mark.parametrize("page", ["book/intro.md", "README.md"])
def test_how_many_comparisons_there_are_and_what_they_could_have_shown(page, head_to_head):
    found = comparing.against_plain(head_to_head, METHODS).dropna(subset="p")
    assert f"{len(found)} comparisons" in words(page)
    assert f"less than {100 * found['visible'].median():.1f} points" in words(page)


def test_no_method_of_the_four_papers_has_room_for_a_gain_of_one_point():
    learned = Study.load(arms.LEARNED)
    every = learned.runs.groupby("arm")["seed"].nunique()
    tops = {}
    for arm in ("selected bars", "λ = -0.1", "λ = +0.1", arms.SOFTDECAY, arms.ISOLAYER):
        gains = by_cell(difference(learned.units("score", arm), learned.units("score", PLAIN)))
        assert (len(gains), every[arm]) == (2, 10)
        tops[arm] = stats.t.interval(0.95, 9, *mean_and_error(np.mean(list(gains.values()), axis=0)))[1]
    assert max(tops.values()) < arms.POINT
    assert "Ten seeds on two tasks" in words("book/intro.md")


def mean_and_error(values):
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


def test_how_many_runs_failed():
    found = failed_runs.with_new_seeds()
    counts = [f"{round(one.estimate * one.n)} of {one.n}" for one in (found.methods, found.plain)]
    assert f"{counts[0]} against {counts[1]}" in words("book/intro.md")


def test_what_far_doses_of_isotropy_cost():
    every = scored(recorded("evidence_dose").runs)
    runs = dose.task_runs(every, "english_sentiment")
    high, half = dose.levels(runs, "tokens").iloc[-1], dose.levels(runs, "[CLS]").iloc[2]
    for page in ("book/intro.md", "README.md"):
        assert f"{high['times']:.1f} times rounder ones cost {-high['gain']:.0f} points" in words(page)
    assert f"half as round {-half['gain']:.0f}" in words("book/intro.md")
    assert 0.45 < half["times"] < 0.55
    flat = [dose.levels(dose.task_runs(every, "sst2"), place) for place in dose.PLACES]
    assert f"{flat[0]['times'].max():.1f} times rounder tokens change nothing significantly" in words("book/intro.md")
    for levels in flat:  # D1 of the plan: apart, and far enough both ways
        assert levels["p"].min() > 0.05
        assert dose.separate(levels) >= 5
        assert levels["times"].min() < 0.5
        assert levels["times"].max() > 4
