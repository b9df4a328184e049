"""Scores against other libraries; what constants and bad input give."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from isonb.errors import DegenerateError, ShapeError
from isonb_lab.data import scores

DRAW = np.random.default_rng(0)
GOLD = DRAW.integers(0, 2, 200)
PREDICTED = np.where(DRAW.random(200) < 0.7, GOLD, 1 - GOLD)
TIES = DRAW.integers(0, 6, 300) / 2


@pytest.mark.parametrize(
    ("ours", "theirs", "gold", "predicted"),
    [
        ("accuracy", metrics.accuracy_score, GOLD, PREDICTED),
        ("f1", metrics.f1_score, GOLD, PREDICTED),
        ("matthews", metrics.matthews_corrcoef, GOLD, PREDICTED),
        ("matthews", metrics.matthews_corrcoef, GOLD + GOLD * PREDICTED, PREDICTED + 1),
        ("pearson", lambda a, b: stats.pearsonr(a, b)[0], TIES, TIES + DRAW.normal(size=300)),
        ("spearman", lambda a, b: stats.spearmanr(a, b)[0], TIES, (TIES + DRAW.normal(size=300)).round()),
    ],
)
def test_scores_are_those_of_the_libraries(ours, theirs, gold, predicted):
    assert scores.score([ours], predicted, gold)[ours] == pytest.approx(theirs(gold, predicted), rel=1e-12)


def test_constants():
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
@pytest.mark.parametrize(
    ("predicted", "error", "message"),
    [
        ([1, 0, 1], ShapeError, "same length; got 3 and 2"),
        ([], ShapeError, "one or more numbers"),
        ([[1], [0]], ShapeError, r"shape \(2, 1\)"),
        (["a", "b"], ShapeError, "or more numbers"),
        ([1, float("nan")], DegenerateError, "predicted must be finite; got nan"),
    ],
)
def test_bad_numbers(metric, predicted, error, message):
    with pytest.raises(error, match=message):
        metric(predicted, [1, 0])


ANSWERS = [
    ("the narrow cone", ["Narrow cone", "a ball"]),
    ("narrow narrow cone", ["narrow cone"]),
    ("cone in the north", ["south", "a cone in the far north of it"]),
    ("", ["cone"]),
    ("the", ["a", "cone"]),
    ("  a\tcone\n an  the ball ", ["cone ball"]),
    ("state-of-the-art Ünï", ["stateoftheart Ünï"]),
]


def test_answers_agree_with_torchmetrics():
    squad = pytest.importorskip("torchmetrics.functional.text").squad
    predicted = [{"prediction_text": answer, "id": str(i)} for i, (answer, _) in enumerate(ANSWERS)]
    gold = [
        {"answers": {"text": refs, "answer_start": [0] * len(refs)}, "id": f"{i}"}
        for i, (_, refs) in enumerate(ANSWERS)
    ]
    theirs = squad(predicted, gold)
    ours = scores.score(["exact_match", "squad_f1"], [a for a, _ in ANSWERS], [refs for _, refs in ANSWERS])
    assert 100 * ours["exact_match"] == pytest.approx(float(theirs["exact_match"]), rel=1e-6)
    assert 100 * ours["squad_f1"] == pytest.approx(float(theirs["f1"]), rel=1e-6)
