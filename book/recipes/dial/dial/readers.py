"""Readers of vectors: each gives its score, and the same score on items drawn again, for paired intervals.

What a reader gives is an array (1 + :data:`DRAWS`): the score first, then that of each draw.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from isonb.errors import ShapeError, fail
from isonb_lab.statistics.resampling import mid_ranks

DRAWS = 300
NEIGHBOURS = 10
SEEDS, UNITS, STEPS = 3, 64, 200  # of the hidden layer
PENALTIES = tuple(float(size) for size in np.logspace(0, 6, 7))
Array = np.ndarray[Any, Any]


@functools.lru_cache(maxsize=8)
def times_drawn(items: int, name: str) -> Array:
    """How often each item is read (1 + :data:`DRAWS`, items): once, then as drawn, the same for a set each time."""
    drawn = np.random.default_rng([items, *name.encode()]).integers(0, items, (DRAWS, items))
    return np.stack([np.ones(items), *(np.bincount(rows, minlength=items) for rows in drawn)])


def _mean(values: Array, name: str) -> Array:
    return np.asarray(times_drawn(len(values), name) @ values / len(values))


def _unit(x: Array) -> Array:
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(length > 0, length, 1)


def _cosines(x: Array, first: Array, second: Array) -> Array:
    unit = _unit(x)
    return np.asarray((unit[first] * unit[second]).sum(1))


def similarity(x: Array, first: Array, second: Array, score: Array, name: str = "") -> Array:
    """Spearman of the cosines of pairs of rows and human scores.

    >>> x = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> round(float(similarity(x, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5.0, 1.0, 2.0]))[0]), 6)
    1.0
    """
    times = times_drawn(len(first), name)
    x_ranks, other = mid_ranks(_cosines(x, first, second), times), mid_ranks(score, times)

    def product(a: Array, b: Array) -> Array:
        return np.asarray(np.einsum("bi,bi,bi->b", times, a, b))

    return np.asarray(
        product(x_ranks, other) / np.sqrt(np.maximum(product(x_ranks, x_ranks) * product(other, other), 1e-12))
    )


def threshold(x: Array, first: Array, second: Array, label: Array, name: str = "") -> Array:
    """Area under the curve of the cosine of a pair against its label, 1 for alike.

    >>> x = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> float(threshold(x, np.array([0, 0]), np.array([1, 2]), np.array([1, 0]))[0])
    1.0
    """
    times = times_drawn(len(first), name)
    ones = times @ label
    ranks = mid_ranks(_cosines(x, first, second), times) + (len(first) + 1) / 2
    above = (ranks * times) @ label - ones * (ones + 1) / 2
    return np.asarray(above / np.maximum(ones * (len(first) - ones), 1))


def retrieval(x: Array, questions: Array, answers: Array, passages: Array, name: str = "") -> dict[str, Array]:
    """Normalised DCG at 10 and recall at 1 of each question's one passage among all by cosine; ties rank before it.

    >>> x = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]])
    >>> float(retrieval(x, np.array([2]), np.array([0]), np.array([0, 1]))["recall at 1"][0])
    1.0
    """
    unit = _unit(x)
    cosine = unit[questions] @ unit[passages].T
    right = cosine[np.arange(len(questions)), np.searchsorted(passages, answers)]
    rank = (cosine >= right[:, None]).sum(1)
    gain = np.where(rank <= 10, 1 / np.log2(rank + 1), 0.0)
    return {"retrieval": _mean(gain, name), "recall at 1": _mean(rank == 1, name)}


def _votes(cosine: Array, labels: Array) -> Array:
    """The commonest label of the 10 nearest columns of each row, the smallest one of several."""
    nearest = np.argpartition(-cosine, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
    counts = np.zeros((len(cosine), int(labels.max()) + 1), dtype=int)
    np.add.at(counts, (np.arange(len(cosine))[:, None], labels[nearest]), 1)
    return np.asarray(counts.argmax(1))


def neighbours(train: Array, labels: Array, test: Array, truth: Array, name: str = "") -> Array:
    """Accuracy of the 10 nearest training rows by cosine."""
    if len(train) < NEIGHBOURS:
        fail(ShapeError, f"there must be {NEIGHBOURS} training rows", len(train), "Give more rows.")
    return _mean(_votes(_unit(test) @ _unit(train).T, labels) == truth, name)


def topics(x: Array, labels: Array, name: str = "") -> Array:
    """Accuracy with which the 10 nearest other rows by cosine name a row's topic."""
    number = np.unique(labels, return_inverse=True)[1]
    unit = _unit(x)
    cosine = unit @ unit.T
    np.fill_diagonal(cosine, -np.inf)
    return _mean(_votes(cosine, number) == number, name)


