"""Verdicts on made-up numbers, where what they must say is known."""

import math

import numpy as np
import pytest
from scipy import stats

from isonb_lab.claims.treatment import Treatment
from isonb_lab.claims.verdicts import (
    CONTRADICTED,
    DEPENDS,
    INCONCLUSIVE,
    NO_SETTING,
    NOT_TESTABLE,
    SUPPORTED,
    Claim,
    ClaimError,
    JudgedCell,
    Prediction,
    Reason,
    judge,
    judge_cell,
    judge_prediction,
    smallest_visible,
)
from isonb_lab.statistics.seeds import Interval

UP = [0.10, 0.12, 0.11, 0.13, 0.09]
DOWN = [-v for v in UP]
OPEN = [0.2, -0.15, 0.1, -0.2, 0.05]


def gain(direction="greater", margin=0.0, **options):
    return Prediction("gain", lambda study, suites: {}, direction, margin, **options)


def judged(values, **options):
    """A prediction with these numbers by cell."""
    return judge_prediction(gain(**options), values, list(values), {})


def shared(cells, **options):
    """The same where cells share their seeds."""
    units = {(name, seed): value for name, values in cells.items() for seed, value in enumerate(values)}
    return judge_prediction(gain(**options), units, list(cells), {})


def claimed(*tested):
    """The claim of these predictions."""
    return judge(Claim(1, "it gains", tuple(item.prediction for item in tested)), tested)


EFFECT = {"expected_effect": 0.05}
OWN = EFFECT | {"treatment": Treatment("istar", ("sst2",))}  # at the paper's own setting
ZERO = [0.01, -0.02, 0.02, -0.01, 0.001]  # that is known well


@pytest.mark.parametrize(
    ("direction", "options", "values", "outcome"),
    [
        ("greater", {}, UP, SUPPORTED),
        ("greater", {}, DOWN, CONTRADICTED),
        ("greater", {}, OPEN, INCONCLUSIVE),
        ("greater", {"margin": 0.05}, UP, SUPPORTED),
        ("greater", {"margin": 0.2}, UP, INCONCLUSIVE),  # clear and negligible
        ("less", {}, DOWN, SUPPORTED),
        ("less", {}, UP, CONTRADICTED),
        ("at least", {"margin": 0.2}, DOWN, SUPPORTED),
        ("at least", {"margin": 0.01}, DOWN, CONTRADICTED),
        ("at most", {"margin": 0.2}, UP, SUPPORTED),
        ("at most", {"margin": 0.01}, UP, CONTRADICTED),
        ("equal", {"margin": 0.2}, UP, SUPPORTED),
        ("equal", {"margin": 0.02}, UP, CONTRADICTED),
        ("equal", {"margin": 0.11}, UP, INCONCLUSIVE),
        ("greater", {}, UP[:2], NOT_TESTABLE),
        ("greater", {}, [0.1] * 5, NOT_TESTABLE),
        ("greater", {}, None, NOT_TESTABLE),
        ("greater", EFFECT, UP, SUPPORTED),
        ("greater", EFFECT, [v / 10 for v in UP], CONTRADICTED),  # an effect, and a smaller one than claimed
        ("greater", EFFECT, ZERO, CONTRADICTED),
        ("greater", EFFECT, OPEN, INCONCLUSIVE),  # there is room for one
        ("less", EFFECT, ZERO, CONTRADICTED),
        ("less", EFFECT, DOWN, SUPPORTED),
        ("greater", OWN, [v / 10 for v in UP], SUPPORTED),  # a gain is a gain, smaller than the printed one or not
        ("greater", OWN, ZERO, CONTRADICTED),
        ("less", {"ranks": True}, [-1.0] * 3, SUPPORTED),  # the same order at each seed
    ],
)
def test_one_cell(direction, options, values, outcome):
    cell = judge_cell(gain(direction, **options), "cola", values)
    assert cell.outcome == outcome
    assert (cell.p_opposite <= 0.025) == (outcome == CONTRADICTED) or (options, outcome) == (OWN, SUPPORTED)


