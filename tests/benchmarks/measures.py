"""The measures against the formulas and libraries they replace."""

from __future__ import annotations

import gudhi
import numpy as np
import torch
from gph import ripser_parallel
from ripser import ripser
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from skdim.id import TwoNN
from torch import Tensor

import isonb
from tests.benchmarks.harness import Row, best_times, compare, relative_error


def gaussian(*shape: int, seed: int = 0, mean: float = 0.0) -> Tensor:
    """Seeded standard normal points."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + mean


def isoscore_star_by_singular_values(x: Tensor, zeta: float, shrinkage: Tensor) -> Tensor:
    """Algorithm 1 of I-STAR as printed: covariance, shrinkage, singular values, defect, score."""
    d = x.shape[-1]
    spectrum = torch.linalg.svdvals((1 - zeta) * torch.cov(x.T) + zeta * shrinkage)
    scaled = spectrum * d**0.5 / spectrum.norm()
    defect = (scaled - 1).norm() / (2 * (d - d**0.5)) ** 0.5
    used = (d - defect**2 * (d - d**0.5)) ** 2 / d**2
    return (d * used - 1) / (d - 1)


def isoscore_star() -> list[Row]:
    """Forward and backward with a full shrinkage matrix, against singular values and against its own product."""
    rows = []
    d, zeta = 768, 0.2
    shrinkage = torch.cov(gaussian(4000, d, seed=1).T)
    for n, goal in ((64, 50.0), (256, 10.0), (4096, 1.8)):
        x = gaussian(n, d).requires_grad_()

        def ours(x: Tensor = x) -> Tensor:
            return torch.autograd.grad(isonb.isoscore_star(x, zeta, shrinkage), x)[0]

        def theirs(x: Tensor = x) -> Tensor:
            return torch.autograd.grad(isoscore_star_by_singular_values(x, zeta, shrinkage), x)[0]

        exact = x.detach().double().requires_grad_()
        reference = torch.autograd.grad(isoscore_star_by_singular_values(exact, zeta, shrinkage.double()), exact)[0]
        error = relative_error(ours(), reference)
        what, size = "IsoScore* forward+backward", f"{n} x {d}"
        rounds = 5 if n > 1000 else 7
        rows += compare(what, size, ours, [("singular values", theirs, error, goal)], allowed=1e-3, rounds=rounds)
        points = x.detach()
        mine, product = best_times(ours, lambda points=points: points.T @ points)
        limit = "the shrinkage matrix itself: its norm and its products with few points"
        times = mine * 1e3, product * 1e3
        rows.append(Row(what, size, "its product X'X", *times, 2.5, error, 1e-3, yardstick=True, limit=limit))
    return rows


def streaming_covariance() -> list[Row]:
    """Chan-merged moments far from the origin, against the bare matrix product."""
    rows = []
    for n, d in ((4096, 768), (16384, 384), (100_000, 64)):
        x = gaussian(n, d, mean=100.0)

        def ours(x: Tensor = x) -> Tensor:
            return isonb.Moments().update(x).cov

        error = relative_error(ours(), torch.from_numpy(np.cov(x.double().numpy().T)))
        mine, product = best_times(ours, lambda x=x: x.T @ x)
        what = "streaming covariance, mean 100"
        limit = "passes over memory: with few dimensions the product costs little more than to read the points"
        times = mine * 1e3, product * 1e3
        rows.append(Row(what, f"{n} x {d}", "its product X'X", *times, 1.3, error, 1e-6, yardstick=True, limit=limit))
    return rows


def gudhi_h0(x: np.ndarray) -> np.ndarray:
    """Finite H0 deaths by gudhi from points."""
    tree = gudhi.RipsComplex(points=x).create_simplex_tree(max_dimension=1)
    tree.compute_persistence(homology_coeff_field=2, min_persistence=-1)
    deaths = tree.persistence_intervals_in_dimension(0)[:, 1]
    return np.sort(deaths[np.isfinite(deaths)])


def ripser_h0(x: np.ndarray) -> np.ndarray:
    """Finite H0 deaths by ripser from points."""
    deaths = ripser(x, maxdim=0)["dgms"][0][:, 1]
    return np.sort(deaths[np.isfinite(deaths)])


def giotto_h0(x: np.ndarray) -> np.ndarray:
    """Finite H0 deaths by giotto-ph from points."""
    deaths = ripser_parallel(x, maxdim=0, n_threads=1)["dgms"][0][:, 1]
    return np.sort(deaths[np.isfinite(deaths)])


def scipy_h0(x: np.ndarray) -> np.ndarray:
    """Finite H0 deaths by scipy's minimum spanning tree from points."""
    return np.sort(minimum_spanning_tree(squareform(pdist(x))).data)


