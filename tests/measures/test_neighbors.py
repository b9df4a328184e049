"""Neighbours and the measures on them against scikit-learn, scikit-dimension, saved values and plain loops."""

import math
from functools import partial

import numpy as np
import pytest
import skdim
import torch
from golden_cases import cases, load, points, values
from scipy.spatial.distance import cdist
from support import (
    assert_same,
    check_finite_gradient,
    check_gradient,
    check_invariant,
    check_rejects,
    gradient,
    normal,
    uneven,
)
from torch import Tensor

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb.measures.neighbors import id_score, knn, lsds, mle_dimension, two_nn

CLOUDS = [case for case in cases("topology") if case != "barcodes_a"]


@pytest.mark.parametrize("case", CLOUDS)
def test_saved_two_nn(case):
    x, saved = points(case), values("topology", case)["twonn"]
    if "discard" in saved:
        assert_same(two_nn(x), x.new_tensor(saved["discard"]))
    if "keep" in saved:  # the official code holds F in float32
        assert_same(two_nn(x, keep=0.2), x.new_tensor(saved["keep"]), rtol=1e-6)


@pytest.mark.parametrize(("n", "d", "discard"), [(30, 2, 0.1), (101, 5, 0.25), (300, 40, 0.1), (57, 3, 0.0)])
def test_two_nn_equals_scikit_dimension(n, d, discard):
    x = uneven(n, d, seed=n)
    if discard:
        want = skdim.id.TwoNN(discard_fraction=discard).fit(x.numpy()).dimension_
        assert two_nn(x, discard).item() == pytest.approx(want, rel=1e-9)
    else:  # there F = 1 is used, which is infinite
        assert math.isfinite(two_nn(x, discard).item())


