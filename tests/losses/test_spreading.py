"""GOR and SIGReg: values worked out by hand, the definitions written out, batches, masks, scale, directions, memory."""

import math

import numpy as np
import pytest
import torch
from support import P4, assert_same, normal, uneven

from isonb.errors import DegenerateError
from isonb.losses import GORLoss, SIGRegLoss
from isonb.losses.sigreg import random_directions, sigreg_penalty
from isonb.measures.cosine import mean_cosine

SLICES = random_directions(5, 7, seed=1).double()


def gor_penalty(points, **options):
    return GORLoss(**options)(points)


def pairs_of(x):
    """All cosines of two different rows."""
    unit = x / x.norm(dim=-1, keepdim=True)
    return torch.stack([unit[i] @ unit[j] for i in range(len(x)) for j in range(len(x)) if i != j])


def written_out(x, directions):
    """SIGReg with complex numbers and numpy's trapezoid rule."""
    t = np.linspace(0, 3, 17)
    slices = x.numpy() @ directions.numpy().T
    ecf = np.exp(1j * t[:, None, None] * slices).mean(1)
    gauss = np.exp(-(t**2) / 2)
    squared = np.abs(ecf - gauss[:, None]) ** 2 * gauss[:, None]
    return float(len(x) * 2 * np.trapezoid(squared, t, axis=0).mean())


def test_gor_is_the_means_over_pairs():
    x = uneven(9, 5)
    cosines = pairs_of(x)
    first, second = cosines.mean(), cosines.square().mean()
    assert second > 1 / 5
    assert_same(gor_penalty(x), first**2 + second - 1 / 5)
    assert_same(gor_penalty(x, mean_weight=3.0, square_weight=0.5), 3 * first**2 + (second - 1 / 5) / 2)
    assert_same(gor_penalty(x, mean_weight=0.0, hinge=False), second)
    assert_same(gor_penalty(x, square_weight=0.0), mean_cosine(x) ** 2)
    assert pairs_of(P4).square().mean() < 1 / 2
    assert gor_penalty(P4, mean_weight=0.0).item() == 0  # under the share of two dimensions
    many = uneven(40, 5)  # more points than dimensions: through the other product
    assert_same(gor_penalty(many, mean_weight=0.0, hinge=False), pairs_of(many).square().mean())


def test_gor_leaves_zero_rows_out():
    x = uneven(7, 4)
    assert_same(gor_penalty(torch.cat([x, torch.zeros(3, 4).double()])), gor_penalty(x))
    assert gor_penalty(torch.zeros(5, 4)).item() == 0


@pytest.mark.parametrize("n", [3, 20])
def test_sigreg_is_the_integral(n):
    x = uneven(n, 5)
    assert sigreg_penalty(x, SLICES).item() == pytest.approx(written_out(x, SLICES), rel=1e-12)
    unit = 5**0.5 * x / x.norm(dim=-1, keepdim=True)
    assert sigreg_penalty(x, SLICES, normalize=True).item() == pytest.approx(written_out(unit, SLICES), rel=1e-12)
    assert_same(sigreg_penalty(x, -SLICES), sigreg_penalty(x, SLICES))


def test_sigreg_asks_for_a_scale():
    x = normal(256, 384)
    directions = random_directions(384, 256, seed=0)
    unit = x / x.norm(dim=-1, keepdim=True)
    assert sigreg_penalty(x, directions).item() == pytest.approx(1.0525, abs=0.05)
    assert sigreg_penalty(unit, directions).item() > 100  # read as collapsed
    fixed = [sigreg_penalty(cloud, directions, normalize=True) for cloud in (x, unit, 1e-3 * x)]
    assert_same(fixed[1:], [fixed[0]] * 2, rtol=1e-8)
    assert fixed[0].item() == pytest.approx(1.05, abs=0.1)


def test_sigreg_keeps_one_number_a_point_and_slice():
    remaining = []
    x, directions = normal(50, 8).requires_grad_(), random_directions(8, 400, seed=0).double()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: remaining.append(t.numel()) or t, lambda t: t):
        sigreg_penalty(x, directions)
    large = [size for size in remaining if size >= 50 * 400]
    assert large == [50 * 400]


def test_directions():
    many = random_directions(6, 20_000, seed=3)
    assert_same(many.norm(dim=-1), torch.ones(20_000), rtol=1e-5)
    assert (many.mT @ many / 20_000 - torch.eye(6) / 6).abs().max() < 0.01
    assert torch.equal(many, random_directions(6, 20_000, seed=3))
    assert not torch.equal(many, random_directions(6, 20_000, seed=4))
    torch.manual_seed(0)
    first, second = random_directions(6, 2), random_directions(6, 2)
    torch.manual_seed(0)
    assert torch.equal(first, random_directions(6, 2))
    assert not torch.equal(first, second)


def test_the_loss_draws_anew_unless_it_has_a_seed():
    x = uneven(30, 6)
    fixed, fresh = SIGRegLoss(2.0, 4, seed=5, normalize=True), SIGRegLoss(2.0, 4)
    want = 2 * sigreg_penalty(x, random_directions(6, 4, seed=5), normalize=True)
    assert_same((fixed(x), fixed(x)), (want, want))
    torch.manual_seed(1)
    results = [fresh(x).item(), fresh(x).item()]
    torch.manual_seed(1)
    assert results == [fresh(x).item(), fresh(x).item()]
    assert not math.isclose(*results)


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 2796202.67), (torch.float64, 1.5011998757e15)])
def test_sigreg_refuses_points_whose_angles_are_noise(dtype, limit):
    """An angle of 3 s is known to a radian up to s = 1 / (3 eps), which is 2^23 / 3 or 2^52 / 3."""
    along = torch.ones(1, 1, dtype=dtype)
    near = torch.tensor([[1.0], [-0.99 * limit]], dtype=dtype)
    assert torch.isfinite(sigreg_penalty(near, along))
    far = torch.tensor([[1.0], [-1.01 * limit]], dtype=dtype)
    with pytest.raises(DegenerateError, match=r"^sigreg_penalty: points must reach at most .* along a direction"):
        sigreg_penalty(far, along)
    want = written_out(torch.tensor([[1.0], [-1.0]]).double(), torch.ones(1, 1).double())
    assert sigreg_penalty(far, along, normalize=True).item() == pytest.approx(want, rel=10 * torch.finfo(dtype).eps)
