"""Affine transforms: the mean subtracted, whitening, the top directions removed; their maps of a covariance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from isonb.checks import flatten_points, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.measures.isoscore import shrinkage_intensity
from isonb.numerics.products import signed
from isonb.options import option
from isonb.transforms.base import AffineTransform

LEAST = 1e-10  # of the largest variance, below which a direction has none


def principal_axes(cov: Tensor, most: int | None = None, count: int | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (d), descending, and eigenvectors in columns of a covariance (d, d): in each, the entry of largest
    size is positive. ``most`` of the values can be above 0, n - 1 of n points: what rounding left of the others is 0.
    With a ``count`` the first ones alone, which takes a quarter of the time. :class:`~isonb.errors.DegenerateError`
    where the points are all equal.
    """
    if not bool(cov.diagonal().sum() > 0):
        fail(DegenerateError, "the points must not all be equal", "a covariance of trace 0", "Give more points.")
    values, axes = torch.linalg.eigh(cov) if count is None else _last_eigenvectors(cov, count)
    values = values.flip(-1).clamp_min(0)
    if most is not None:
        values[most:] = 0
    return values, signed(axes.flip(-1))


def _last_eigenvectors(cov: Tensor, count: int) -> tuple[Tensor, Tensor]:
    d = len(cov)
    try:
        from scipy.linalg import eigh
    except ImportError:
        eigh = None
    if eigh is None or count == 0 or cov.device.type != "cpu":
        values, axes = torch.linalg.eigh(cov)
        return values[d - count :], axes[:, d - count :]
    found = eigh(cov.numpy(), subset_by_index=(d - count, d - 1), check_finite=False)
    return torch.from_numpy(found[0]), torch.from_numpy(found[1])


def _least(values: Tensor) -> Tensor:
    """The smallest variance that isn't rounding."""
    return max(LEAST, len(values) * torch.finfo(values.dtype).eps) * values[0]


class ZeroMean(AffineTransform):
    """:math:`x - \\mu`. The covariance, hence IsoScore, stays; the mean cosine doesn't.

    >>> import isonb, torch
    >>> isonb.ZeroMean().fit(torch.tensor([[1.0, 5.0], [3.0, 7.0]])).transform(torch.tensor([[4.0, 4.0]])).tolist()
    [[2.0, -2.0]]
    """

    ROUGH = False
    NEEDS = "mean"

    def _apply(self, x: Tensor) -> Tensor:
        return self._centred(x)


@dataclass(eq=False, repr=False)
class Whitening(AffineTransform):
    r""":math:`(x - \mu)\,U_k \Lambda_k^{-1/2}` (BERT-whitening, Su et al. 2021; on layer averages, WhiteningBERT 2021).

    Eigenvectors of the covariance (n - 1), largest eigenvalue first, cut to the first ``k``: the fitted points get
    covariance I. Directions with less than 1e-10 of the largest eigenvalue are left out: with n <= d points there are
    at most n - 1. ``rank`` says how many there were, and a :class:`~isonb.errors.FitWarning` that there are fewer than
    ``k`` or, without it, than dimensions. The papers compare the results by cosine.

    >>> import isonb, torch
    >>> x = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]).repeat(5, 1)
    >>> white = isonb.Whitening().fit(x)
    >>> torch.cov(white.transform(x).T).tolist(), white.rank
    ([[1.0, 0.0], [0.0, 1.0]], 2)
    """

    k: int | None = option(None, "directions kept, at most the dimensions; None: all", low=1)

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        if self.k is not None and self.k > len(cov):
            fail(ShapeError, f"k must be at most the {len(cov)} dimensions", self.k, "Keep fewer directions.")
        values, axes = principal_axes(cov, n - 1)
        rank = int((values >= _least(values)).sum())
        kept = min(self.k or rank, rank)
        return {"matrix": axes[:, :kept] / values[:kept].sqrt(), "rank": torch.tensor(rank, device="cpu")}

    def _remarks(self, n: int, d: int) -> list[str]:
        expected = self.k or d
        if self.rank >= expected:
            return super()._remarks(n, d)
        kept = f"{self.rank} of the {expected} directions asked for are kept: the {n} points vary in no more."
        return [kept, *super()._remarks(n, d)]

    def _apply(self, x: Tensor) -> Tensor:
        return self._centred(x) @ self.state["matrix"].to(x)

    @property
    def rank(self) -> int:
        """The number of directions with variance in the fitted points."""
        return int(self._learned("rank"))


