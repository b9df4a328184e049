"""The partition score against the official values."""

import math

import pytest
import torch
from golden_cases import cases, points, values
from support import assert_same, check_rejects, uneven

from isonb.errors import InputError
from isonb.measures.partition import partition_score


@pytest.mark.parametrize("case", [case for case in cases("spectral") if case != "lattice_27x3"])
def test_official_values(case):  # the lattice repeats an eigenvalue, which leaves its eigenvectors free
    x, want = points(case), values("spectral", case)["partition"]
    for signs, key in (("both", "mu_log_both_signs"), ("canonical", "mu_log_canonical_sign")):
        log = partition_score(x, signs, log=True).item()
        assert log == pytest.approx(want[key], rel=1e-9)
        assert partition_score(x, signs).item() == pytest.approx(math.exp(log), rel=1e-9)


def test_axes_as_they_are_returned():
    x = uneven(9, 4)
    heights = (x @ torch.linalg.svd(x, full_matrices=False).Vh.T).logsumexp(0)
    assert_same(partition_score(x, "as_returned"), (heights.min() - heights.max()).exp())


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