@pytest.mark.parametrize("d", [2, 5])
def test_dimensions_of_a_uniform_cube(d):
    x = torch.rand(3000, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    x = torch.cat([x, torch.zeros(3000, 10 - d, dtype=torch.float64)], 1)
    for function in (two_nn, partial(two_nn, keep=0.2), mle_dimension):
        assert function(x).item() == pytest.approx(d, rel=0.15)
    assert id_score(x).item() == pytest.approx(mle_dimension(x).item() / 10)


@pytest.mark.parametrize(("n", "d", "k"), [(50, 3, 20), (200, 12, 20), (60, 2, 5)])
def test_mle_equals_scikit_dimension(n, d, k):
    x = uneven(n, d, seed=d)
    want = skdim.id.MLE().fit(x.numpy(), n_neighbors=k).dimension_
    assert mle_dimension(x, k).item() == pytest.approx(want, rel=1e-9)
    assert id_score(x, k).item() == pytest.approx(min(1.0, want / d), rel=1e-9)


def test_mle_leaves_zero_distances_out():
    x = normal(40, 3)
    x = torch.cat([x, x[:5]])
    gaps, count = 0.0, 0
    for row in np.sort(cdist(x, x), axis=1)[:, 1:11].tolist():
        near = [r for r in row if r > 0]
        gaps += sum(math.log(near[-1] / r) for r in near)
        count += len(near) - 1
    assert mle_dimension(x, 10).item() == pytest.approx(count / gaps, rel=1e-12)


def test_given_distances_have_no_coordinates_to_be_rounded():
    """Two points nearer to each other than four units in the last place of a row of their distances."""
    line = torch.tensor([[0.0], [1e-7], [1.0], [3.0]])
    away = torch.cdist(line, line, compute_mode="donot_use_mm_for_euclid_dist")
    assert two_nn(away, metric="precomputed").item() == pytest.approx(two_nn(line).item(), rel=1e-6)


def test_weights_of_far_neighbours_sum_to_one_too():
    x = torch.eye(3)
    assert torch.exp(torch.tensor(-2 / 0.01)) == 0
    assert lsds(x, x, k=2, t=0.01, normalize_weights=True).item() == pytest.approx(1.5)  # |e1 - (e2 + e3) / 2|^2


def soft_expand(x: Tensor, alpha: float = -0.6) -> Tensor:
    """A transform to measure: singular values through a logarithm, the largest kept."""
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    f = -torch.log(1 - alpha * (s + alpha) + 1e-7) / alpha
    return u * (f * s.max() / f.max()) @ v


@pytest.mark.parametrize("case", [case for case in CLOUDS if "lsds" in values("topology", case)])
def test_saved_lsds(case):
    x, saved = points(case), values("topology", case)["lsds"]
    y = soft_expand(x)
    assert_same(lsds(x, y), x.new_tensor(saved["paper"]), rtol=1e-8)
    assert_same(lsds(x, y, normalize_weights=True), x.new_tensor(saved["normalized"]), rtol=1e-8)
    if "code" in saved:
        assert_same(lsds(x, y, mode="code"), x.new_tensor(saved["code"]), rtol=1e-8)


def lsds_by_loops(x: np.ndarray, y: np.ndarray, k: int, t: float, mode: str, normalize: bool) -> float:
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    total = 0.0
    for i in range(len(x)):
        order = np.argsort(np.linalg.norm(x - x[i], axis=1), kind="stable")
        near = order[:k] if mode == "code" else order[order != i][:k]
        if mode == "code":
            gram = (x[near] - x[i]) @ (x[near] - x[i]).T
            w = np.linalg.solve(gram + 1e-3 * np.trace(gram) * np.eye(k), np.ones(k))
            w /= w.sum()
        else:
            w = np.exp(-np.square(x[near] - x[i]).sum(1) / t)
            w = w / w.sum() if normalize else w
        total += np.square(y[i] - w @ y[near]).sum()
    return math.sqrt(total) if mode == "code" else total / len(x)


@pytest.mark.parametrize(("mode", "normalize"), [("paper", False), ("paper", True), ("code", False)])
def test_lsds_equals_plain_loops(mode, normalize):
    x, y = uneven(40, 6), uneven(40, 9, seed=4)
    got = lsds(x, y, k=5, t=0.7, mode=mode, normalize_weights=normalize).item()
    assert got == pytest.approx(lsds_by_loops(x.numpy(), y.numpy(), 5, 0.7, mode, normalize), rel=1e-10)


def test_lsds_invariances():
    x = uneven(30, 4)
    check_invariant(lambda z: lsds(z, x.sin(), k=5), x, ["rotation", "reflection", "scale", "row lengths"])
    check_invariant(lambda z: lsds(x, z, k=5), x, ["rotation", "reflection", "scale", "row lengths"])
    check_invariant(lambda z: lsds(z, z.square(), k=5), x, ["permutation"])


def test_gradients():
    x, y = normal(12, 3), normal(12, 4, seed=1)
    for options in ({}, {"normalize_weights": True}, {"mode": "code"}):
        check_gradient(partial(lsds, k=4, **options), x, y)
    copies = torch.cat([x, x[:4]])
    check_finite_gradient(lambda z: knn(z, 3)[0], copies)
    check_finite_gradient(lambda z: mle_dimension(z, 5), copies)
    assert bool((gradient(lambda z: knn(z, 1)[0][:4], copies) == 0).all())
    assert not two_nn(x.clone().requires_grad_()).requires_grad


def test_errors():
    check_rejects(two_nn, DegenerateError, "unequal distances", load("lattice_27x3")["points"])
    check_rejects(two_nn, DegenerateError, "unequal distances", torch.arange(9.0).unsqueeze(-1), keep=0.2)
    for wrong in ({"discard": 1.0}, {"discard": -0.1}, {"keep": 0.0}, {"keep": 1.5}):
        check_rejects(two_nn, InputError, "must be a fraction", normal(9, 2), **wrong)
    check_rejects(mle_dimension, DegenerateError, "unequal distances", torch.ones(9, 3), k=4)
    check_rejects(lsds, InputError, "mode", normal(6, 2), normal(6, 2), 3, mode="else")
    check_rejects(lsds, InputError, "t must be positive", normal(6, 2), normal(6, 2), 3, 0.0)
    check_rejects(lsds, ShapeError, "y must have the points of x", normal(6, 2), normal(7, 2), 3)
    check_rejects(lsds, DegenerateError, "y must be finite", normal(6, 2), normal(6, 2) * float("nan"), 3)
