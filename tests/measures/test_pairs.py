"""Alignment, CKA, LiDAR and NC1 against values and formulas of the public code."""

import math

import numpy as np
import pytest
import torch
from support import P4, assert_same, check_gradient, check_rejects, normal, uneven

from isonb import SoftZCA, alignment, cka, lidar, nc1, participation_ratio
from isonb.errors import DegenerateError, DtypeError, InputError, ShapeError

P6 = torch.cat([P4, torch.tensor([[3.0, 1.0], [-1.0, 2.0]])])
Q6 = torch.tensor([[1, 0], [0, 2], [-1, 1], [3, 1], [2, 2], [0, -1]], dtype=torch.float64)
RING = torch.tensor([[math.cos(a), math.sin(a)] for a in (0, 2 * math.pi / 3, 4 * math.pi / 3)], dtype=torch.float64)


def test_alignment():
    x, y = uneven(20, 5), uneven(20, 5, seed=1)
    assert_same(alignment(x, x + torch.eye(5)[1], 3.0, normalize=False), torch.tensor(1.0).double())
    units = [z / z.norm(dim=1, keepdim=True) for z in (x, y)]
    for power in (0.5, 1, 2, 3):
        assert_same(alignment(x, y, power), (units[0] - units[1]).norm(dim=1).pow(power).mean())
    zero = torch.cat([x, torch.zeros(1, 5)])
    assert_same(alignment(zero, torch.cat([y, x[:1]])), alignment(x, y))  # no direction, no pair
    check_rejects(alignment, InputError, "power must be positive", x, y, 0)
    check_rejects(alignment, ShapeError, "y must have the 5 dimensions", x, y[:, :4])
    check_rejects(alignment, DegenerateError, "two vectors that aren't zero", 0 * x, y)
    check_rejects(alignment, DegenerateError, "must fit torch.float32", x.float() * 1e30, y.float(), normalize=False)


def unbiased_hsic(k, m):
    """Song et al. 2012, with n x n matrices."""
    n = len(k)
    k, m = (item - np.diag(np.diag(item)) for item in (k, m))
    separate = k.sum() * m.sum() / (n - 1) / (n - 2)
    return (np.trace(k @ m) + separate - 2 * (k @ m).sum() / (n - 2)) / n / (n - 3)


def test_cka():
    assert cka(P6, Q6).item() == pytest.approx(0.563516, abs=6e-7)
    assert cka(P6, Q6, debiased=True).item() == pytest.approx(0.234888, abs=6e-7)
    x, y = uneven(9, 30), uneven(9, 25, seed=2) + 3  # by way of n x n matrices; the values above by the others
    kernels = [z.numpy() @ z.numpy().T for z in (x, y)]
    parts = [unbiased_hsic(kernels[a], kernels[b]) for a, b in ((0, 1), (0, 0), (1, 1))]
    assert cka(x, y, debiased=True).item() == pytest.approx(parts[0] / math.sqrt(parts[1] * parts[2]))
    assert cka(x, y, debiased=True).item() < cka(x, y).item()
    wide = uneven(200, 6)
    white = SoftZCA(0.0).fit(wide).transform(wide)
    assert cka(wide, white).item() == pytest.approx(math.sqrt(participation_ratio(wide).item() / 6))
    assert_same(cka(x, 3 * x @ torch.linalg.qr(normal(30, 30))[0] - 7), torch.tensor(1.0).double())
    assert_same(cka(x.float(), y), cka(x, y), rtol=1e-5)  # of two types, in the wider
    check_rejects(cka, ShapeError, "y must have the points of x", x, y[:8])
    check_rejects(cka, ShapeError, "at least 4 points", x[:3], y[:3], debiased=True)
    check_rejects(cka, DegenerateError, "both clouds must vary", x, 0 * y + 1)


def lidar_by_eigenvalues(views, delta):
    objects, q, d = views.shape
    means = views.mean(1)
    separate = (views - means[:, None]).reshape(-1, d)
    values, axes = np.linalg.eigh(separate.T @ separate / objects / (q - 1) + delta * np.eye(d))
    white = (axes / np.sqrt(values)) @ axes.T
    share = np.linalg.eigvalsh(white @ np.cov(means.T) @ white)
    share = share[share > 1e-12 * share.max()] / share.sum()
    return math.exp(-(share * np.log(share)).sum())


def test_lidar():
    views = uneven(12, 3, 7) + 100 * normal(12, 1, 7)
    for delta in (0.0, 1e-4, 3.0):
        assert lidar(views, delta).item() == pytest.approx(lidar_by_eigenvalues(views.numpy(), delta))
    check_gradient(lidar, views[:4, :, :3])
    check_rejects(lidar, ShapeError, r"shape \(objects, views, d\)", views[0])
    check_rejects(lidar, ShapeError, "at least 2 points", views[:, :1])
    check_rejects(lidar, InputError, "delta must be at least 0", views, -1.0)
    check_rejects(lidar, DegenerateError, "objects must differ", views[:, :1].expand(-1, 2, -1), 0.0)
    check_rejects(lidar, DegenerateError, "objects must differ", views[:1].expand(4, -1, -1))


def collapse_by_matrices(x, labels):
    """The pinv form of the public code (neural-collapse)."""
    kinds = np.unique(labels)
    means = np.stack([x[labels == kind].mean(0) for kind in kinds])
    separate = x - means[np.searchsorted(kinds, labels)]
    between = means - means.mean(0)
    within, between = separate.T @ separate / len(x), between.T @ between / len(kinds)
    return np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / len(kinds)


def test_nc1():
    step = torch.tensor([0.1, 0.0])
    ring, labels = torch.cat([RING + step, RING - step]), torch.tensor([5, 3, 9, 5, 3, 9])
    assert nc1(ring, labels).item() == pytest.approx(0.006667, abs=6e-7)
    assert nc1(ring.float() * 1e25 + 1e24, labels).item() == pytest.approx(0.006667, rel=1e-3)
    check_gradient(lambda x: nc1(x, labels), ring)  # three means evenly apart: no axis of theirs has a slope
    for d, classes in ((4, 3), (2, 5), (6, 2)):  # fewer dimensions than classes, too
        x, kinds = uneven(50, d), torch.arange(50) % classes
        assert nc1(x, kinds).item() == pytest.approx(collapse_by_matrices(x.numpy(), kinds.numpy()))
    assert nc1(RING[labels % 3], labels).item() == pytest.approx(0, abs=1e-12)
    check_rejects(nc1, ShapeError, "two classes or more", ring, 0 * labels)
    check_rejects(nc1, ShapeError, "labels must have shape", ring, labels[:3])
    check_rejects(nc1, DtypeError, "labels must be integers", ring, labels.double())
    check_rejects(nc1, DegenerateError, "means of the classes must differ", ring[:1].expand(6, -1), labels)
