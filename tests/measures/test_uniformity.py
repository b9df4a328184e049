"""RBF uniformity against scipy's distances, in blocks and out of them."""

import functools
import math

import numpy as np
import pytest
import torch
from golden_cases import cases, points, values
from scipy.spatial.distance import pdist
from scipy.special import logsumexp
from support import assert_same, check_finite_gradient, check_rejects, gradient, normal, uneven

from isonb.errors import DegenerateError, InputError
from isonb.measures.uniformity import rbf_uniformity


def by_pairs(x, t=0.5, normalize=True):
    x = x / np.linalg.norm(x, axis=1, keepdims=True) if normalize else x
    square = pdist(x, "sqeuclidean")
    return logsumexp(-square / t) - math.log(len(square))


@pytest.mark.parametrize("n", [2, 5, 13])
@pytest.mark.parametrize("chunk", [1, 4, 1024])
def test_all_pairs(n, chunk):
    x = uneven(n, 6)
    for t in (0.1, 0.5, 3):
        for normalize in (True, False):
            want = by_pairs(x.numpy(), t, normalize)
            assert rbf_uniformity(x, t, normalize, chunk=chunk).item() == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("case", cases("spectral"))
def test_official_values(case):
    x, want = points(case), values("spectral", case)["rbf"]
    assert rbf_uniformity(x, chunk=50).item() == pytest.approx(want["normalised"], rel=1e-9)
    if want["unnormalised"] == "-inf":  # the official sum underflows
        assert rbf_uniformity(x, normalize=False).item() == pytest.approx(by_pairs(x.numpy(), normalize=False))
    else:
        assert rbf_uniformity(x, normalize=False).item() == pytest.approx(want["unnormalised"], rel=1e-9)


def test_memory_stays_within_a_block():
    n, chunk = 600, 50
    remaining = []

    def pack(tensor):
        remaining.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = rbf_uniformity(uneven(n, 8).requires_grad_(), chunk=chunk)
    assert max(remaining) < n * chunk
    value.backward()


def test_zero_rows_are_left_out_of_directions():
    x = uneven(7, 4)
    padded = torch.cat([x[:3], torch.zeros(2, 4).double(), x[3:]])
    assert_same(rbf_uniformity(padded), rbf_uniformity(x))
    assert not torch.equal(rbf_uniformity(padded, normalize=False), rbf_uniformity(x, normalize=False))
    for chunk in (4, 1024):
        check_finite_gradient(functools.partial(rbf_uniformity, chunk=chunk), padded)


def test_rejected_input():
    x = uneven(5, 3)
    for t in (0, -1, float("nan"), float("inf")):
        check_rejects(rbf_uniformity, InputError, "t must be positive", x, t)
    check_rejects(rbf_uniformity, DegenerateError, "differ from zero", torch.zeros(4, 3))


@pytest.mark.parametrize("far", [1e1, 1e3, 1e5, 1e8])
@pytest.mark.parametrize("kind", ["a row", "clusters", "offset"])
def test_far_rows_in_float32_have_the_value_and_the_gradient_of_float64(kind, far):
    x = normal(300, 64).float() / 8
    if kind == "a row":
        x[0] *= far
    elif kind == "clusters":
        x += min(far, 1e3) * normal(3, 64, seed=1).float()[torch.arange(300) % 3]
    else:
        x += min(far, 1e5)
    function = functools.partial(rbf_uniformity, normalize=False)
    assert_same(function(x), function(x.double()), rtol=1e-4, atol=1e-5, dtype=False)
    slopes = [gradient(function, points).double() for points in (x, x.double())]
    assert float((slopes[0] - slopes[1]).norm()) < 1e-3 * float(slopes[1].norm())
