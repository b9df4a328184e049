"""The top directions of each cluster removed; a small k-means: Lloyd's iterations from random points, seeded."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isonb.checks import check_points, lasting_tensors, validated
from isonb.errors import ShapeError, fail
from isonb.numerics.products import left_factors, signed
from isonb.numerics.scale import size_of
from isonb.options import option
from isonb.transforms.base import Transform

_CHUNK = 2**24  # entries of the distance matrix held at a time


def nearest_centre(x: Tensor, centres: Tensor) -> Tensor:
    """Index (n,) of the Euclidean nearest of ``centres`` (k, d) for each row of x (n, d); the first of equal ones."""
    origin = centres.mean(0)  # far from the origin, squares would swallow the differences
    moved = centres - origin
    size = torch.maximum(size_of(moved), size_of(x))  # nor overflow
    moved = moved / size
    half = moved.square().sum(-1) / 2
    rows = torch.split(x, max(1, _CHUNK // len(centres)))
    return torch.cat([(half - (part - origin) / size @ moved.mT).argmin(-1) for part in rows])


def k_means(x: Tensor, k: int, seed: int = 0, iterations: int = 100) -> tuple[Tensor, Tensor]:
    """Centres (k, d) and the index (n,) of each row's centre, by Lloyd's algorithm.

    Starts from k random rows and stops when no row changes its centre, or after ``iterations``. A cluster that loses
    all rows keeps its centre. The same seed gives the same result on one machine.
    """
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


def top_directions(x: Tensor, k: int) -> Tensor:
    """The k leading right singular vectors (d, k) of the rows (n, d); zero columns beyond the rank.

    Through the smaller of the two Gram matrices.
    """
    n, d = x.shape
    if n == 0:
        return x.new_zeros(d, k)
    basis, _, inverse = left_factors(x.mT if n > d else x)
    axes = basis * (inverse > 0) if n > d else x.mT.to(basis) @ (basis * inverse)
    axes = signed(axes.flip(-1)[:, :k])
    return torch.nn.functional.pad(axes, (0, k - axes.shape[1])).to(x.dtype)


@dataclass(eq=False, repr=False)
class ClusterRemoval(Transform):
    r"""In each cluster, subtract its mean and remove its top D directions (Rajaee and Pilehvar, ACL 2021).

    k-means with ``n_clusters`` clusters from random rows (``seed``) on all token vectors of a corpus; 27 clusters and
    D = 12 are the authors' for BERT. A vector is treated by its nearest centre; means are not added back. A cluster
    with fewer points than D + 1 loses all the variance it has. Not affine.

    >>> import isonb, torch
    >>> x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [50.0, 0.0], [50.0, 4.0], [51.0, 2.0]])
    >>> isonb.ClusterRemoval(n_clusters=2, D=1).fit_transform(x).round(decimals=4).tolist()
    [[0.0, 0.0], [0.0, 0.0], [-0.3333, 0.0], [-0.3333, 0.0], [0.6667, 0.0]]
    """

    n_clusters: int = option(27, "clusters; there must be as many points", low=1)
    D: int = option(12, "directions removed in each, at most the dimensions; fewer in a cluster of few points", low=0)
    seed: int = option(0, "of the rows that the clusters start from")

    @validated
    @lasting_tensors()
    def fit(self, x: Tensor, mask: Tensor | None = None) -> ClusterRemoval:
        """Learn from points (..., d), at least ``n_clusters``. Returns self."""
        x, mask = check_points(x, mask, points=0)
        rows = x.reshape(-1, x.shape[-1]) if mask is None else x[mask]
        if rows.shape[1] < self.D:
            fail(ShapeError, f"D must be at most the {rows.shape[1]} dimensions", self.D, "Remove fewer directions.")
        centres, label = k_means(rows, self.n_clusters, self.seed)
        mean = cluster_means(rows, label, centres)
        axes = torch.stack([top_directions(rows[label == c] - mean[c], self.D) for c in range(self.n_clusters)])
        self.state = {"centres": centres, "mean": mean, "axes": axes}
        return self

    def _apply(self, x: Tensor) -> Tensor:
        centres, means, axes = (self.state[name].to(x) for name in ("centres", "mean", "axes"))
        label = nearest_centre(x.detach(), centres)
        y = x - means[label]
        order = label.argsort(stable=True)
        parts = torch.split(y[order], torch.bincount(label, minlength=len(centres)).tolist())
        projected = torch.cat([part - (part @ a) @ a.mT for part, a in zip(parts, axes, strict=True)])
        return projected[order.argsort()]