def k_means(x: Array, labels: Array, name: str = "") -> Array:
    """V-measure of k-means on unit rows, as many clusters as there are labels, from one seeded start."""
    from sklearn.cluster import KMeans

    number = np.unique(labels, return_inverse=True)[1]
    classes = int(number.max()) + 1
    cluster = KMeans(classes, n_init=1, random_state=0).fit_predict(_unit(x))

    def v_measure(times: Array) -> float:
        joint = np.bincount(cluster * classes + number, times, classes**2).reshape(classes, classes) / times.sum()
        whole, x_ranks, other = (-(p[p > 0] * np.log(p[p > 0])).sum() for p in (joint, joint.sum(0), joint.sum(1)))
        return float(2 * (x_ranks + other - whole) / max(x_ranks + other, 1e-12))

    return np.array([v_measure(times) for times in times_drawn(len(x), name)])


def pair_features(x: Array, first: Array, second: Array) -> Array:
    """|u - v| and u * v of pairs of rows, each of the two blocks of mean square 1 an entry."""
    blocks = (np.abs(x[first] - x[second]), x[first] * x[second])
    return np.concatenate([block / np.sqrt((block**2).mean()) for block in blocks], axis=1)


def _head_inputs(train: Array, test: Array) -> tuple[Array, Array]:
    """Centred rows of mean square 1 an entry, in float64."""
    mean = train.mean(0, dtype=float)
    size = np.sqrt(((train - mean) ** 2).mean())
    return (train - mean) / size, (test - mean) / size


def linear_head(train: Array, labels: Array, test: Array, truth: Array, name: str = "") -> Array:
    """Accuracy of a ridge classifier whose penalty is chosen by leave-one-out on the training rows."""
    from sklearn.linear_model import RidgeClassifierCV

    train, test = _head_inputs(train, test)
    return _mean(RidgeClassifierCV(PENALTIES).fit(train, labels).predict(test) == truth, name)


def hidden_layer(train: Array, labels: Array, test: Array, truth: Array, name: str = "") -> Array:
    """Accuracy of heads with one hidden layer of 64 units, mean of three seeds.

    A head makes :data:`STEPS` steps of Adam on all rows but every tenth, and answers as it did when its loss on those
    was smallest. So that rounding of the vectors doesn't move the answers, nothing is drawn in batches, all is float64
    and no step is left out; the first weights are combinations of the rows, so they follow an axis that changes sign.
    """
    x, unseen = (torch.from_numpy(points) for points in _head_inputs(train, test))
    validation = torch.arange(len(x)) % 10 == 0
    target = torch.from_numpy(labels == labels.max()).double()[:, None].expand(-1, SEEDS)
    draw = functools.partial(torch.randn, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    first = x.T @ draw(len(x), SEEDS * UNITS)
    second, shift, constant = draw(SEEDS, UNITS) / UNITS**0.5, x.new_zeros(SEEDS * UNITS), x.new_zeros(SEEDS)
    weights = [each.requires_grad_() for each in (first / first.norm(dim=0), shift, second, constant)]

    def answered(points: torch.Tensor) -> torch.Tensor:
        units = (points @ weights[0] + weights[1]).tanh().reshape(-1, SEEDS, UNITS)
        scores: torch.Tensor = (units * weights[2]).sum(-1) + weights[3]
        return scores

    def loss(rows: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy_with_logits(answered(x[rows]), target[rows], reduction="none").mean(0)

    optimizer = torch.optim.Adam(weights, lr=0.01)
    least, answers = x.new_full((SEEDS,), torch.inf), x.new_zeros(len(unseen), SEEDS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.autograd.backward(loss(~validation).sum())
        optimizer.step()
        with torch.no_grad():
            now = loss(validation)
            answers = torch.where(now < least, answered(unseen), answers)
            least = torch.minimum(now, least)
    return _mean(((answers > 0).numpy() == (truth == labels.max())[:, None]).mean(1), name)
