"""Methods against plain training: gains as one family of tests, and clouds where each method acts; on made-up runs."""

from dataclasses import replace

import numpy as np
import pytest
from made_up import scored_run, study_of
from scipy import stats

from isonb_lab.claims import comparing
from isonb_lab.claims.study import PLAIN
from isonb_lab.claims.verdicts import NO_SETTING
from isonb_lab.methods import method_from
from isonb_lab.papers import arms
from isonb_lab.papers import head_to_head as versus
from isonb_lab.papers.studies import load_study
from isonb_lab.statistics.seeds import minimum_detectable

SUITE, SEEDS = "sentiment (tiny)", (1, 2, 3, 4, 5)
SETTINGS = {"task": "english_sentiment", "model": "tiny", "eval_examples": 400}
CONFIGS = {
    PLAIN: "none",
    arms.LOWER: {"name": "istar", "weight": -0.3},
    arms.RAISE: {"name": "istar", "weight": 1},
    arms.LAST: {"name": "istar", "weight": -0.3, "layers": -1},
    arms.ENTROPY: "entropy",
    arms.SOFTDECAY: "softdecay",
    arms.ISOLAYER: "isolayer",
    arms.ISOBN: "isobn",
    arms.COSREG: "cosreg",
    arms.SPECTRUM: "spectrum_control",
}
GAINS = {arms.COSREG: (0.03, 0.04, 0.05, 0.04, 0.045), arms.ISOBN: (0.02, -0.03, 0.01, 0.02, -0.01)}
PLACES = {"cls": 0.1, "tokens": 0.2, "features": 0.3, "second": 0.4}  # made-up IsoScores of plain training
MOVES = {"cls": 0.01, "tokens": 0.02, "features": 0.03, "second": 0.7}  # and by how much every method moves them


def with_scores(scores):
    """A study of one task: the score of an arm by its seeds."""
    records = []
    for arm, row in scores.items():
        treated = arm != PLAIN
        places = {place: value + treated * MOVES[place] for place, value in PLACES.items()}
        for seed, score in zip(SEEDS, row, strict=True):
            metrics = {"end.tokens.isoscore_star_all_layers": 0.5 + treated * 0.25}
            metrics |= {f"end.{place}.isoscore": value + seed / 1000 for place, value in places.items()}
            records.append(scored_run(SETTINGS | {"method": CONFIGS[arm], "seed": seed}, score, metrics))
    return study_of(versus.DESIGN, {SUITE: records})


BASE = (0.80, 0.81, 0.79, 0.82, 0.80)


@pytest.fixture(scope="module")
def study():
    return with_scores({PLAIN: BASE} | {arm: np.add(BASE, gains) for arm, gains in GAINS.items()})


def test_gains_are_one_family_of_paired_tests(study):
    result = comparing.against_plain(study, arms.METHODS).set_index("arm")
    raw = {arm: stats.ttest_1samp(row, 0).pvalue for arm, row in GAINS.items()}
    assert result["p"].to_dict() == pytest.approx(raw | {arms.COSREG: 2 * raw[arms.COSREG]})
    assert result["outcome"].to_dict() == {arms.COSREG: comparing.ABOVE, arms.ISOBN: comparing.OPEN}
    for arm, row in GAINS.items():
        mde = minimum_detectable(float(np.std(row, ddof=1)), 5, alpha=0.05 / 2)
        assert result.loc[arm, "mde"] == pytest.approx(mde), "at the first step of Holm's method over two tests"


def test_a_method_without_a_working_setting_is_no_test(study):
    """It has no p and no minimum detectable effect, and the others are a family without it."""
    broken = replace(study, no_setting=frozenset({(arms.ISOBN, SUITE)}))
    result = comparing.against_plain(broken, arms.METHODS).set_index("arm")
    assert result["outcome"].to_dict() == {arms.COSREG: comparing.ABOVE, arms.ISOBN: NO_SETTING}
    assert result.loc[arms.ISOBN, ["p", "mde"]].isna().all()
    assert result.loc[arms.ISOBN, "mean"] == pytest.approx(np.mean(GAINS[arms.ISOBN]))
    assert result.loc[arms.COSREG, "p"] == pytest.approx(stats.ttest_1samp(GAINS[arms.COSREG], 0).pvalue)