def h0_large() -> list[Row]:
    """One cloud of 2,048 points, each library from points to sorted deaths, distances included."""
    rows = []
    libraries = (
        ("ripser", ripser_h0, 10.0),
        ("gudhi", gudhi_h0, 10.0),
        ("scipy", scipy_h0, 10.0),
        ("giotto-ph", giotto_h0, None),
    )
    for d in (3, 64, 768):
        x = gaussian(2048, d)
        points = x.numpy()
        reference = np.sort(isonb.h0_barcode(x.double()).numpy())

        def error(h0: np.ndarray, reference: np.ndarray = reference) -> float:
            return float(np.abs(np.sort(h0) - reference).max() / reference.max())

        peers = [
            (name, (lambda call=call, points=points: call(points)), error(call(points)), goal)
            for name, call, goal in libraries
        ]
        rows += compare("H0, one cloud", f"2048 x {d}", lambda x=x: isonb.h0_barcode(x), peers, allowed=1e-4, rounds=3)
    return rows


def h0_batch() -> list[Row]:
    """Thirty-two clouds of 64 points at once, against a loop."""
    rows = []
    for d in (3, 768):
        x = gaussian(32, 64, d)
        points = x.numpy()
        reference = np.sort(isonb.h0_barcode(x.double()).numpy(), axis=-1)
        peers = []
        for name, call in (("giotto-ph loop", giotto_h0), ("ripser loop", ripser_h0)):
            theirs = np.stack([call(cloud) for cloud in points])
            error = float(np.abs(theirs - reference).max() / reference.max())
            peers.append((name, lambda call=call, points=points: [call(cloud) for cloud in points], error, 5.0))
        limit = "the distances (their product alone a quarter) and the lengths take three quarters, the trees the rest"
        call = lambda x=x: isonb.h0_barcode(x)  # noqa: E731
        rows += compare("H0, a batch", f"32 x 64 x {d}", call, peers, allowed=1e-4, limit=limit)
    return rows


def two_nn() -> list[Row]:
    """Intrinsic dimension, against scikit-dimension."""
    x = gaussian(2000, 64)
    points = x.numpy()
    error = abs(float(isonb.two_nn(x)) / TwoNN(discard_fraction=0.1).fit_transform(points.astype(float)) - 1)
    peer = ("scikit-dimension", lambda: TwoNN(discard_fraction=0.1).fit_transform(points), error, None)
    return compare("TwoNN", "2000 x 64", lambda: isonb.two_nn(x), [peer], allowed=1e-3)


def uniformity() -> list[Row]:
    """RBF uniformity forward and backward, against torch.pdist."""
    x = gaussian(1024, 384).requires_grad_()

    def ours() -> Tensor:
        return torch.autograd.grad(isonb.rbf_uniformity(x), x)[0]

    def theirs() -> Tensor:
        unit = torch.nn.functional.normalize(x, dim=-1)
        return torch.autograd.grad(torch.pdist(unit).square().mul(-2).exp().mean().log(), x)[0]

    peer = ("torch.pdist", theirs, relative_error(ours(), theirs()), None)
    return compare("RBF uniformity forward+backward", "1024 x 384", ours, [peer], allowed=1e-3)


SUITES = {
    "isoscore_star": isoscore_star,
    "streaming_covariance": streaming_covariance,
    "h0_large": h0_large,
    "h0_batch": h0_batch,
    "two_nn": two_nn,
    "uniformity": uniformity,
}
