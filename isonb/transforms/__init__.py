"""Post-processing of sentence or token vectors, fitted once and applied anywhere.

Each transform has ``fit(x, mask)`` (points (..., d), all leading axes one cloud), ``transform(x, mask)`` and
``save(folder)``; ``load_transform(folder)`` reads any of them back. Those that are affine fold into a
:class:`torch.nn.Linear` by ``to_dense()``, which needs isonb no more, and learn from a stream by ``fit_moments``.
Statistics are float64 (float32 on MPS; those of cluster removal in the dtype of its points); ``transform`` computes in
the dtype of its input, half precision in float32, and is differentiable in the points; ``fit`` is not.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from isonb.checks import border, cloud, pooled
from isonb.errors import InputError, ShapeError, fail
from isonb.measures.cosine import unit_rows
from isonb.measures.isoscore import shrinkage_intensity
from isonb.numerics.precision import precise
from isonb.points import center_rows
from isonb.transforms.base import AffineTransform, Transform, dense, load_transform
from isonb.transforms.clusters import cluster_means, k_means, nearest_centre
from isonb.transforms.whitening import directional_mean, principal_axes, top_directions, whitening_matrix, zca_matrix

__all__ = [
    "AllButTheTop",
    "ClusterRemoval",
    "MeanDirection",
    "SoftZCA",
    "Transform",
    "Whitening",
    "ZeroMean",
    "load_transform",
]


class ZeroMean(AffineTransform):
    """:math:`x - \\mu`. The covariance, hence IsoScore, stays; the mean cosine doesn't.

    >>> ZeroMean().fit(torch.tensor([[1.0, 5.0], [3.0, 7.0]])).transform(torch.tensor([[4.0, 4.0]])).tolist()
    [[2.0, -2.0]]
    """

    @border
    def fit(self, x: Tensor, mask: Tensor | None = None) -> ZeroMean:
        """Learn the mean of points (..., d), one or more. Returns self."""
        rows, real = pooled(x, mask, points=1)
        mean = center_rows(rows.detach(), real)[1]
        self.state = {"mean": precise(mean)}
        return self

    def _learn(self, mean: Tensor, cov: Tensor) -> dict[str, Tensor]:
        return {}

    def _remarks(self, n: int, d: int) -> list[str]:
        return []  # no covariance is used

    def _linear(self, y: Tensor) -> Tensor:
        return y


class Whitening(AffineTransform):
    r""":math:`(x - \mu)\,U_k \Lambda_k^{-1/2}` (BERT-whitening, Su et al. 2021; on layer averages, WhiteningBERT 2021).

    Eigenvectors of the covariance (n - 1), largest eigenvalue first, cut to the first ``k``: the fitted points get
    covariance I. Directions with less than 1e-10 of the largest eigenvalue are left out: with n <= d points there are
    at most n - 1. ``rank`` says how many there were, and a :class:`~isonb.errors.FitWarning` that there are fewer than
    ``k`` or, without it, than dimensions. The papers compare the results by cosine.

    >>> x = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]).repeat(5, 1)
    >>> white = Whitening().fit(x)
    >>> torch.cov(white.transform(x).T).tolist(), white.rank
    ([[1.0, 0.0], [0.0, 1.0]], 2)
    """

    OPTIONS = ("k",)

    def __init__(self, k: int | None = None) -> None:
        super().__init__()
        if k is not None and k < 1:
            fail(ShapeError, "k must be at least 1", k, "Leave it out to keep every direction.")
        self.k = k

    def _learn(self, mean: Tensor, cov: Tensor) -> dict[str, Tensor]:
        if self.k is not None and self.k > len(cov):
            fail(ShapeError, f"k must be at most the {len(cov)} dimensions", self.k, "Keep fewer directions.")
        matrix, rank = whitening_matrix(cov, self.k)
        return {"matrix": matrix, "rank": torch.tensor(rank)}

    def _remarks(self, n: int, d: int) -> list[str]:
        wanted = self.k or d
        if self.rank >= wanted:
            return super()._remarks(n, d)
        kept = f"{self.rank} of the {wanted} directions asked for are kept: the {n} points vary in no more."
        return [kept, *super()._remarks(n, d)]

    def _linear(self, y: Tensor) -> Tensor:
        return y @ self.state["matrix"].to(y)

    @property
    def rank(self) -> int:
        """The number of directions with variance in the fitted points."""
        return int(self._learned("rank"))


class SoftZCA(AffineTransform):
    r""":math:`(x - \mu)\,U(\Lambda + \epsilon I)^{-1/2}U^\top` (Diera, Galke and Scherp 2024).

    One knob from raw to white: ``eps`` is in units of variance; 0 is ZCA, larger values leave more of the spectrum.
    ``"auto"`` takes the shrinkage of Ledoit and Wolf instead: :math:`\Lambda` becomes
    :math:`(1-z)\Lambda + z \operatorname{tr}\Lambda/d`, the same as
    :math:`\epsilon = \tfrac{z}{1-z}\operatorname{tr}\Lambda/d` up to a factor; it needs the points, so not
    ``fit_moments``. That is the choice for few points. Stays close to the original axes, unlike :class:`Whitening`.

    >>> x = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]).repeat(5, 1)
    >>> torch.cov(SoftZCA(eps=0.0).fit_transform(x).T).round(decimals=5).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    OPTIONS = ("eps",)

    def __init__(self, eps: float | str = "auto") -> None:
        super().__init__()
        if eps != "auto" and (isinstance(eps, str) or eps < 0):
            fail(InputError, 'eps must be "auto" or a number >= 0', repr(eps), "It is a variance.")
        self.eps = eps
        self._shrinkage: float | None = None

    @border
    def fit(self, x: Tensor, mask: Tensor | None = None) -> SoftZCA:
        """Learn from points (..., d), at least two. Returns self."""
        rows, real = pooled(x, mask)
        rows = rows.detach()
        if self.eps == "auto":
            self._shrinkage = shrinkage_intensity(rows, "lw", mask=real).item()
        return super().fit(rows, real)

    def _learn(self, mean: Tensor, cov: Tensor) -> dict[str, Tensor]:
        if self.eps != "auto":
            return {"matrix": zca_matrix(cov, float(self.eps))}
        if self._shrinkage is None:
            fail(InputError, 'eps="auto" needs the points', "moments", "Call fit, or give eps.")
        shrinkage, self._shrinkage = self._shrinkage, None
        return {"matrix": zca_matrix(cov, shrinkage=shrinkage)}

    def _remarks(self, n: int, d: int) -> list[str]:
        return [] if self.eps == "auto" else super()._remarks(n, d)  # shrinkage is for few points

    def _linear(self, y: Tensor) -> Tensor:
        return y @ self.state["matrix"].to(y)


