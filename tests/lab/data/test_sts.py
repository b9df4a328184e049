"""Similarity scores: cosine in its limits, and the three protocols by definition."""

import numpy as np
import pytest
import torch
from scipy import stats

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb_lab.data.sts import PROTOCOLS, Gold, gains, pair_cosine, scores, sts_score
from tests.support import check_asynchronous, normal

NAMES = ["a"] * 30 + ["b"] * 50 + ["c"] * 7
DRAW = np.random.default_rng(0)
GOLD = DRAW.integers(0, 11, len(NAMES)) / 2
PREDICTED = GOLD + DRAW.normal(size=len(NAMES)) + np.repeat([0.0, 4.0, -3.0], [30, 50, 7])


def test_cosine():
    x, y = normal(20, 5), normal(20, 5, seed=1)
    torch.testing.assert_close(pair_cosine(x, y), torch.cosine_similarity(x, y), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(pair_cosine(1e200 * x, 1e-200 * y), pair_cosine(x, y), rtol=1e-12, atol=1e-12)
    assert torch.equal(pair_cosine(x.half(), y.half()), pair_cosine(x.half().float(), y.half().float()))
    assert bool((pair_cosine(x.float(), 3 * x.float()) <= 1).all())
    check_asynchronous(lambda z: pair_cosine(z, z), x)
    with pytest.raises(ShapeError, match=r"pair_cosine: y must have the shape of x, \(20, 5\); got \(2, 5\)"):
        pair_cosine(x, x[:2])
    with pytest.raises(DegenerateError, match="all zeros; got row 1"):
        pair_cosine(x, torch.cat([x[:1], 0 * x[1:]]))


def test_the_protocols_by_definition():
    names = np.array(NAMES)
    parts = {name: 100 * stats.spearmanr(PREDICTED[names == name], GOLD[names == name])[0] for name in "abc"}
    wants = {
        "mean": sum(parts.values()) / 3,
        "weighted": (30 * parts["a"] + 50 * parts["b"] + 7 * parts["c"]) / 87,
        "all": 100 * stats.spearmanr(PREDICTED, GOLD)[0],
    }
    assert {item: sts_score(PREDICTED, GOLD, NAMES, item) for item in PROTOCOLS} == pytest.approx(wants, rel=1e-12)
    assert len({round(value, 3) for value in wants.values()}) == 3


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ((PREDICTED, GOLD, NAMES, "median"), InputError, "mean, weighted, all; got 'median'"),
        ((PREDICTED, GOLD, NAMES[1:]), ShapeError, "87, 87 and 86"),
        ((PREDICTED, GOLD, [""] * 87, "mean"), InputError, "needs the subset of each pair"),
    ],
)
def test_bad_requests(request_, error, message):
    with pytest.raises(error, match=message):
        sts_score(*request_)


def test_a_subset_that_cannot_be_scored_leaves_what_needs_it_undefined():
    gold = Gold([1.0, 2, 3, 4, 1, 2, 3, 5, 5], ["a"] * 4 + ["b"] * 3 + ["c"] * 2)
    cosines = [0.1, 0.2, 0.4, 0.3, 0.9, 0.8, 0.7, 0.6, 0.5]
    result, gained = scores(cosines, gold), gains(cosines, cosines[::-1], gold, 0)
    assert result["subset.c.spearman"] is result["spearman.mean"] is gained["difference.spearman.mean.low"] is None
    assert result["subset.b.spearman"] == pytest.approx(-100)
    assert result["spearman.all"] is not None
    assert gained["difference.spearman.all.low"] < gained["difference.spearman.all.high"]
