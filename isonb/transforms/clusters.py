"""A small k-means: Lloyd's iterations from random points, seeded."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import border, cloud
from isonb.errors import ShapeError, fail
from isonb.numerics.scale import size_of

__all__ = ["k_means", "nearest_centre"]

_CHUNK = 2**24  # entries of the distance matrix held at a time


@border
@torch.no_grad()
def nearest_centre(x: Tensor, centres: Tensor) -> Tensor:
    """Index (n,) of the Euclidean nearest of ``centres`` (k, d) for each row of x (n, d); the first of equal ones.

    >>> nearest_centre(torch.tensor([[0.0], [4.0]]), torch.tensor([[5.0], [1.0]])).tolist()
    [1, 0]
    """
    x, _ = cloud(x, points=0, single=True)
    origin = centres.mean(0)  # far from the origin, squares would swallow the differences
    moved = centres - origin
    size = torch.maximum(size_of(moved), size_of(x))  # nor overflow
    moved = moved / size
    half = moved.square().sum(-1) / 2
    rows = torch.split(x, max(1, _CHUNK // len(centres)))
    return torch.cat([(half - (part - origin) / size @ moved.mT).argmin(-1) for part in rows])


@border
@torch.no_grad()
def k_means(x: Tensor, k: int, seed: int = 0, iterations: int = 100) -> tuple[Tensor, Tensor]:
    """Centres (k, d) and the index (n,) of each row's centre, by Lloyd's algorithm.

    Starts from k random rows and stops when no row changes its centre, or after ``iterations``. A cluster that loses
    all rows keeps its centre. The same seed gives the same result on one machine.

    >>> centres, label = k_means(torch.tensor([[0.0], [1.0], [10.0], [11.0]]), 2)
    >>> sorted(centres.flatten().tolist()), bool(label[0] == label[1] != label[2])
    ([0.5, 10.5], True)
    """
    x, _ = cloud(x, points=1, single=True)
    if not 1 <= k <= len(x):
        fail(ShapeError, f"the number of clusters must be between 1 and {len(x)}", k, "Give fewer clusters.")
    generator = torch.Generator().manual_seed(seed)
    centres = x[torch.randperm(len(x), generator=generator)[:k].to(x.device)]
    label = nearest_centre(x, centres)
    for _ in range(iterations):
        centres = cluster_means(x, label, centres)
        before, label = label, nearest_centre(x, centres)
        if torch.equal(label, before):
            break
    return centres, label


def cluster_means(x: Tensor, label: Tensor, otherwise: Tensor) -> Tensor:
    """The mean of each cluster; a row of ``otherwise`` (k, d) where it has none."""
    origin = x.mean(0)
    sums = torch.zeros_like(otherwise).index_add_(0, label, x - origin)
    counts = torch.bincount(label, minlength=len(otherwise)).unsqueeze(-1)
    return torch.where(counts > 0, origin + sums / counts.clamp_min(1), otherwise)
