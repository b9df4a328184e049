"""The test suite of the IsoScore paper (Rudman et al. 2022): populations in closed form, samples within their error."""

import numpy as np
import pytest
import torch
from support import assert_same, normal

from isonb.measures.isoscore import isoscore, isoscore_from_cov


@pytest.mark.parametrize("d", [2, 3, 9, 1000])
def test_high_dimension(d):
    assert isoscore_from_cov(torch.eye(d).double()).item() == pytest.approx(1)
    if d < 10:
        assert isoscore(normal(100_000, d, seed=d)).item() == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("k", range(1, 26))
def test_dimensions_used(k):
    used = (torch.arange(25) < k).double()
    assert isoscore_from_cov(torch.diag(used)).item() == pytest.approx((k - 1) / 24)
    if k in (1, 7, 25):
        assert isoscore(normal(20_000, 25, seed=k) * used).item() == pytest.approx((k - 1) / 24, abs=5e-3)


@pytest.mark.parametrize(("x", "want"), [(1, 1.0), (10, 0.257), (25, 0.0915), (75, 0.028)])
def test_maximum_variance(x, want):
    cov = torch.diag(torch.tensor([x] + [1.0] * 9).double())
    closed = ((x + 9) ** 2 / (x**2 + 9) - 1) / 9
    assert isoscore_from_cov(cov).item() == pytest.approx(closed)
    assert closed == pytest.approx(want, abs=1e-3)
    assert isoscore(normal(100_000, 10, seed=x) * cov.diag().sqrt()).item() == pytest.approx(closed, abs=0.01)


def test_rotation():
    cov = torch.tensor([[1, 0.8], [0.8, 1]]).double()
    assert isoscore_from_cov(cov).item() == pytest.approx(4 / 3.28 - 1)
    x = normal(10_000, 2, seed=8) @ torch.linalg.cholesky(cov).T
    assert isoscore(x).item() == pytest.approx(0.2195, abs=0.01)
    for degrees in (120, 240):
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        assert_same(isoscore(x @ torch.tensor([[c, s], [-s, c]])), isoscore(x))
    assert_same(isoscore(x @ torch.linalg.eigh(x.T.cov())[1]), isoscore(x))


def test_global_stability():
    line = normal(1000, 1, seed=9).expand(-1, 3)
    meat = normal(15_000, 3, seed=10)
    got = [isoscore(torch.cat([line, meat[:m]])).item() for m in (0, 1000, 5000, 15_000)]
    assert got == pytest.approx([0, 0.5, 0.921, 0.988], abs=0.03)
    assert got == sorted(got)


def test_lines_and_planes():
    t = torch.linspace(-3, 5, 200).double().unsqueeze(1)
    assert isoscore(t * torch.tensor([1.0, 2, -3])).item() == pytest.approx(0, abs=1e-12)
    assert isoscore(t * normal(1, 1000, seed=11)).item() == pytest.approx(0, abs=1e-12)
    assert isoscore_from_cov(torch.ones(10, 10).double()).item() == pytest.approx(0, abs=1e-12)
    assert isoscore_from_cov(torch.diag(torch.tensor([1e5, 1e-10, 1e-10]).double())).item() == pytest.approx(
        0, abs=1e-9
    )
    x, y = normal(10_000, 1, seed=12), normal(10_000, 1, seed=13)
    assert isoscore(torch.cat([x, y, (x + 2 * y - 4) / 3], 1)).item() == pytest.approx(0.455, abs=0.01)
    assert isoscore(torch.cat([x, y, 6 + x - 5 * y], 1)).item() == pytest.approx(0.037, abs=0.003)


@pytest.mark.slow
def test_a_thousand_dimensions_are_biased_by_the_sample():
    assert isoscore(normal(10_000, 1000, seed=14).float()).item() == pytest.approx(0.909, abs=2e-3)
