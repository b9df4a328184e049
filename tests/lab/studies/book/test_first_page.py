"""The first page has no kernel, so its numbers stand in its source: they are those that the runs give now."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import isonb
from isonb_lab.claims import comparing
from isonb_lab.claims.study import PLAIN
from isonb_lab.claims.verdicts import by_cell, difference
from isonb_lab.papers import arms, dial, dose, failed_runs, heads, softdecay
from isonb_lab.papers import read_where as read
from isonb_lab.papers.studies import load_study
from isonb_lab.runs.recordings import recorded, scored

METHODS = arms.METHODS

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


def test_the_sets_without_the_one_that_shares_its_pairs(studies):
    found = softdecay.vector_gains(studies["softdecay"]).query("protocol == 'mean'")
    found = found[(found["arm"] == softdecay.WHITENING) & ~found["suite"].str.endswith("STS-B")]
    tiny, minilm = (found[found["suite"].str.startswith(model)]["mean"] for model in ("tiny", "minilm"))
    low, high = stats.t.interval(0.95, 5, *mean_and_error(minilm))
    assert len(tiny) == len(minilm) == 6
    assert f"{tiny.mean():+.1f} and {minilm.mean():+.1f} ({low:+.1f} to {high:+.1f})" in words("book/intro.md")


def test_what_the_dial_gives_a_cosine_and_a_linear_head():
    scores, best, parts = (dial.read(name) for name in ("scores", "best", "parts"))
    middle = "encoder == 'smollm2' and layer == 15 and fit == 'own'"
    gain = best.query(f"{middle} and pool == 'mean' and reader == 'similarity'")["gain"].item()
    token = "encoder == 'smollm2' and layer == 15 and reader == 'similarity' and order == 'first token first'"
    token = parts.query(f"{token} and part == 'first token'")["gain"].item()
    page = words("book/intro.md")
    assert f"a language model gains {gain:.3f}" in page
    assert f"{token / gain:.0%} of that gain" in page
    assert f"leaving it out gives {token:.3f}" in page
    turned = dial.towards_round(scores, "linear head")
    won, lost = (turned["gain_low"] > 0).sum(), (turned["gain_high"] < 0).sum()
    assert f"Of {len(turned)} cells" in page
    assert f"{won} gain significantly and {lost} loses" in page
    head = scores.query(f"{middle} and pool == 'without first' and reader == 'linear head' and set == 'all'")
    head = head[(head["turn"] == "whitening") & (head["strength"] == 0.75)].iloc[0]
    points = [f"{100 * head[name]:.1f}" for name in ("gain", "gain_low", "gain_high")]
    assert "gains {} points ({} to {})".format(*points) in page
    search = scores.query(
        "encoder == 'minilm' and layer == 6 and pool == 'mean' and fit == 'wikipedia' and set == 'all'"
    )
    search = search[(search["reader"] == "retrieval") & (search["turn"] == "whitening") & (search["strength"] == 0.75)]
    assert search["gain_high"].item() < 0
    assert f"nDCG by {-search['gain'].item():.3f}" in page


@pytest.mark.parametrize("page", ["book/intro.md", "README.md"])
def test_what_a_classifier_reads_at_every_dose(page):
    """The number of directions is that of the vectors which the head reads, and no run made them round."""
    runs = scored(recorded("evidence_dose").runs)
    runs = runs[runs["seed"] > 0].fillna({"method.weight": 0})
    assert set(runs["task"]) == {"english_sentiment", "sst2"}
    read = heads.span(runs, ["task", "method.name", "method.weight"])
    assert f"it reads {read} directions" in words(page)
    assert float(read.split()[2]) < 0.05 * 128
    assert "open" in words(page)


def test_what_a_linear_head_reads_with_the_papers_methods():
    study = load_study("evidence_methods")
    assert set(study.runs["head"]) == {"linear"}
    assert f"the four papers' methods {heads.span(study.runs, ['suite', 'arm'])}." in words("book/intro.md")


@pytest.mark.parametrize("page", ["book/intro.md", "README.md"])
def test_how_many_comparisons_there_are_and_how_many_could_not_have_seen_a_point(page, head_to_head):
    found = comparing.against_plain(head_to_head, METHODS).dropna(subset="p")
    assert f"{len(found)} comparisons" in words(page)
    blind = (found["visible"] > 0.01).sum()
    assert f"{blind} of the {len(found)} could not have seen" in words(page)
    assert (found["outcome"] == comparing.ABOVE).sum() == 1


def test_the_intervals_of_the_four_papers_methods_together():
    learned = load_study(arms.LEARNED)
    every = learned.runs.groupby("arm")["seed"].nunique()
    names = ("selected bars", "λ = -0.1", "λ = +0.1", arms.SOFTDECAY, arms.ISOLAYER)
    tops = {}
    for arm in names:
        gains = by_cell(difference(learned.units("score", arm), learned.units("score", PLAIN)))
        assert (len(gains), every[arm]) == (2, 10)
        means = mean_and_error(np.mean(list(gains.values()), axis=0))
        assert stats.t.interval(0.95, 9, *means)[0] < 0
        tops[arm] = stats.t.interval(1 - 0.05 / len(names), 9, *means)[1]
    assert f"end at {100 * max(tops.values()):+.1f} points" in words("book/intro.md")


def mean_and_error(values):
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


def test_how_many_runs_failed_and_what_cosreg_gains_by_new_seeds(head_to_head):
    found = failed_runs.with_new_seeds()
    counts = [f"{round(one.estimate * one.n)} of {one.n}" for one in (found.methods, found.plain)]
    page = words("book/intro.md")
    assert f"{counts[0]} against {counts[1]}" in page
    gains = failed_runs.gains_with_new_seeds()
    mean, error = mean_and_error(gains["gain"])
    low, high = stats.t.interval(0.95, len(gains) - 1, mean, error)
    assert f"CosReg adds {mean:.1f} points <failed-runs>` ({low:.1f} to {high:.1f})" in page
    assert f"CosReg adds {mean:.1f} points" in words("README.md")
    family = len(comparing.against_plain(head_to_head, METHODS).dropna(subset="p"))
    p = family * stats.ttest_1samp(gains["gain"], 0).pvalue
    assert f"p = {p:.3f} after correction for {family} comparisons" in page
    assert f"neither failed it adds {gains['gain'][~gains['failed']].mean():.1f} points" in page


def test_what_doses_of_isotropy_do_to_the_score():
    """Absolute isotropy, the weight beside it, and the same weight on both tasks."""
    every = scored(recorded("evidence_dose").runs)
    runs = {task: dose.task_runs(every, task) for task in ("english_sentiment", "sst2")}
    reviews, sst2 = (dose.levels(some, "tokens") for some in runs.values())
    high, same, far = sst2.iloc[-1], reviews.iloc[-2], reviews.iloc[-1]
    page = words("book/intro.md")
    assert high["weight"] == same["weight"] == far["weight"] / 10 == 0.3
    plain = sst2[sst2["weight"] == 0]["reached"].item()
    assert f"from an IsoScore of {plain:.2g} to {high['reached']:.2g} at a weight of 0.3" in page
    told = [f"{row['gain']:+.1f} ({row['gain low']:+.1f} to {row['gain high']:+.1f})" for row in (high, same)]
    assert told[0].replace(" (", " points (") in page
    assert f"the same weight changes it by {told[1]}" in page
    assert f"a weight of 3, which reaches {far['reached']:.2g}, costs {-far['gain']:.0f} points" in page
    for said in (
        f"tokens at an IsoScore of {high['reached']:.2g}",
        f"tokens at {far['reached']:.2g}",
        "cost 22 points",
    ):
        assert said in words("README.md")
    for place in dose.PLACES:  # D1 of the plan holds on SST-2; D2 to D5 are open, so "not flat"
        levels = dose.levels(runs["sst2"], place)
        assert levels["p"].min() > 0.05
        assert [one.outcome for one in dose.hypotheses(levels)] == ["holds", *["open"] * 4]


def test_what_a_trained_classifier_loses_where_it_reads_round_vectors():
    """By the records alone: the intervals hold for the six levels together."""
    cells = read.doses(read.runs(), read.DOSES["SST-2, linear head"])
    page = words("book/intro.md")
    for weight, text in ((0.3, "With {:.0f} of 128 directions in use it loses {:.1f} points ({:.1f} to {:.1f})"),
                         (0.001, "with {:.1f} it gains {:.1f} ({:.1f} to {:.1f})")):  # fmt: skip
        gains = 100 * (cells[weight]["score"] - cells[0.0]["score"])
        low, high = stats.t.interval(1 - 0.05 / 6, len(gains) - 1, gains.mean(), gains.sem())
        ends = (low, high) if weight < 0.01 else (-high, -low)
        assert text.format(cells[weight][read.READ].mean(), abs(gains.mean()), *ends) in page
        if weight == 0.3:
            said = f"loses {-gains.mean():.1f} points ({-high:.1f} to {-low:.1f}; {len(gains)} of 30 planned seeds)"
            assert said in words("README.md")
    assert f"plain training has {cells[0.0][read.READ].mean():.1f}" in page
    assert f"{len(cells[0.0])} of 30 planned seeds" in page
