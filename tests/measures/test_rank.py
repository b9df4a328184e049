"""The family of effective ranks and the decay of a spectrum, against values and formulas of the public code."""

import math

import numpy as np
import pytest
import torch
from support import P4, assert_same, check_rejects, normal, uneven

from isonb import alpha_req, anisotropy, effective_rank, participation_ratio
from isonb.errors import DegenerateError, FitWarning, InputError, ShapeError
from isonb.measures.rank import effective_number
from isonb.metrics import AlphaReQ


def with_variances(values):
    """A centred cloud whose covariance has these eigenvalues, up to a factor."""
    s = values.double().sqrt().diag()
    return torch.cat([s, -s])


def test_members_of_the_family_have_their_names():
    x = uneven(40, 12)
    q = np.linalg.svd(x.numpy(), compute_uv=False)
    q = q / q.sum()
    assert effective_rank(x).item() == pytest.approx(math.exp(-(q * np.log(q)).sum()))  # RankMe without its 1e-7
    assert_same(effective_rank(x, 2, squared=True, center=True), participation_ratio(x))
    assert_same(effective_rank(x, math.inf, squared=True), 1 / anisotropy(x, 1)[0])  # stable rank
    values = np.linalg.eigvalsh(np.cov(x.numpy().T))
    assert effective_rank(x, math.inf, squared=True, center=True).item() == pytest.approx(values.sum() / values[-1])
    falling = [effective_rank(x, order).item() for order in (0.1, 0.5, 0.999, 1, 1.001, 2, 7, math.inf)]
    assert falling == sorted(falling, reverse=True)
    assert falling[2] == pytest.approx(falling[3], rel=1e-3) == pytest.approx(falling[4], rel=1e-3)


@pytest.mark.parametrize("order", [0.3, 1, 2, math.inf])
def test_equal_directions_count_as_so_many(order):
    x = torch.linalg.qr(normal(20, 5))[0] @ torch.linalg.qr(normal(9, 5, seed=1))[0].mT  # 5 directions of 9
    assert effective_rank(x, order).item() == pytest.approx(5)
    assert effective_rank(x.float(), order).item() == pytest.approx(5, rel=1e-3)


@pytest.mark.parametrize("order", [1e-3, 0.5, 0.95, 1 - 1e-6, 1, 1 + 1e-6, 1 + 1e-12, 1.05, 2, 50, 200, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_order_is_the_one_of_exact_sums(order, dtype):
    needle = torch.tensor([1.0, *[0.01] * 50])
    for name, s in {"equal": torch.ones(100), "falling": 0.95 ** torch.arange(100.0), "needle": needle}.items():
        q = s.double() / s.double().sum()
        logs, mean = q.log(), (q * q.log()).sum()
        if abs(order - 1) < 1e-5:  # the logarithm of the sum would cancel: entropy, and half the variance beside it
            negative = mean + (order - 1) / 2 * ((q * logs.square()).sum() - mean.square())
        else:
            negative = torch.logsumexp(order * logs, -1) / (order - 1)
        shares = q.to(dtype).requires_grad_()
        got = effective_number(shares, float(order))
        assert got.item() == pytest.approx(math.exp(-negative), rel=max(600 * torch.finfo(dtype).eps, 1e-11)), name
        got.backward()
        assert bool(shares.grad.isfinite().all()), name


@pytest.mark.parametrize("order", [0.5, 1, 1 + 1e-9, 1.05, 2, 1e4, math.inf])
def test_directions_without_length_have_no_slope(order):
    for shares in (torch.tensor([0.5, 0.5, 0.0]), torch.tensor([1.0, 0.0]), torch.zeros(3)):
        leaf = shares.requires_grad_()
        value = effective_number(leaf, order)
        value.backward()
        assert value.item() == pytest.approx(max(1, int((shares > 0).sum())))
        assert bool(leaf.grad.isfinite().all())


def test_small_directions_count_in_single_precision_too():
    """767 singular values at 2e-3 of the first: far above the rounding of a decomposition, their squares below it."""
    s = torch.tensor([1.0] + [2e-3] * 767)
    x = torch.linalg.qr(normal(800, 768).float())[0] * s
    reference = s.double().square() / s.double().square().sum()
    assert effective_rank(x, 0.5, squared=True).item() == pytest.approx(reference.sqrt().sum().item() ** 2, rel=1e-3)
    want = math.exp(-(reference * reference.log()).sum().item())
    assert effective_rank(x, squared=True).item() == pytest.approx(want, rel=1e-4)


def released_alpha(values, first, last):
    """The public code (reptrix, after Stringer et al. 2019) in numpy: least squares with weights 1/rank."""
    rank = np.arange(first, last + 1)
    x = np.stack([-np.log(rank), np.ones(len(rank))], 1)
    w = (1 / rank)[:, None]
    return np.linalg.solve(x.T @ (w * x), x.T @ (w[:, 0] * np.log(values[first - 1 : last])))[0]


def test_alpha_of_known_spectra():
    k = torch.arange(1.0, 201.0, dtype=torch.float64)
    assert alpha_req(with_variances(k**-1.5)).item() == pytest.approx(1.5)
    bent = 1 / (k + 5)
    assert alpha_req(with_variances(bent)).item() == pytest.approx(0.856131, abs=6e-7)
    assert alpha_req(with_variances(bent), weighted=False).item() == pytest.approx(0.875644, abs=6e-7)
    assert alpha_req(with_variances(bent), 3, 40).item() == pytest.approx(released_alpha(bent.numpy(), 3, 40))
    x = uneven(300, 30)
    values = np.linalg.eigvalsh(np.cov(x.numpy().T))[::-1]
    assert alpha_req(x).item() == pytest.approx(released_alpha(values, 11, 30))


def test_rounding_has_no_part_in_a_slope():
    x = normal(40, 90)  # centred, 39 directions of 40 singular values
    reference = np.linalg.svd(x.numpy() - x.numpy().mean(0), compute_uv=False)[:39] ** 2
    assert alpha_req(x).item() == pytest.approx(released_alpha(reference, 11, 39), rel=1e-9)


@pytest.mark.parametrize("shape", [(50, 6), (5, 20)])
def test_a_cloud_of_few_ranks_is_fitted_from_the_first_on_and_says_so(shape):
    x = uneven(*shape)
    singular = np.linalg.svd(x.numpy() - x.numpy().mean(0), compute_uv=False)
    values = singular[: min(shape[0] - 1, shape[1])] ** 2
    metric = AlphaReQ()
    for piece in x.split(3):
        metric.update(piece)
    for value in (lambda: alpha_req(x), metric.compute):
        with pytest.warns(FitWarning, match=f"from rank 1 on instead of 11.* has only {min(shape)}"):
            assert value().item() == pytest.approx(released_alpha(values, 1, len(values)), rel=1e-6)


def test_bad_input():
    for order in (0, -1, math.nan, "1", True):
        check_rejects(effective_rank, InputError, "order must be a positive number", P4, order)
    check_rejects(effective_rank, DegenerateError, "must not all be zero", 0 * P4)
    check_rejects(effective_rank, DegenerateError, "must not all be equal", 0 * P4 + 1, center=True)
    check_rejects(alpha_req, ShapeError, "two ranks must lie", uneven(30, 11), 11)
    check_rejects(
        alpha_req, DegenerateError, "two directions or more must have variance", uneven(30, 3) @ uneven(3, 20)
    )
