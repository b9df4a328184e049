"""Readers of vectors: each gives a score on its items and the same score on items drawn again, for paired intervals."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from isonb.errors import ShapeError, fail

__all__ = [
    "DRAWS",
    "ReaderScore",
    "draws_of",
    "hidden_layer",
    "k_means",
    "linear_head",
    "neighbours",
    "pair_features",
    "retrieval",
    "similarity",
    "threshold",
    "topics",
]

DRAWS = 300
NEIGHBOURS = 10
PENALTIES = tuple(float(size) for size in np.logspace(0, 6, 7))
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ReaderScore:
    """A score, and the score of each of :data:`DRAWS` draws of the items."""

    score: float
    draws: Array

    @classmethod
    def mean_of(cls, outcomes: list[ReaderScore]) -> ReaderScore:
        """The mean over sets, each drawn by itself."""
        return cls(float(np.mean([one.score for one in outcomes])), np.mean([one.draws for one in outcomes], axis=0))


def draws_of(items: int, name: str) -> Array:
    """Items drawn again (:data:`DRAWS`, items), the same for a set each time it is asked for."""
    return np.random.default_rng([items, *name.encode()]).integers(0, items, (DRAWS, items))


def _unit(x: Array) -> Array:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def _cosines(x: Array, first: Array, second: Array) -> Array:
    unit = _unit(x)
    return np.asarray((unit[first] * unit[second]).sum(1))


def _mean_outcome(values: Array, name: str) -> ReaderScore:
    return ReaderScore(float(values.mean()), values[draws_of(len(values), name)].mean(1))


def similarity(x: Array, first: Array, second: Array, score: Array, name: str = "") -> ReaderScore:
    """Spearman of the cosines of pairs of rows and human scores.

    >>> x = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> round(similarity(x, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5.0, 1.0, 2.0])).score, 6)
    1.0
    """
    cosine = _cosines(x, first, second)
    drawn = draws_of(len(first), name)
    gold, gold_drawn = _standard_ranks(score), _gold_ranks(name, score.tobytes(), str(score.dtype))
    return ReaderScore(float(_standard_ranks(cosine) @ gold), (_standard_ranks(cosine[drawn]) * gold_drawn).sum(1))


def _standard_ranks(values: Array) -> Array:
    """Ranks along the last axis, ties in their middle, with mean 0 and length 1 (0 where all are equal)."""
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=-1)
    ranks -= ranks.mean(-1, keepdims=True)
    length = np.linalg.norm(ranks, axis=-1, keepdims=True)
    return np.asarray(ranks / np.where(length > 0, length, 1))


@functools.lru_cache(maxsize=16)
def _gold_ranks(name: str, gold: bytes, kind: str) -> Array:
    """The ranks of the human scores in each draw, which no turn changes."""
    score = np.frombuffer(gold, dtype=kind)
    return _standard_ranks(score[draws_of(len(score), name)])


def threshold(x: Array, first: Array, second: Array, label: Array, name: str = "") -> ReaderScore:
    """Area under the curve of the cosine of a pair against its label, 1 for alike.

    >>> x = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> threshold(x, np.array([0, 0]), np.array([1, 2]), np.array([1, 0])).score
    1.0
    """
    from scipy.stats import rankdata

    found, drawn = _cosines(x, first, second), draws_of(len(first), name)

    def area(cosine: Array, alike: Array) -> Array:
        ones = alike.sum(-1)
        pairs = ones * (alike.shape[-1] - ones)
        return np.asarray(((rankdata(cosine, axis=-1) * alike).sum(-1) - ones * (ones + 1) / 2) / np.maximum(pairs, 1))

    return ReaderScore(float(area(found, label)), area(found[drawn], label[drawn]))


def retrieval(x: Array, questions: Array, wanted: Array, passages: Array, name: str = "") -> dict[str, ReaderScore]:
    """Normalised DCG at 10 and recall at 1 of each question's one passage among all by cosine; ties rank before it.

    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]])
    >>> retrieval(x, np.array([2]), np.array([0]), np.array([0, 1]))["recall at 1"].score
    1.0
    """
    unit = _unit(x)
    cosine = unit[questions] @ unit[passages].T
    place = np.searchsorted(passages, wanted)
    own = cosine[np.arange(len(questions)), place]
    rank = (cosine >= own[:, None]).sum(1)
    gain = np.where(rank <= 10, 1 / np.log2(rank + 1), 0.0)
    return {
        "retrieval": _mean_outcome(gain, name),
        "recall at 1": _mean_outcome((rank == 1).astype(float), name),
    }


def _votes(cosine: Array, labels: Array) -> Array:
    """The commonest label of the 10 nearest columns of each row, the smallest one of several."""
    nearest = np.argpartition(-cosine, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
    counts = np.zeros((len(cosine), int(labels.max()) + 1), dtype=int)
    np.add.at(counts, (np.arange(len(cosine))[:, None], labels[nearest]), 1)
    return np.asarray(counts.argmax(1))


def neighbours(train: Array, labels: Array, test: Array, truth: Array, name: str = "") -> ReaderScore:
    """Accuracy of the 10 nearest training rows by cosine."""
    if len(train) < NEIGHBOURS:
        fail(ShapeError, f"there must be {NEIGHBOURS} training rows", len(train), "Give more rows.")
    return _mean_outcome((_votes(_unit(test) @ _unit(train).T, labels) == truth).astype(float), name)


def topics(x: Array, labels: Array, name: str = "") -> ReaderScore:
    """Accuracy with which the 10 nearest other rows by cosine name a row's topic."""
    number = np.unique(labels, return_inverse=True)[1]
    cosine = _unit(x) @ _unit(x).T
    np.fill_diagonal(cosine, -np.inf)
    return _mean_outcome((_votes(cosine, number) == number).astype(float), name)