def test_many_seeds_use_the_bootstrap():
    x = np.random.default_rng(1).normal(1, 1, 25).tolist()
    assert judge_cell(gain(), "x", x).interval.method == "expanded"
    assert judge_cell(gain(), "x", x[:19]).interval.method == "student"


def test_the_p_value_of_the_other_side_is_scipys():
    reference = stats.ttest_1samp(DOWN, 0, alternative="less").pvalue
    assert judge_cell(gain(), "cola", DOWN).p_opposite == pytest.approx(reference)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 32])
def test_the_smallest_visible_effect_is_the_minimum_detectable_one_at_the_level_of_the_verdict(alpha):
    """Behind Student's interval by the noncentral t, behind others by the normal law."""
    n, half = 40, 0.3
    spread = half / stats.t.ppf(0.975, n - 1) * math.sqrt(n)
    effect = smallest_visible(Interval(0.0, -half, half, 0.95, n, "student"), alpha)
    border = stats.t.ppf(1 - alpha / 2, n - 1)
    assert stats.nct.sf(border, n - 1, effect * math.sqrt(n) / spread) == pytest.approx(0.8, abs=0.002)
    normal = smallest_visible(Interval(0.0, -half, half, 0.95, 1000, "percentile"), alpha)
    error = half / stats.norm.ppf(0.975)
    assert stats.norm.sf(stats.norm.ppf(1 - alpha / 2), normal / error) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("decided_by", "cells", "outcome"),
    [
        ("all", (UP, UP, UP), SUPPORTED),
        ("all", (UP, UP, UP[:1]), SUPPORTED),
        ("all", (UP, UP, OPEN), INCONCLUSIVE),
        ("all", (UP, UP, DOWN), CONTRADICTED),
        ("all", (None,), NOT_TESTABLE),
        ("most", (UP, UP, DOWN, None), SUPPORTED),  # of the cells that can tell
        ("most", (UP, DOWN, DOWN, None), CONTRADICTED),
        ("most", (UP, DOWN, None, None), INCONCLUSIVE),
        ("agree", (UP, UP), SUPPORTED),
        ("agree", (DOWN, DOWN), CONTRADICTED),
        ("agree", (UP, OPEN), INCONCLUSIVE),
        ("agree", (UP, DOWN), DEPENDS),
    ],
)
def test_cells_decide_a_prediction(decided_by, cells, outcome):
    """By all of them, as an identity needs it; by most; or where they agree."""
    result = judged({f"c{k}": values for k, values in enumerate(cells)}, decided_by=decided_by)
    assert (result.outcome, claimed(result).outcome) == (outcome, outcome)


def test_one_weak_cell_or_part_of_many_contradicts_nothing():
    """A p-value of about 0.02 is enough alone, and nothing among ten: they are adjusted by Holm's method."""
    weak = {"c0": [-0.1, -0.3, -0.02, -0.25, -0.08]}
    assert 0.01 < judge_cell(gain(), "c0", weak["c0"]).p_opposite < 0.025
    assert judged(weak, decided_by="all").outcome == CONTRADICTED
    cells = dict.fromkeys((f"c{k}" for k in range(10)), UP) | weak
    assert judged(cells, decided_by="all").outcome == INCONCLUSIVE
    part = judged(weak)
    assert claimed(part).outcome == CONTRADICTED
    assert claimed(part, *[judged({"cola": UP})] * 9).outcome == INCONCLUSIVE


# --- the mean over cells ---------------------------------------------------------------------------------------------


def test_the_mean_over_cells_that_share_seeds_is_that_of_their_seed_means():
    cells = {"a": UP, "b": OPEN, "c": [0.3, 0.2, 0.25, 0.2, 0.3, 0.9]}  # the sixth seed is in one cell alone
    result = shared(cells)
    means = np.mean([values[:5] for values in cells.values()], axis=0)
    reference = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    assert (result.mean.low, result.mean.high) == pytest.approx((reference.low, reference.high))
    assert (result.mean.method, result.mean.n) == ("student", 5)


