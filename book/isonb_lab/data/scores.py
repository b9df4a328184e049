"""Scores of predictions against the gold answers, as fractions (tables print them times 100).

What a collapsed model gives is a result, not an accident: constant predictions have Matthews, Pearson and Spearman 0.
Constant gold values leave nothing to correlate with: Pearson and Spearman refuse them
(:class:`~isonb.errors.DegenerateError`), Matthews is 0 by its usual convention.
"""

from __future__ import annotations

import math
import re
import string
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isonb.errors import DegenerateError, InputError, ShapeError, fail

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def accuracy(predicted: Any, gold: Any) -> float:
    """Share of equal labels.

    >>> accuracy([1, 0, 1, 1], [1, 1, 1, 1])
    0.75
    """
    predicted, gold = _pair(predicted, gold)
    return float((predicted == gold).mean())


def f1(predicted: Any, gold: Any) -> float:
    """F1 of the positive class 1; 0 when no 1 is predicted or right.

    >>> f1([1, 0, 1, 1], [1, 1, 1, 0])
    0.6666666666666666
    """
    predicted, gold = _pair(predicted, gold)
    named = (predicted == 1).sum() + (gold == 1).sum()
    return float(2 * ((predicted == 1) & (gold == 1)).sum() / max(named, 1))


def matthews(predicted: Any, gold: Any) -> float:
    """Matthews correlation of any number of classes; 0 when the predictions, or the gold labels, are constant.

    >>> matthews([1, 0, 1, 1], [1, 0, 1, 0])
    0.577
    """
    from sklearn.metrics import matthews_corrcoef

    predicted, gold = _pair(predicted, gold)
    if (predicted == predicted[0]).all() or (gold == gold[0]).all():
        return 0.0
    return float(matthews_corrcoef(gold, predicted))


def pearson(predicted: Any, gold: Any) -> float:
    """Pearson correlation of at least two values; constant predictions give 0, constant gold values are refused.

    >>> pearson([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    0.982
    """
    from scipy.stats import pearsonr

    return _correlation(pearsonr, predicted, gold)


def spearman(predicted: Any, gold: Any) -> float:
    """Spearman rank correlation (average ranks for ties); constants as in :func:`pearson`.

    >>> spearman([1.0, 2.0, 40.0], [1.0, 2.0, 3.0])
    1.0
    """
    from scipy.stats import spearmanr

    return _correlation(spearmanr, predicted, gold)


def normalize_answer(text: str) -> str:
    """SQuAD's normal form: lower case, no ASCII punctuation, no articles (a, an, the), single blanks.

    >>> normalize_answer("The  U.S. Army, an army")
    'us army army'
    """
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> float:
    """Share of answers whose normal form equals that of one of their references (SQuAD's EM).

    >>> exact_match(["the cone", "a ball"], [["Cone."], ["sphere", "disc"]])
    0.5
    """
    return _over_references(lambda a, b: float(normalize_answer(a) == normalize_answer(b)), predicted, gold)


def squad_f1(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> float:
    """Mean over answers of the best word-overlap F1 with a reference (SQuAD's F1).

    Two answers of which one is empty in normal form score 1 when both are and 0 otherwise, as in the SQuAD v2.0 script.

    >>> squad_f1(["a narrow cone"], [["the cone", "nothing"]])
    0.6666666666666666
    """
    return _over_references(_overlap, predicted, gold)


METRICS: dict[str, Callable[[Any, Any], float]] = {
    metric.__name__: metric for metric in (accuracy, exact_match, f1, matthews, pearson, spearman, squad_f1)
}


def score(metrics: Sequence[str], predicted: Any, gold: Any) -> dict[str, float]:
    """Each named metric, in the order given.

    >>> score(["accuracy", "f1"], [1, 0], [1, 1])
    {'accuracy': 0.5, 'f1': 0.6666666666666666}
    """
    for name in metrics:
        if name not in METRICS:
            fail(InputError, f"metrics must be among {', '.join(METRICS)}", repr(name), "Choose from these.")
    return {name: METRICS[name](predicted, gold) for name in metrics}


def baseline(metrics: Sequence[str], train: Any, gold: Any) -> dict[str, float]:
    """The scores of always answering the commonest training label (the smallest of equally common ones).

    Correlations of a constant are 0, so the same call serves regression.

    >>> baseline(["accuracy", "matthews"], [1, 1, 0], [1, 0, 1, 1])
    {'accuracy': 0.75, 'matthews': 0.0}
    """
    counts: Mapping[Any, int] = Counter(_array(train, "train").tolist())
    common = min(counts, key=lambda label: (-counts[label], label))
    return score(metrics, [common] * len(_array(gold, "gold")), gold)


def _array(values: Any, name: str) -> Any:
    import numpy as np

    values = np.asarray(values.tolist() if hasattr(values, "tolist") else values)  # tensors of any device and dtype
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "biuf":
        got = f"shape {values.shape} of {values.dtype}"
        fail(ShapeError, f"{name} must be one or more numbers on one axis", got, "Pass one number a row.")
    if not np.isfinite(values).all():
        fix = "Look for a diverged run (NaN weights) before scoring."
        fail(DegenerateError, f"{name} must be finite", values[~np.isfinite(values)][0], fix)
    return values


def _pair(predicted: Any, gold: Any) -> tuple[Any, Any]:
    predicted, gold = _array(predicted, "predicted"), _array(gold, "gold")
    if len(predicted) != len(gold):
        got = f"{len(predicted)} and {len(gold)}"
        fail(ShapeError, "predicted and gold must have the same length", got, "Pass one prediction a row.")
    return predicted, gold


def _correlation(statistic: Callable[[Any, Any], Any], predicted: Any, gold: Any) -> float:
    predicted, gold = _pair(predicted, gold)
    predicted, gold = predicted.astype("float64"), gold.astype("float64")
    if len(gold) < 2:
        fail(ShapeError, "a correlation needs at least 2 rows", len(gold), "Pass more rows.")
    if (gold == gold[0]).all():
        fail(DegenerateError, "gold must not be constant", f"{gold[0]} in each row", "Pass gold values that differ.")
    if (predicted == predicted[0]).all():
        return 0.0
    with warnings.catch_warnings():  # nearly constant predictions: the value stands
        warnings.simplefilter("ignore", RuntimeWarning)
        value = float(statistic(predicted, gold).statistic)
    return 0.0 if math.isnan(value) else value  # the variance underflowed: constant to rounding


def _overlap(answer: str, reference: str) -> float:
    answered, expected = normalize_answer(answer).split(), normalize_answer(reference).split()
    if not answered or not expected:
        return float(answered == expected)
    shared = (Counter(answered) & Counter(expected)).total()
    return 2 * shared / (len(answered) + len(expected))  # the harmonic mean of shared / words and shared / wanted


def _over_references(
    measure: Callable[[str, str], float], predicted: Sequence[str], gold: Sequence[Sequence[str]]
) -> float:
    best = (max(measure(answer, label) for label in refs) for answer, refs in zip(predicted, gold, strict=True))
    return sum(best) / len(predicted)
