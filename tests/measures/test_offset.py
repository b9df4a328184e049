"""Where a cloud lies: shares that no factor changes, of points of any size."""

import pytest
import torch
from support import as_on_an_accelerator, assert_same, check_rejects, uneven

from isonb.errors import DegenerateError, ShapeError
from isonb.measures.offset import common_mean, largest_share, mean_norm, relative_spread

X = uneven(30, 5)
VALUES = {
    common_mean: X.mean(0).square().sum() / X.square().sum(-1).mean(),
    mean_norm: X.mean(0).norm() / X.norm(dim=-1).mean(),
    relative_spread: (1 - X.mean(0).square().sum() / X.square().sum(-1).mean()).sqrt(),
    largest_share: X.var(0).max() / X.var(0).sum(),
}


@pytest.mark.parametrize("measure", VALUES)
@pytest.mark.parametrize("factor", [1e-40, 1e-22, 1.0, 1e20, 3e37])
def test_no_factor_changes_a_share(measure, factor):
    assert_same(measure(X), VALUES[measure])
    few_digits = factor < 1e-37  # float32 has no more of such numbers
    scaled = (X * factor).float()
    assert measure(scaled).item() == pytest.approx(VALUES[measure].item(), rel=1e-3 if few_digits else 1e-5)


def test_equal_points_have_no_spread_and_no_widest_coordinate():
    x = torch.tensor([0.1, 0.7, -1.3]).expand(7, 3) * 3
    for measure in (relative_spread, largest_share):
        assert measure(x).item() == 0
        assert measure(torch.zeros(4, 3)).item() == 0
    assert [round(measure(x).item(), 6) for measure in (common_mean, mean_norm)] == [1, 1]


def test_small_coordinates_beside_a_constant_one_have_their_share():
    small = X.float() * 1e-25
    x = torch.cat([torch.ones(30, 1), small], -1)
    assert largest_share(x).item() == pytest.approx(largest_share(X).item(), rel=1e-5)


def test_a_cloud_of_zeros_has_no_place():
    for measure in (common_mean, mean_norm):
        check_rejects(measure, DegenerateError, "must differ from zero; got 4 zero rows", torch.zeros(4, 3))
        check_rejects(measure, ShapeError, r"must have shape \(n, d\)", torch.ones(2, 4, 3))


def test_where_values_are_not_looked_at_a_cloud_of_zeros_gives_0(monkeypatch):
    as_on_an_accelerator(monkeypatch)
    for measure in VALUES:
        assert measure(torch.zeros(4, 3)).item() == 0
        assert measure(X * 1e20).item() == pytest.approx(VALUES[measure].item())
