"""The partition score against its definition with eigenvectors of X^T X."""

import numpy as np
import pytest
import torch
from golden_cases import cases, points, values
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from support import (
    assert_same,
    check_rejects,
    uneven,
)

from isonb.errors import InputError, ShapeError
from isonb.measures.partition import partition_score


def by_eigenvectors(x, both):
    """Log score by the full eigendecomposition, null directions included."""
    axes = np.linalg.eigh(x.T @ x)[1]
    if both:
        axes = np.concatenate([axes, -axes], 1)
    else:
        axes = axes * np.sign(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0))
    heights = logsumexp(x @ axes, axis=0)
    return heights.min() - heights.max()


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (6, 6)])
def test_definition(shape):
    x = uneven(*shape)
    for signs in ("both", "canonical"):
        want = by_eigenvectors(x.numpy(), signs == "both")
        assert partition_score(x, signs, log=True).item() == pytest.approx(want, rel=1e-9)
        assert partition_score(x, signs).item() == pytest.approx(np.exp(want), rel=1e-9)


def test_one_sign_as_returned_lies_above_both():
    x = uneven(12, 5)
    one = partition_score(x, "as_returned")
    assert partition_score(x) <= one <= 1
    axes = torch.linalg.svd(x, full_matrices=False).Vh.T
    heights = (x @ axes).logsumexp(0)
    assert_same(one, (heights.min() - heights.max()).exp())


def test_known_number():
    rows = torch.tensor([[1, 0], [0, 1], [1, 1]], dtype=torch.float64)
    assert partition_score(rows).item() == pytest.approx(0.150469, abs=5e-7)


@pytest.mark.parametrize("case", [case for case in cases("spectral") if case != "lattice_27x3"])
def test_official_values(case):  # the lattice repeats an eigenvalue, which leaves its eigenvectors free
    want = values("spectral", case)["partition"]
    assert partition_score(points(case), log=True).item() == pytest.approx(want["mu_log_both_signs"], rel=1e-9)
    canonical = partition_score(points(case), "canonical", log=True).item()
    assert canonical == pytest.approx(want["mu_log_canonical_sign"], rel=1e-9)


def test_few_points_leave_directions_with_the_height_of_a_point_count():
    x = torch.tensor([[3.0, 0, 0], [3.0, 0, 0]]).double()  # the only direction has Z = 2 e^3 and 2 e^-3
    assert partition_score(x, log=True).item() == pytest.approx(-6)
    assert partition_score(x, "canonical", log=True).item() == pytest.approx(-3)


def test_no_overflow_and_no_underflow_of_the_logarithm():
    x = uneven(20, 4) * 1e4
    assert partition_score(x).item() == 0
    assert -1e6 < partition_score(x, log=True).item() < -1e4
    assert partition_score(x.float(), log=True).item() == pytest.approx(partition_score(x, log=True).item(), rel=1e-5)


@given(st.integers(2, 10), st.integers(1, 10), st.integers(0, 10**6))
def test_bounds(n, d, seed):
    x = uneven(n, d, seed=seed)
    for signs in ("both", "as_returned", "canonical"):
        assert 0 <= partition_score(x, signs).item() <= 1
        assert partition_score(x, signs, log=True).item() <= 0


def test_isotropic_clouds_score_one():
    assert partition_score(torch.cat([torch.eye(4), -torch.eye(4)])).item() == pytest.approx(1)
    assert partition_score(torch.zeros(5, 3)).item() == 1


def test_it_sees_the_mean():
    x = torch.cat([torch.eye(4), -torch.eye(4)]).double()
    assert partition_score(x + 3).item() < 0.01


def test_no_gradient():
    assert not partition_score(uneven(5, 3).requires_grad_()).requires_grad


def test_rejected_input():
    check_rejects(partition_score, InputError, "signs must be one of both", uneven(5, 3), "plus")
    check_rejects(partition_score, ShapeError, "at least 2 points", uneven(1, 3))
