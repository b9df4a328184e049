"""How the time grows with the number of points, each measure beside the peer that scales best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

import isonb
from tests.benchmarks import peers
from tests.benchmarks.barcodes import error_of
from tests.benchmarks.harness import Row, compare, relative_error
from tests.benchmarks.measures import gaussian, shrinkage_matrix, star_pair

FEW = 64  # dimensions up to which single linkage without a matrix product is the fastest peer of large clouds
Pair = tuple[Callable[[], object], str, Callable[[], object], float, float]
"""Ours, the peer's name, the peer, the error and what is allowed of it."""


def barcode(n: int, d: int) -> Pair:
    """H0 from points to sorted deaths."""
    x = gaussian(n, d)
    points = x.numpy()
    best = "scikit-learn" if d <= FEW else "giotto-ph"
    (name, call), *_ = [*peers.barcodes(best).items(), *peers.barcodes("scipy single linkage").items()]
    error = error_of(call(points), np.sort(isonb.h0_barcode(x).numpy()))
    return lambda: isonb.h0_barcode(x), name, lambda: call(points), error, 1e-4


def star(n: int, d: int) -> Pair:
    """IsoScore* forward and backward."""
    _, ours, theirs, error = star_pair(n, shrinkage_matrix(d))
    return ours, "singular values", theirs, error, 1e-3


def uniformity(n: int, d: int) -> Pair:
    """RBF uniformity forward and backward."""
    x = gaussian(n, d).requires_grad_()

    def ours() -> Tensor:
        return torch.autograd.grad(isonb.rbf_uniformity(x), x)[0]

    def theirs() -> Tensor:
        return torch.autograd.grad(peers.uniformity_by_gram(x), x)[0]

    return ours, "one whole product", theirs, relative_error(ours(), theirs()), 1e-3


def two_nn(n: int, d: int) -> Pair:
    """Intrinsic dimension."""
    x = gaussian(n, d)
    points = x.numpy()
    error = abs(float(isonb.two_nn(x)) / peers.skdim_two_nn(points.astype(float)) - 1)
    return lambda: isonb.two_nn(x), "scikit-dimension", lambda: peers.skdim_two_nn(points), error, 1e-3


def growth(what: str, pair: Callable[[int, int], Pair], small: bool) -> list[Row]:
    """A row a size."""
    rows = []
    for d in (8,) if small else (64, 768):
        for n in (32, 64) if small else (256, 512, 1024, 2048, 4096, 8192):
            ours, name, theirs, error, allowed = pair(n, d)
            rounds = 1 if small else 3 if n > 2048 else 5
            rows += compare(what, f"{n} x {d}", ours, [(name, theirs, error, None)], allowed=allowed, rounds=rounds)
    return rows


def growth_h0(small: bool = False) -> list[Row]:
    """H0 barcode."""
    return growth("H0 barcode", barcode, small)


def growth_isoscore_star(small: bool = False) -> list[Row]:
    """IsoScore*."""
    return growth("IsoScore* forward+backward", star, small)


def growth_uniformity(small: bool = False) -> list[Row]:
    """RBF uniformity."""
    return growth("RBF uniformity forward+backward", uniformity, small)


def growth_two_nn(small: bool = False) -> list[Row]:
    """TwoNN."""
    return growth("TwoNN", two_nn, small)


SUITES = {suite.__name__: suite for suite in (growth_h0, growth_isoscore_star, growth_uniformity, growth_two_nn)}