def test_one_cell_cannot_carry_the_mean():
    large = [v + 1 for v in UP]
    still = {f"c{k}": (0.02 * np.roll([-2.0, -1.0, 0.0, 1.0, 2.0], k)).tolist() for k in range(5)}
    alone = shared(still | {"large": large})
    assert alone.mean.low > 0, "the mean says it by itself"
    assert alone.outcome == INCONCLUSIVE
    assert shared(still | {"large": large, "second": large}).outcome == SUPPORTED


def test_cells_that_all_lie_on_one_side_agree_however_much_they_differ():
    """Two cells have too wide a mean of random effects; each is clear by itself, and so is a claim of that part."""
    far = [v + 5 for v in UP]
    both = judged({"a": UP, "b": far})
    assert both.mean.low < 0 < both.mean.high
    assert (both.outcome, claimed(both).outcome) == (SUPPORTED, SUPPORTED)
    against = judged({"a": DOWN, "b": [-v for v in far]})
    assert (against.outcome, claimed(against).outcome) == (CONTRADICTED, CONTRADICTED)


def test_cells_on_both_sides_depend_on_what_they_differ_in():
    result = judged({"minilm": UP, "tiny": DOWN, "base": OPEN}, depends="the encoder")
    assert result.outcome == DEPENDS
    assert claimed(result).label == "depends on the encoder"
    assert claimed(result, judged({"a": UP, "b": DOWN}), result).label == "depends on the encoder and the task"
    assert claimed(result, judged({"a": UP})).label == "depends on the encoder"
    assert claimed(result, judged({"a": DOWN})).label == CONTRADICTED
    assert judged({"a": [0.001 * v for v in UP], "b": UP}, direction="equal", margin=0.02).outcome != DEPENDS


@pytest.mark.parametrize("decided_by", ["mean", "agree"])
def test_depends_asks_for_intervals_that_hold_for_all_cells_together(decided_by):
    """Each side is clear by itself at 95%, and not at the level that three cells need."""
    weak = [0.1, 0.3, 0.02, 0.25, 0.08]
    below = [-value for value in weak]
    assert (judge_cell(gain(), "a", weak).outcome, judge_cell(gain(), "b", below).outcome) == (SUPPORTED, CONTRADICTED)
    cells = {"a": weak, "b": below, "c": OPEN}
    assert judged(cells, decided_by=decided_by).outcome == INCONCLUSIVE
    assert judged(cells | {"a": UP, "b": DOWN}, decided_by=decided_by).outcome == DEPENDS


@pytest.mark.parametrize("common", [True, False])
def test_cells_without_an_effect_seldom_give_an_answer(common):
    """Four cells of five seeds, of no effect: at most 6% say that something is so, not so, or depends."""
    draw = np.random.default_rng(7).normal(size=(400, 4, 5))
    names = [f"c{i}" for i in range(4)]
    seeds = [[s if common else 10 * i + s for s in range(5)] for i in range(4)]
    units = [{(names[i], seeds[i][s]): x[i, s] for i in range(4) for s in range(5)} for x in draw]
    results = [judge_prediction(gain(), item, names, {}).outcome for item in units]
    assert sum(entry != INCONCLUSIVE for entry in results) / len(results) <= 0.06
    effect = 1.5 if common else 4.0  # the mean over cells alone speaks of the seeds, that of random effects of cells
    effects = [{unit: value + effect for unit, value in numbers.items()} for numbers in units[:50]]
    assert [judge_prediction(gain(), numbers, names, {}).outcome for numbers in effects].count(SUPPORTED) >= 49


# --- a statement and its negation ------------------------------------------------------------------------------------

PAIRS = [("greater", "at most", 0.0), ("less", "at least", 0.0), ("greater", "less", 0.0)]
PAIRS += [("greater", "at most", 0.1), ("less", "at least", 0.1)]  # an effect of a size, and one that is smaller