@dataclass(eq=False, repr=False)
class SoftZCA(AffineTransform):
    r""":math:`(x - \mu)\,U(\Lambda + \epsilon I)^{-1/2}U^\top` (Diera, Galke and Scherp 2024).

    One knob from raw to white: ``eps`` is in units of variance; 0 is ZCA, larger values leave more of the spectrum.
    ``"auto"`` takes the shrinkage of Ledoit and Wolf instead: :math:`\Lambda` becomes
    :math:`(1-z)\Lambda + z \operatorname{tr}\Lambda/d`, the same as
    :math:`\epsilon = \tfrac{z}{1-z}\operatorname{tr}\Lambda/d` up to a factor; it needs the points, so not
    ``fit_moments``. That is the choice for few points. Stays close to the original axes, unlike :class:`Whitening`.

    >>> import isonb, torch
    >>> x = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]).repeat(5, 1)
    >>> torch.cov(isonb.SoftZCA(eps=0.0).fit_transform(x).T).round(decimals=5).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    eps: float | Literal["auto"] = option(
        "auto", "added to each variance; auto: the shrinkage of Ledoit and Wolf", low=0
    )
    _shrinkage: float | None = field(init=False, default=None)

    @validated
    def fit(self, x: Tensor, mask: Tensor | None = None) -> SoftZCA:
        """Learn from points (..., d), at least two. Returns self."""
        rows, real = flatten_points(x, mask)
        rows = rows.detach()
        if self.eps == "auto":
            self._shrinkage = shrinkage_intensity(rows, "lw", mask=real).item()
        return super().fit(rows, real)

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        if self.eps == "auto" and self._shrinkage is None:
            fail(InputError, 'eps="auto" needs the points', "moments", "Call fit, or give eps.")
        values, axes = principal_axes(cov, n - 1)
        share, self._shrinkage = self._shrinkage or 0.0, None
        softened = (1 - share) * values + share * values.mean() + (0.0 if self.eps == "auto" else float(self.eps))
        if not bool((softened >= _least(values)).all()):
            fix = "Give eps > 0, or more points than dimensions."
            fail(DegenerateError, "ZCA needs variance in every direction", f"{softened.min().item():.3g}", fix)
        return {"matrix": (axes / softened.sqrt()) @ axes.mT}

    def _remarks(self, n: int, d: int) -> list[str]:
        return [] if self.eps == "auto" else super()._remarks(n, d)  # shrinkage is for few points

    def _apply(self, x: Tensor) -> Tensor:
        return self._centred(x) @ self.state["matrix"].to(x)


@dataclass(eq=False, repr=False)
class AllButTheTop(AffineTransform):
    r""":math:`\tilde x - \sum_{j \le D} (u_j^\top \tilde x) u_j`, :math:`\tilde x = x - \mu` (Mu and Viswanath 2018).

    :math:`u_j` are the top principal directions; ``D=None`` takes d/100, rounded, at least 1 (8 for 768).
    ``centered=False`` projects the uncentred x, as the original algorithm is written: it differs by a constant vector.

    >>> import isonb, torch
    >>> x = torch.tensor([[0.0, 1.0], [9.0, 1.0], [0.0, -1.0], [9.0, -1.0]])
    >>> isonb.AllButTheTop(D=1).fit(x.repeat(3, 1)).transform(x).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.0, -1.0], [0.0, -1.0]]
    """

    D: int | None = option(None, "directions removed; None: a hundredth of the dimensions", low=0)
    centered: bool = option(True, "project the vectors after subtracting the mean; otherwise as first written")

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        d = len(cov)
        removed = max(1, round(d / 100)) if self.D is None else self.D
        if removed > d:
            fail(ShapeError, f"D must be at most the {d} dimensions", removed, "Remove fewer directions.")
        axes = principal_axes(cov, count=removed)[1]
        return {"axes": axes, "shift": -(mean @ axes) @ axes.mT * (not self.centered)}

    def _apply(self, x: Tensor) -> Tensor:
        axes, y = self.state["axes"].to(x), self._centred(x)
        return y - (y @ axes) @ axes.mT + self.state["shift"].to(x)
