"""Points that follow a loss."""

import pytest
import torch

from isonb.lab.measuring.walks import walk

POINTS = torch.randn(20, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("loss", [None, lambda x: x.square().sum(), lambda x: 1e6 * x.square().sum()])
def test_one_step_goes_as_far_as_asked(loss):
    moved = walk(POINTS, loss, steps=1, length=0.25) - POINTS
    assert float(moved.norm()) == pytest.approx(0.25 * float((POINTS - POINTS.mean(0)).norm()))


def test_a_loss_falls_and_its_scale_does_not_matter():
    found = [walk(POINTS, lambda x, k=k: k * x.square().sum(), steps=10, length=0.5) for k in (1.0, 100.0)]
    torch.testing.assert_close(*found)
    assert found[0].square().sum() < POINTS.square().sum()


def test_random_walks_follow_from_the_seed():
    first, same, other = (walk(POINTS, None, steps=3, length=0.1, seed=k) for k in (0, 0, 1))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