@pytest.mark.parametrize(("direction", "negation", "effect"), PAIRS)
@pytest.mark.parametrize("decided_by", ["mean", "most"])
def test_a_statement_and_its_negation_never_get_the_same_answer(direction, negation, effect, decided_by):
    draw = np.random.default_rng(11)
    outcomes = set()
    for _ in range(80):
        k, margin = int(draw.integers(1, 5)), effect or float(draw.choice([0.0, 0.02, 0.5]))
        centres = draw.choice([-1.0, -0.02, 0.0, 0.01, 0.02, 1.0]) + draw.choice([0, 0.01, 2.0]) * draw.normal(size=k)
        spread = draw.choice([0.001, 0.1, 1.0])
        numbers = centres[:, None] + spread * draw.normal(size=(k, int(draw.integers(3, 8))))
        cells = {f"c{i}": row.tolist() for i, row in enumerate(numbers)}
        how = shared if draw.random() < 0.5 else judged
        first = {"margin": 0.0, "expected_effect": effect} if effect else {"margin": margin}
        sides = [(direction, first), (negation, {"margin": margin})]
        parts = [how(cells, direction=name, decided_by=decided_by, **options) for name, options in sides]
        pair = tuple(part.outcome for part in parts)
        assert pair not in {(SUPPORTED, SUPPORTED), (CONTRADICTED, CONTRADICTED)}
        assert tuple(claimed(part).outcome for part in parts) == pair, "a claim of one part says what the part says"
        outcomes |= {*pair}
    assert {SUPPORTED, CONTRADICTED, INCONCLUSIVE} <= outcomes, "the draws reach all sides"


@pytest.mark.parametrize("direction", ["greater", "less", "at most", "at least"])
def test_an_exact_tie_contradicts_neither_side(direction):
    tie = Interval(0.0, 0.0, 0.0, 0.95, 5, "printed")
    assert judge_cell(gain(direction), "a", tie).outcome == INCONCLUSIVE


# --- other rules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", [NOT_TESTABLE, NO_SETTING])
def test_a_cell_that_cannot_tell_neither_supports_nor_contradicts(why):
    silent = {"mrpc": JudgedCell("mrpc", why, Reason.UNLEARNED)}
    for values, outcome in ((UP, SUPPORTED), (DOWN, CONTRADICTED), (OPEN, INCONCLUSIVE)):
        result = judge_prediction(gain(), {"cola": values, "mrpc": [-5 * v for v in values]}, ["cola", "mrpc"], silent)
        assert (result.outcome, [cell.outcome for cell in result.cells]) == (outcome, [outcome, why])
        assert result.mean == result.cells[0].interval, "and doesn't count in the mean"
    alone = judge_prediction(gain(), {"mrpc": DOWN}, ["mrpc"], silent)
    assert (alone.outcome, claimed(alone).outcome) == (NOT_TESTABLE, NOT_TESTABLE)


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        ((UP, UP), SUPPORTED),
        ((UP, DOWN), CONTRADICTED),
        ((UP, OPEN), INCONCLUSIVE),
        ((UP, None), INCONCLUSIVE),
        ((None, None), NOT_TESTABLE),
        ((None, DOWN), CONTRADICTED),
    ],
)
def test_parts_make_a_claim(outcomes, together):
    parts = [judge_prediction(gain(), {} if v is None else {"cola": v}, ["cola"], {}) for v in outcomes]
    assert claimed(*parts).outcome == together


@pytest.mark.parametrize(
    "make",
    [
        lambda: gain("up"),
        lambda: gain("equal", 0.0),
        lambda: gain(margin=float("nan")),
        lambda: gain(decided_by="some"),
        lambda: Claim(1, "x", (), kind="opinion"),
    ],
)
def test_claims_that_say_nothing_are_refused(make):
    with pytest.raises(ClaimError, match="must be"):
        make()
