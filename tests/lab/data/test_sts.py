"""Similarity scores: cosine in its limits, the three protocols by definition, and where they agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb.lab.data.sts import PROTOCOLS, pair_cosine, sts_score
from tests.support import check_asynchronous, normal

stats = pytest.importorskip("scipy.stats")
NAMES = ["a"] * 30 + ["b"] * 50 + ["c"] * 7


def pairs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    gold = draw.integers(0, 11, len(NAMES)) / 2
    return gold + draw.normal(size=len(NAMES)) + np.repeat([0.0, 4.0, -3.0], [30, 50, 7]), gold


def test_cosine() -> None:
    x, y = normal(20, 5), normal(20, 5, seed=1)
    want = [
        float(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))) for a, b in zip(x.numpy(), y.numpy(), strict=True)
    ]
    torch.testing.assert_close(pair_cosine(x, y), torch.tensor(want, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(pair_cosine(1e200 * x, 1e-200 * y), pair_cosine(x, y), rtol=1e-12, atol=1e-12)
    assert torch.equal(pair_cosine(x.half(), y.half()), pair_cosine(x.half().float(), y.half().float()))
    assert bool((pair_cosine(x.float(), 3 * x.float()) <= 1).all())
    check_asynchronous(lambda z: pair_cosine(z, z), x)


def test_cosine_of_bad_vectors() -> None:
    x = normal(3, 4)
    with pytest.raises(ShapeError, match=r"pair_cosine: y must have the shape of x, \(3, 4\); got \(2, 4\)"):
        pair_cosine(x, x[:2])
    with pytest.raises(DegenerateError, match="all zeros; got row 1"):
        pair_cosine(x, torch.cat([x[:1], 0 * x[1:]]))
    with pytest.raises(DegenerateError, match="finite"):
        pair_cosine(x, x / 0)


def test_the_protocols_by_definition() -> None:
    predicted, gold = pairs()
    names = np.array(NAMES)
    parts = {name: 100 * stats.spearmanr(predicted[names == name], gold[names == name])[0] for name in "abc"}
    wants = {
        "mean": sum(parts.values()) / 3,
        "weighted": (30 * parts["a"] + 50 * parts["b"] + 7 * parts["c"]) / 87,
        "all": 100 * stats.spearmanr(predicted, gold)[0],
    }
    for protocol in PROTOCOLS:
        got = sts_score(predicted, gold, NAMES, protocol)
        assert got.value == pytest.approx(wants[protocol], rel=1e-12)
        assert got.subsets == pytest.approx(parts, rel=1e-12)
        assert (got.protocol, got.sizes) == (protocol, {"a": 30, "b": 50, "c": 7})
    assert len({round(value, 3) for value in wants.values()}) == 3


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ((*pairs(), NAMES, "median"), InputError, "mean, weighted, all; got 'median'"),
        ((*pairs(), NAMES[1:]), ShapeError, "87, 87 and 86"),
        (([1, 2], [3, 3]), DegenerateError, "constant"),
        ((*pairs(), [""] * 87, "mean"), InputError, "needs the subset of each pair"),
    ],
)
def test_bad_requests(request_: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sts_score(*request_)
