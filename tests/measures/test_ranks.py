"""Ranks by their definitions, worked another way, and what each of them refuses."""

import numpy as np
import pytest
import scipy.linalg
import torch
from support import check_gradient, check_rejects, normal

import isonb
from isonb.errors import DegenerateError, InputError

SCALES = 0.5 ** torch.arange(6, dtype=torch.float64)
CLOUD = normal(40, 6) * SCALES + 0.3


def entropy_rank(values):
    share = values / values.sum()
    return np.exp(-(share * np.log(share)).sum())


def eigenvalues(x):
    return np.linalg.eigvalsh(np.cov(x.T))[::-1]


def test_rankme_and_stable_rank_are_those_of_the_singular_values():
    s = np.linalg.svd(CLOUD.numpy(), compute_uv=False)
    assert isonb.rankme(CLOUD).item() == pytest.approx(entropy_rank(s), rel=1e-12)
    assert isonb.stable_rank(CLOUD).item() == pytest.approx((s**2).sum() / s[0] ** 2, rel=1e-12)


def test_the_centred_stable_rank_is_nesum():
    values = eigenvalues(CLOUD.numpy())
    assert isonb.stable_rank(CLOUD, center=True).item() == pytest.approx(values.sum() / values[0], rel=1e-12)


@pytest.mark.parametrize(("first", "last"), [(1, 6), (2, 5)])
def test_alpha_is_the_slope_of_the_spectrum(first, last):
    values = eigenvalues(CLOUD.numpy())[first - 1 : last]
    slope = np.polyfit(np.log(np.arange(first, last + 1)), np.log(values), 1)[0]
    assert isonb.alpha_req(CLOUD, first, last).item() == pytest.approx(-slope, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.8, 2.0])
def test_alpha_of_a_power_law_is_its_power(alpha):
    axes = torch.diag(torch.arange(1, 9, dtype=torch.float64).pow(-alpha / 2))
    assert isonb.alpha_req(torch.cat([axes, -axes])).item() == pytest.approx(alpha, abs=1e-12)


def test_lidar_is_its_formula():
    views = normal(9, 5, 4) + 2 * normal(9, 1, 4, seed=1) * SCALES[:4]
    x = views.numpy()
    between = np.cov(x.mean(1).T)
    within = np.mean([np.cov(one.T, bias=True) for one in x], 0) + 0.01 * np.eye(4)
    root = np.linalg.inv(scipy.linalg.sqrtm(within))
    want = entropy_rank(np.linalg.eigvalsh(root @ between @ root))
    assert isonb.lidar(views, 0.01).item() == pytest.approx(want, rel=1e-9)
    batch = torch.stack([views, views.flip(-1)])
    assert isonb.lidar(batch, 0.01).tolist() == pytest.approx([want, want], rel=1e-9)
    check_gradient(isonb.lidar, views)


def test_ranks_of_round_and_of_flat_clouds():
    round_, line = torch.cat([torch.eye(5), -torch.eye(5)]).double(), torch.outer(torch.arange(1.0, 5), torch.ones(3))
    for rank in (isonb.rankme, isonb.stable_rank):
        assert rank(round_).item() == pytest.approx(5)
        assert rank(line).item() == pytest.approx(1, abs=1e-5)


def test_what_they_refuse():
    check_rejects(isonb.rankme, DegenerateError, "the cloud must have a direction", torch.zeros(4, 3))
    check_rejects(isonb.alpha_req, InputError, "first and last must lie in 1..6", CLOUD, 3, 3)
    check_rejects(isonb.alpha_req, DegenerateError, "eigenvalues must be above 0", CLOUD[:4])
    check_rejects(isonb.lidar, InputError, "2 objects or more", CLOUD)
    check_rejects(isonb.lidar, InputError, "delta must be above 0", normal(3, 4, 2), 0.0)
    check_rejects(isonb.lidar, DegenerateError, "the cloud must have a direction", torch.ones(3, 4, 2))
