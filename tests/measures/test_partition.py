"""The partition score against its definition with eigenvectors of X^T X."""

import numpy as np
import pytest
import torch
from golden_cases import cases, points, values
from scipy.special import logsumexp
from support import assert_same, check_rejects, uneven

from isonb.errors import InputError
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
    axes = torch.linalg.svd(x, full_matrices=False).Vh.T
    heights = (x @ axes).logsumexp(0)
    if shape[0] > shape[1]:
        assert_same(partition_score(x, "as_returned"), (heights.min() - heights.max()).exp())
    for signs in ("both", "canonical"):
        want = by_eigenvectors(x.numpy(), signs == "both")
        assert partition_score(x, signs, log=True).item() == pytest.approx(want, rel=1e-9)
        assert partition_score(x, signs).item() == pytest.approx(np.exp(want), rel=1e-9)


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


def test_rejected_input():
    check_rejects(partition_score, InputError, "signs must be one of both", uneven(5, 3), "plus")
