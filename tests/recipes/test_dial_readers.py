"""Readers of vectors against the libraries that do the same, and what a bad table of readers is told."""

import numpy as np
import pytest
from dial import readers
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import ndcg_score, roc_auc_score, v_measure_score
from sklearn.neighbors import KNeighborsClassifier

from isonb.errors import ShapeError


@pytest.fixture
def cloud():
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 120)
    return rng.normal(size=(120, 8)) + 0.8 * labels[:, None] * np.arange(8) / 8, labels


def pairs():
    rng = np.random.default_rng(3)
    return rng.integers(0, 60, 60), rng.integers(60, 120, 60), rng.integers(0, 6, 60).astype(float)


def cosine(x, first, second):
    return (x[first] * x[second]).sum(1) / np.linalg.norm(x[first], axis=1) / np.linalg.norm(x[second], axis=1)


@pytest.mark.parametrize(
    ("reader", "score", "label"),
    [
        (readers.similarity, lambda gold, cosines: spearmanr(cosines, gold)[0], lambda gold: gold),
        (readers.threshold, roc_auc_score, lambda gold: (gold > 2).astype(int)),
    ],
)
def test_readers_of_pairs_are_scored_as_by_the_libraries_on_each_draw(cloud, reader, score, label):
    first, second, gold = pairs()
    gold, outcome = label(gold), cosine(cloud[0], first, second)
    drawn = [np.repeat(np.arange(60), times.astype(int)) for times in readers.times_drawn(60, "set")[:5]]
    result = reader(cloud[0], first, second, gold, "set")
    assert result[:5] == pytest.approx([score(gold[rows], outcome[rows]) for rows in drawn])
    assert result[0] == pytest.approx(score(gold, outcome))


def test_retrieval_is_ndcg_at_10(cloud):
    x, _ = cloud
    questions, passages = np.arange(100, 120), np.arange(100)
    expected = np.arange(20)
    result = readers.retrieval(x, questions, expected, passages)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    scores = unit[questions] @ unit[passages].T
    truth = (passages[None] == expected[:, None]).astype(int)
    assert result["retrieval"][0] == pytest.approx(ndcg_score(truth, scores, k=10))
    assert result["recall at 1"][0] == pytest.approx((scores.argmax(1) == expected).mean())


def test_neighbours_are_those_of_scikit_learn(cloud):
    x, labels = cloud
    want = KNeighborsClassifier(10, metric="cosine").fit(x[:80], labels[:80]).score(x[80:], labels[80:])
    assert readers.neighbours(x[:80], labels[:80], x[80:], labels[80:])[0] == pytest.approx(want)
    with pytest.raises(ShapeError, match="10 training rows; got 9"):
        readers.neighbours(x[:9], labels[:9], x[80:], labels[80:])


def test_rounding_and_the_sign_of_an_axis_do_not_move_the_hidden_layer():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    x = rng.normal(size=(600, 24)) * np.linspace(3, 0.1, 24) + 0.3 * labels[:, None] * rng.normal(size=24)
    rounded = x * (1 + 1e-6 * rng.normal(size=x.shape))
    mirrored = x * np.where(np.arange(24) % 3 == 0, -1, 1)
    scores = [readers.hidden_layer(y[:400], labels[:400], y[400:], labels[400:]) for y in (x, rounded, mirrored)]
    assert scores[0][0] > 0.8
    assert (np.array(scores) == scores[0]).all()


def test_k_means_is_scored_by_its_v_measure(cloud):
    x, labels = cloud
    rows, twice = np.concatenate([x, x + 50 * labels[:, None]]), np.tile(labels, 2)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    want = v_measure_score(twice, KMeans(2, n_init=1, random_state=0).fit_predict(unit))
    assert readers.k_means(rows, twice, "set")[0] == pytest.approx(want)
    separate = np.where(labels[:, None] == 1, [0.0, 1.0], [1.0, 0.0])
    assert readers.k_means(separate, labels)[0] == pytest.approx(v_measure_score(labels, labels))