class AllButTheTop(AffineTransform):
    r""":math:`\tilde x - \sum_{j \le D} (u_j^\top \tilde x) u_j`, :math:`\tilde x = x - \mu` (Mu and Viswanath 2018).

    :math:`u_j` are the top principal directions; ``D=None`` takes d/100, rounded, at least 1 (8 for 768).
    ``centered=False`` projects the uncentred x, as the original algorithm is written: it differs by a constant vector.

    >>> x = torch.tensor([[0.0, 1.0], [9.0, 1.0], [0.0, -1.0], [9.0, -1.0]])
    >>> AllButTheTop(D=1).fit(x.repeat(3, 1)).transform(x).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]]
    """

    OPTIONS = ("D", "centered")

    def __init__(self, D: int | None = None, centered: bool = True) -> None:
        super().__init__()
        if D is not None and D < 0:
            fail(ShapeError, "D must be at least 0", D, "The authors take about d/100.")
        self.D, self.centered = D, centered

    def _learn(self, mean: Tensor, cov: Tensor) -> dict[str, Tensor]:
        d = len(cov)
        removed = max(1, round(d / 100)) if self.D is None else self.D
        if removed > d:
            fail(ShapeError, f"D must be at most the {d} dimensions", removed, "Remove fewer directions.")
        axes = principal_axes(cov)[1][:, :removed]
        return {"axes": axes.contiguous(), "shift": -(mean @ axes) @ axes.mT * (not self.centered)}

    def _linear(self, y: Tensor) -> Tensor:
        axes = self.state["axes"].to(y)
        return y - (y @ axes) @ axes.mT

    def _apply(self, x: Tensor) -> Tensor:
        return super()._apply(x) + self.state["shift"].to(x)