def k_means(x: Array, labels: Array, name: str = "") -> ReaderScore:
    """V-measure of k-means on unit rows, as many clusters as there are labels, from one seeded start."""
    from sklearn.cluster import KMeans

    number = np.unique(labels, return_inverse=True)[1]
    classes = int(number.max()) + 1
    cluster = KMeans(classes, n_init=1, random_state=0).fit_predict(_unit(x))
    drawn = draws_of(len(x), name)

    def v_measure(cell: Array) -> float:
        joint = np.bincount(cell, minlength=classes**2).reshape(classes, classes) / len(cell)
        whole, one, other = (-(p[p > 0] * np.log(p[p > 0])).sum() for p in (joint, joint.sum(0), joint.sum(1)))
        return float(2 * (one + other - whole) / max(one + other, 1e-12))

    cells = cluster * classes + number
    return ReaderScore(v_measure(cells), np.array([v_measure(cells[rows]) for rows in drawn]))


def pair_features(x: Array, first: Array, second: Array) -> Array:
    """|u - v| and u * v of pairs of rows, each of the two blocks of mean square 1 an entry."""
    blocks = (np.abs(x[first] - x[second]), x[first] * x[second])
    return np.concatenate([block / np.sqrt((block**2).mean()) for block in blocks], axis=1)


def _head_inputs(train: Array, test: Array) -> tuple[Array, Array]:
    mean = train.mean(0)
    size = np.sqrt(((train - mean) ** 2).mean())
    return (train - mean) / size, (test - mean) / size


def linear_head(train: Array, labels: Array, test: Array, truth: Array, name: str = "") -> ReaderScore:
    """Accuracy of a ridge classifier whose penalty is chosen by leave-one-out on the training rows.

    The same as scikit-learn's ``RidgeClassifierCV`` of two classes, through one decomposition of the smaller Gram
    matrix for all penalties.
    """
    train, test = _head_inputs(train.astype(np.float64), test.astype(np.float64))
    target = np.where(labels == labels.max(), 1.0, -1.0)
    mean, target = target.mean(), target - target.mean()
    wide = train.shape[1] > train.shape[0]
    values, basis = np.linalg.eigh(train @ train.T if wide else train.T @ train)
    values = values.clip(0)
    left = basis if wide else (train @ basis) / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    along, squares = left.T @ target, left**2
    errors = {}
    for penalty in PENALTIES:
        kept = values / (values + penalty)  # the hat matrix is left * kept @ left.T, and 1/n for the intercept
        residual = target - left @ (kept * along)
        errors[penalty] = np.mean((residual / (1 - squares @ kept - 1 / len(train))) ** 2)
    best = min(PENALTIES, key=errors.__getitem__)
    weights = (basis / (values + best)) @ (basis.T @ (target if wide else train.T @ target))
    scores = test @ (train.T @ weights if wide else weights) + mean
    return _mean_outcome(((scores > 0) == (truth == labels.max())).astype(float), name)


def hidden_layer(train: Array, labels: Array, test: Array, truth: Array, name: str = "") -> ReaderScore:
    """Accuracy of a head with one hidden layer of 64 units, stopped early; mean of three seeds."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    train, test = _head_inputs(train, test)
    right = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(3):
            head = MLPClassifier((64,), early_stopping=True, max_iter=100, random_state=seed).fit(train, labels)
            right.append(head.predict(test) == truth)
    return _mean_outcome(np.mean(right, axis=0), name)
