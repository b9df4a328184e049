"""Verdicts on made-up numbers, where what they must say is known."""

import math

import numpy as np
import pytest
from scipy import stats

from isonb.lab.statistics.intervals import Interval
from isonb.lab.studies.verdicts import (
    CONTRADICTED,
    INCONCLUSIVE,
    NOT_TESTABLE,
    SUPPORTED,
    Claim,
    ClaimError,
    Part,
    by_cell,
    difference,
    judge,
    judge_cell,
    judge_part,
    smallest_visible,
)

UP = [0.10, 0.12, 0.11, 0.13, 0.09]
DOWN = [-v for v in UP]
OPEN = [0.2, -0.15, 0.1, -0.2, 0.05]


def part(direction="greater", margin=0.0, **options):
    return Part("gain", lambda study, suites: {}, direction, margin, **options)


def always(cell):
    return ""


@pytest.mark.parametrize(
    ("direction", "margin", "values", "outcome"),
    [
        ("greater", 0.0, UP, SUPPORTED),
        ("greater", 0.0, DOWN, CONTRADICTED),
        ("greater", 0.0, OPEN, INCONCLUSIVE),
        ("greater", 0.2, UP, CONTRADICTED),
        ("less", 0.0, DOWN, SUPPORTED),
        ("less", 0.0, UP, CONTRADICTED),
        ("at least", 0.2, DOWN, SUPPORTED),
        ("at least", 0.01, DOWN, CONTRADICTED),
        ("at most", 0.2, UP, SUPPORTED),
        ("at most", 0.01, UP, CONTRADICTED),
        ("equal", 0.2, UP, SUPPORTED),
        ("equal", 0.02, UP, CONTRADICTED),
        ("equal", 0.11, UP, INCONCLUSIVE),
        ("greater", 0.0, UP[:2], NOT_TESTABLE),
        ("greater", 0.0, [0.1] * 5, NOT_TESTABLE),
        ("greater", 0.0, None, NOT_TESTABLE),
    ],
)
def test_one_cell(direction, margin, values, outcome):
    assert judge_cell(part(direction, margin), "cola", values).outcome == outcome


def test_a_cell_from_an_interval_of_another_kind():
    above, across = (Interval(0.5, low, 0.9, 0.95, 1000, "percentile") for low in (0.1, -0.1))
    assert judge_cell(part(), "sts12", above).outcome == SUPPORTED
    assert judge_cell(part(), "sts12", across).outcome == INCONCLUSIVE


def test_a_cell_without_an_effect_is_rarely_told_apart():
    """Student's interval keeps its level: five seeds of no effect lie on one side in one sample of twenty."""
    samples = np.random.default_rng(1).normal(size=(1000, 5))
    wrong = sum(judge_cell(part(), "x", list(x)).outcome in (SUPPORTED, CONTRADICTED) for x in samples)
    assert 25 <= wrong <= 80  # 50 expected


def test_many_seeds_use_the_bootstrap():
    x = np.random.default_rng(1).normal(1, 1, 25).tolist()
    assert judge_cell(part(), "x", x).interval.method == "expanded"
    assert judge_cell(part(), "x", x[:19]).interval.method == "student"


def test_what_is_against_a_claim_agrees_with_its_interval_and_with_scipy():
    cell = judge_cell(part(), "cola", DOWN)
    assert cell.against == pytest.approx(stats.ttest_1samp(DOWN, 0, alternative="less").pvalue)
    for values in (UP, DOWN, OPEN):
        found = judge_cell(part(), "cola", values)
        assert (found.against <= 0.025) == (found.outcome == CONTRADICTED)


def test_smallest_visible_effect_is_seen_in_four_of_five_repetitions():
    """Against the noncentral t: the power at the effect for a known spread, at many seeds, is 0.8."""
    n, s = 200, 1.0
    half = stats.t.ppf(0.975, n - 1) * s / math.sqrt(n)
    effect = smallest_visible(Interval(0.0, -half, half, 0.95, n, "student"))
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, effect * math.sqrt(n) / s)
    assert power == pytest.approx(0.8, abs=0.005)


def test_a_claim_about_all_needs_every_cell_that_can_tell():
    cells = ["cola", "mrpc", "rte"]
    full = {"cola": UP, "mrpc": UP, "rte": UP}
    assert judge_part(part(), full, cells, always).outcome == SUPPORTED
    assert judge_part(part(), full | {"rte": UP[:1]}, cells, always).outcome == SUPPORTED
    assert judge_part(part(), full | {"rte": OPEN}, cells, always).outcome == INCONCLUSIVE
    assert judge_part(part(), full | {"rte": DOWN}, cells, always).outcome == CONTRADICTED
    assert judge_part(part(), {}, cells, always).outcome == NOT_TESTABLE


def test_one_weak_cell_of_many_does_not_contradict():
    """A p-value of about 0.02 is nothing among ten cells, and enough alone."""
    weak = [-0.1, -0.3, -0.02, -0.25, -0.08]
    alone = judge_cell(part(), "c0", weak)
    assert alone.outcome == CONTRADICTED
    assert 0.01 < alone.against < 0.025
    cells = [f"c{k}" for k in range(10)]
    found = judge_part(part(), dict.fromkeys(cells, UP) | {"c0": weak}, cells, always)
    assert found.outcome == INCONCLUSIVE
    assert judge_part(part(), {"c0": weak}, ["c0"], always).outcome == CONTRADICTED


def test_most_counts_the_cells_that_can_tell():
    cells = ["a", "b", "c", "d"]
    most = part(rule="most")
    assert judge_part(most, {"a": UP, "b": UP, "c": DOWN}, cells, always).outcome == SUPPORTED
    assert judge_part(most, {"a": UP, "b": DOWN, "c": DOWN}, cells, always).outcome == CONTRADICTED
    assert judge_part(most, {"a": UP, "b": DOWN}, cells, always).outcome == INCONCLUSIVE


def test_a_task_that_is_not_learned_says_nothing_about_gains():
    def learned(cell):
        return "" if cell == "mrpc" else "the plain model is not above one answer"

    evidence = {"cola": DOWN, "mrpc": UP}
    gated = judge_part(part(gated=True), evidence, ["cola", "mrpc"], learned)
    assert gated.outcome == SUPPORTED
    assert [cell.outcome for cell in gated.cells] == [NOT_TESTABLE, SUPPORTED]
    assert judge_part(part(), evidence, ["cola", "mrpc"], learned).outcome == CONTRADICTED


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
    parts = [judge_part(part(), {} if v is None else {"cola": v}, ["cola"], always) for v in outcomes]
    claim = Claim(1, "gains", tuple(one.part for one in parts))
    assert judge(claim, parts).outcome == together


def test_units():
    found = difference({("a", 1): 2.0, ("a", 0): 1.0, ("b", 0): 5.0}, {("a", 0): 0.5, ("a", 1): 0.5})
    assert by_cell(found) == {"a": [0.5, 1.5]}


@pytest.mark.parametrize(
    "make",
    [
        lambda: part("up"),
        lambda: part("equal", 0.0),
        lambda: part(margin=-1.0),
        lambda: part(margin=float("nan")),
        lambda: part(rule="some"),
        lambda: Claim(1, "x", (), kind="opinion"),
    ],
)
def test_claims_that_say_nothing_are_refused(make):
    with pytest.raises(ClaimError, match="must be"):
        make()


def test_a_border_at_zero_has_no_sign():
    reason = judge_cell(Part("loss", lambda study, suites: {}, "less"), "a", [-0.1, -0.12, -0.14]).reason
    assert reason.endswith("lies on the claimed side of 0")