class MeanDirection(Transform):
    r"""Remove the mean direction of unit rows, :math:`\hat x - (\hat x^\top m)m`, and renormalise.

    R2 of Ren, Sun and Liang (arXiv 2511.11041), :math:`m = \mu/|\mu|` the direction of the mean :math:`\mu` of the
    fitted unit rows. ``subtract=True`` is their R1, :math:`\hat x - \mu`: an error in the length of :math:`\mu` stays
    in the result there. Zero rows stay zero under R2, and rows along m become zero: what rounding leaves of them is no
    direction. ``to_dense`` gives the affine part for rows that are already of unit length, without the renormalising.

    >>> x = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    >>> MeanDirection().fit(x[:2]).transform(torch.tensor([[3.0, 0.0]])).tolist()
    [[0.7071, -0.7071]]
    >>> MeanDirection(subtract=True).fit(x).transform(x)[2].tolist()
    [-0.9239, 0.3827]
    """

    OPTIONS = ("renormalize", "subtract")
    CENTRE = "direction"

    def __init__(self, renormalize: bool = True, subtract: bool = False) -> None:
        super().__init__()
        self.renormalize, self.subtract = renormalize, subtract

    def fit(self, x: Tensor, mask: Tensor | None = None) -> Self:
        """Learn from points (..., d), one or more. Returns self."""
        mean = precise(directional_mean(x, mask))
        length = torch.linalg.vector_norm(mean)
        self.state = {"direction": mean / length, "length": length}
        return self

    def _linear(self, y: Tensor) -> Tensor:
        direction = self.state["direction"].to(y)
        if self.subtract:
            return y - direction * self.state["length"].to(y)
        return y - (y @ direction).unsqueeze(-1) * direction

    def _apply(self, x: Tensor) -> Tensor:
        out = self._linear(unit_rows(x))
        if not self.renormalize:
            return out
        rounding = 4 * torch.finfo(out.dtype).eps
        along = torch.linalg.vector_norm(out.detach(), dim=-1, keepdim=True) <= rounding
        return unit_rows(out.masked_fill(along, 0.0))

    def to_dense(self, dtype: torch.dtype = torch.float32) -> nn.Linear:
        """The map before renormalising, for rows of unit length, as a frozen linear layer on the CPU."""
        direction = self._learned("direction")
        bias = self._linear(torch.zeros_like(direction).unsqueeze(0))[0]
        identity = torch.eye(self.dims, dtype=direction.dtype, device=direction.device)
        return dense(self._linear(identity) - bias, bias, dtype)


class ClusterRemoval(Transform):
    r"""In each cluster, subtract its mean and remove its top D directions (Rajaee and Pilehvar, ACL 2021).

    k-means with ``n_clusters`` clusters from random rows (``seed``) on all token vectors of a corpus; 27 clusters and
    D = 12 are the authors' for BERT. A vector is treated by its nearest centre; means are not added back. A cluster
    with fewer points than D + 1 loses all the variance it has. Not affine.

    >>> x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [50.0, 0.0], [50.0, 4.0], [51.0, 2.0]])
    >>> ClusterRemoval(n_clusters=2, D=1).fit_transform(x).round(decimals=4).tolist()
    [[0.0, 0.0], [0.0, 0.0], [-0.3333, 0.0], [-0.3333, 0.0], [0.6667, 0.0]]
    """

    OPTIONS = ("n_clusters", "D", "seed")

    def __init__(self, n_clusters: int = 27, D: int = 12, seed: int = 0) -> None:
        super().__init__()
        if n_clusters < 1 or D < 0:
            fail(ShapeError, "n_clusters must be at least 1 and D at least 0", (n_clusters, D), "The authors: 27, 12.")
        self.n_clusters, self.D, self.seed = n_clusters, D, seed

    @border
    @torch.no_grad()
    def fit(self, x: Tensor, mask: Tensor | None = None) -> ClusterRemoval:
        """Learn from points (..., d), at least ``n_clusters``. Returns self."""
        x, mask = cloud(x, mask, points=0)
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
