"""Scores against values by hand, by formula and by other libraries; what constants and bad input give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from isonb.errors import DegenerateError, ShapeError
from isonb.lab.data import scores

pytest.importorskip("sklearn")
pytest.importorskip("scipy")


def test_binary_scores_by_the_formulas() -> None:
    draw = np.random.default_rng(0)
    gold = draw.integers(0, 2, 200)
    predicted = np.where(draw.random(200) < 0.7, gold, 1 - gold)
    pairs = list(zip(predicted.tolist(), gold.tolist(), strict=True))
    tp, tn, fp, fn = (pairs.count(pair) for pair in ((1, 1), (0, 0), (1, 0), (0, 1)))
    assert scores.accuracy(predicted, gold) == pytest.approx((tp + tn) / 200, rel=1e-12)
    assert scores.f1(predicted, gold) == pytest.approx(2 * tp / (2 * tp + fp + fn), rel=1e-12)
    root = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert scores.matthews(predicted, gold) == pytest.approx((tp * tn - fp * fn) / root, rel=1e-12)
    assert scores.f1([2, 1, 0], [2, 1, 1]) == pytest.approx(2 / 3)  # of class one


def test_correlations_by_the_formulas() -> None:
    draw = np.random.default_rng(3)
    gold = draw.integers(0, 6, 300) / 2  # many ties
    predicted = gold + draw.normal(size=300)
    predicted[:50] = predicted[50:100]
    assert scores.pearson(predicted, gold) == pytest.approx(np.corrcoef(predicted, gold)[0, 1], rel=1e-12)
    less = (predicted[:, None] > predicted).sum(1) + ((predicted[:, None] == predicted).sum(1) - 1) / 2
    other = (gold[:, None] > gold).sum(1) + ((gold[:, None] == gold).sum(1) - 1) / 2
    assert scores.spearman(predicted, gold) == pytest.approx(np.corrcoef(less, other)[0, 1], rel=1e-12)


def test_constants() -> None:
    for metric in (scores.matthews, scores.pearson, scores.spearman):
        assert metric([1, 1, 1, 1], [0, 1, 1, 0]) == 0.0
    assert -1 <= scores.pearson([1e-200, 2e-200, 3e-200, 5e-200], [1, 2, 3, 4]) <= 1  # constant to rounding
    assert scores.matthews([0, 1, 1], [1, 1, 1]) == scores.matthews([1, 1], [1, 1]) == 0.0
    for metric in (scores.pearson, scores.spearman):
        with pytest.raises(DegenerateError, match=r"gold must not be constant; got 2\.0"):
            metric([1, 2, 3], [2, 2, 2])
        with pytest.raises(ShapeError, match="at least 2"):
            metric([1], [1])


@pytest.mark.parametrize("metric", [scores.accuracy, scores.f1, scores.matthews, scores.pearson, scores.spearman])
def test_bad_numbers(metric: Any) -> None:
    with pytest.raises(ShapeError, match="same length; got 2 and 3"):
        metric([1, 0], [1, 0, 1])
    for odd, message in (([], "one or more numbers"), ([[1], [0]], r"shape \(2, 1\)"), (["a", "b"], "or more numbers")):
        with pytest.raises(ShapeError, match=message):
            metric(odd, [1, 0])
    with pytest.raises(DegenerateError, match="predicted must be finite; got nan"):
        metric([1, float("nan")], [1, 0])


def test_normal_form_of_answers() -> None:
    forms = {
        "  a\tcone\n an  the ball ": "cone ball",
        "state-of-the-art": "stateoftheart",
        "theory of another": "theory of another",
        "Ünï — the—code": "ünï — —code",
    }
    assert {text: scores.normalize_answer(text) for text in forms} == forms


ANSWERS = [
    ("the narrow cone", ["Narrow cone", "a ball"], 1.0, 1.0),
    ("narrow narrow cone", ["narrow cone"], 0.0, 0.8),
    ("nothing", ["narrow cone", "ball"], 0.0, 0.0),
    ("cone in the north", ["south", "a cone in the far north of it"], 0.0, 2 * 3 / (3 + 6)),
    ("", ["cone"], 0.0, 0.0),
    ("the", ["a", "cone"], 1.0, 1.0),
]


def test_answers_agree_with_torchmetrics() -> None:
    squad = pytest.importorskip("torchmetrics.functional.text").squad
    predicted = [{"prediction_text": answer, "id": str(i)} for i, (answer, *_) in enumerate(ANSWERS)]
    gold = [{"answers": {"text": refs, "answer_start": [0] * len(refs)}, "id": str(i)} for i, (_, refs, *_) in
            enumerate(ANSWERS)]  # fmt: skip
    theirs = squad(predicted, gold)
    ours = scores.score(["exact_match", "squad_f1"], [a for a, *_ in ANSWERS], [refs for _, refs, *_ in ANSWERS])
    assert 100 * ours["exact_match"] == pytest.approx(float(theirs["exact_match"]), rel=1e-6)
    assert 100 * ours["squad_f1"] == pytest.approx(float(theirs["f1"]), rel=1e-6)


@pytest.mark.parametrize(
    ("predicted", "gold"), [("cone", [["cone"]]), (["cone"], ["cone"]), (["a"], []), (["a"], [[]]), ([], [])]
)
def test_bad_answers(predicted: Any, gold: Any) -> None:
    with pytest.raises(ShapeError):
        scores.exact_match(predicted, gold)