def test_two_comparisons_of_the_recorded_runs_end_the_training():
    """They are no tests, and no sentence may count the comparisons as if they weren't there."""
    recorded = load_study("head_to_head")
    result = comparing.against_plain(recorded, arms.METHODS)
    broken = result[result.outcome == NO_SETTING]
    assert list(zip(broken.arm, broken.suite, strict=True)) == [(arms.LOWER, "CoLA"), (arms.LOWER, SUITE)]
    assert recorded.means("score", "CoLA")[arms.LOWER] == 0.0
    assert result.outcome.value_counts().to_dict() == {comparing.OPEN: 45, NO_SETTING: 2, comparing.ABOVE: 1}


def test_where_nothing_learned_nothing_is_compared():
    nothing = with_scores({arm: [0.5] * 5 for arm in (PLAIN, arms.COSREG)})
    assert comparing.against_plain(nothing, arms.METHODS).empty


@pytest.mark.parametrize(("tries", "broken"), [((0.50, 0.51, 0.49), {arms.COSREG}), ((0.50, 0.51, 0.80), set())])
def test_a_tuning_whose_tries_all_fail_found_no_working_setting(tries, broken):
    """And plain training, which learned, has one."""
    methods = [{"name": "cosreg", "weight": weight} for weight in (1.0, 0.3, 0.1)]
    records = [
        scored_run(SETTINGS | {"method": method, "seed": 0}, score, series={"step.validation.accuracy": [(10, score)]})
        for method, score in zip((*methods, "none"), (*tries, 0.8), strict=True)
    ]
    assert versus.never_worked(study_of(versus.TUNING, {SUITE: records})) == {(arm, SUITE) for arm in broken}


def test_the_last_layer_has_no_setting_where_lowering_has_none():
    """As the recorded tuning has it: the push on the last layer runs with the strength that all layers got."""
    result = versus.no_setting()
    assert result == {(arm, suite) for arm in (arms.LOWER, arms.LAST) for suite in ("CoLA", "sentiment (tiny)")}


# --- isotropy where a method acts ------------------------------------------------------------------------------------


def test_a_change_is_read_from_the_vectors_that_the_method_acts_on():
    """Against the same vectors of plain training; the output of a second stage against the [CLS] vectors before it."""
    study = with_scores(dict.fromkeys(CONFIGS, BASE))
    for arm in CONFIGS.keys() - {PLAIN}:
        place = method_from(CONFIGS[arm]).acts_on
        assert study.design.acts_on.get(arm, "cls") == place
        start = PLACES["cls"] if place == "second" else PLACES[place]
        change = PLACES[place] + MOVES[place] - start
        assert study.changed(arm, "isoscore", [SUITE]) == {(SUITE, seed): pytest.approx(change) for seed in SEEDS}
        tokens = study.changed(arm, comparing.ALL_LAYERS)
        assert list(tokens.values()) == pytest.approx([0.25] * 5), "a measure of all layers is read there"


@pytest.mark.parametrize(
    ("values", "margin", "word"),
    [
        ([-0.10, -0.12, -0.11], 0.02, "fell"),
        ([-0.010, -0.012, -0.011], 0.02, "significant but negligible"),
        ([0.018, 0.024, 0.021], 0.02, "significant but negligible"),  # clear, and not clearly beyond the margin
        ([0.010, 0.012, 0.011], 0.005, "rose"),
        ([0.1, 0.1], 0.02, ""),  # two seeds
    ],
)
def test_a_measure_rose_or_fell_beyond_the_margin_alone(values, margin, word):
    assert comparing.direction_of(values, margin) == word
