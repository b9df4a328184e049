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
    check_rejects,
    gradient,
    normal,
    uneven,
)

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb.layers.soft_decay import soft_decay
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


@pytest.mark.parametrize("case", [case for case in CLOUDS if "lsds" in values("topology", case)])
def test_saved_lsds(case):
    x, saved = points(case), values("topology", case)["lsds"]
    y = soft_decay(x, -0.6)
    assert_same(lsds(x, y), x.new_tensor(saved["paper"]), rtol=1e-8)
    assert_same(lsds(x, y, normalize_weights=True), x.new_tensor(saved["normalized"]), rtol=1e-8)
    if "code" in saved:
        assert_same(lsds(x, y, mode="code"), x.new_tensor(saved["code"]), rtol=1e-8)


@pytest.mark.parametrize("t", [0.5, 1.0, 0.01])  # at the last exp(-2 / t) is 0 in float32
def test_lsds_of_axes(t):
    """Any two other axes are near: |e1 - w (e2 + e3)|^2 is 1 + 2 w^2."""
    x, weight = torch.eye(5), math.exp(-2 / t)
    assert lsds(x, x, k=2, t=t).item() == pytest.approx(1 + 2 * weight**2)
    assert lsds(x, x, k=2, t=t, normalize_weights=True).item() == pytest.approx(1.5)
    assert lsds(x, 3 * x, k=4, t=t).item() == pytest.approx(1 + 4 * weight**2)


def test_gradients():
    x, y = normal(12, 3), normal(12, 4, seed=1)
    check_gradient(partial(lsds, k=4, normalize_weights=True), x, y)
    copies = torch.cat([x, x[:4]])
    check_finite_gradient(lambda z: knn(z, 3)[0], copies)
    check_finite_gradient(lambda z: mle_dimension(z, 5), copies)
    assert bool((gradient(lambda z: knn(z, 1)[0][:4], copies) == 0).all())


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
