r"""Transforms by degrees: the same vectors rounder or needlier, with one strength each, fitted once.

A strength is set when the transform is built and may be set again after the fit: what is learned doesn't depend on it.
Leading directions are dropped by :class:`~isonb.AllButTheTop`; a decoder's first token is left out in pooling.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.layers.soft_decay import soft_decay
from isonb.measures.registry import measure_all
from isonb.options import option
from isonb.transforms.base import AffineTransform
from isonb.transforms.whitening import principal_axes

KEPT = "each row comes out as long as it came in"  # what the option ``keep_norms`` means


class GradedTransform(AffineTransform):
    """Learns from mean and covariance; with ``keep_norms`` each row comes out as long as it came in."""

    ROUGH = False
    keep_norms: bool

    @abstractmethod
    def _map(self, x: Tensor) -> Tensor:
        """The rows transformed, whatever their lengths become."""

    def _apply(self, x: Tensor) -> Tensor:
        y = self._map(x)
        if not self.keep_norms:
            return y
        before, after = (torch.linalg.vector_norm(rows, dim=-1, keepdim=True) for rows in (x, y))
        rescaled: Tensor = y * before / torch.where(after > 0, after, 1.0)
        return rescaled

    def to_dense(self, dtype: torch.dtype = torch.float32) -> nn.Linear:
        """The same map as a frozen linear layer with bias, on the CPU; lengths that are kept are no linear map."""
        if self.keep_norms:
            fail(InputError, "a linear layer needs keep_norms=False", "keep_norms=True", "Rescale the rows after it.")
        return super().to_dense(dtype)

    def measure_after(self, x: Tensor, names: Iterable[str] | None = None) -> dict[str, float | None]:
        """The isotropy of the transformed points (n, d) by every measure, or by those named.

        See :func:`isonb.measures.registry.measure_all`: None where a measure isn't defined for them.
        """
        return measure_all(self.transform(x), names)

    def reached(self, x: Tensor, names: Iterable[str] | None = None) -> dict[str, float | None]:
        """The old name of ``measure_after``; it goes with the next release."""
        warnings.warn("reached is now measure_after", DeprecationWarning, stacklevel=2)
        return self.measure_after(x, names)


@dataclass(eq=False, repr=False)
class PartialWhitening(GradedTransform):
    r""":math:`(x - \mu)\,U (\Lambda/\bar\lambda)^{-p/2} U^\top`: whitening by degrees.

    Of centred points :math:`X = A S U^\top` the transformed ones are :math:`A S^{1-p} U^\top` up to a common factor:
    :math:`p = 0` leaves them, :math:`p = 1` makes them round (ZCA), beyond 1 the quiet directions become the loud ones,
    and :math:`p < 0` draws the cloud towards a needle. The mean of the eigenvalues, :math:`\bar\lambda`, keeps the
    total variance at p = 1. Directions with less than d times the eps of the dtype of the largest eigenvalue have no
    variance to scale and, unless p is 0, come out 0: of other points with n <= d fitted ones that is more than
    rounding, and a :class:`~isonb.errors.FitWarning` says so. ``p`` may be set again after the fit.

    >>> import isonb, torch
    >>> x = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]]).repeat(5, 1)
    >>> dial = isonb.PartialWhitening(p=0.5).fit(x)
    >>> torch.cov(dial.transform(x).T).round(decimals=4).tolist()
    [[3.3287, 0.0], [0.0, 1.6644]]
    >>> dial.p = 1.0
    >>> round(dial.measure_after(x, ["isoscore"])["isoscore"], 4)
    1.0
    """

    ROUGH = True

    p: float = option(1.0, "0 leaves the cloud, 1 makes it round")
    keep_norms: bool = option(False, KEPT)

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        values, axes = principal_axes(cov, n - 1)
        return {"values": values, "axes": axes}

    def _remarks(self, n: int, d: int) -> list[str]:
        dead = f"{d - n + 1} of {d} directions have no variance in {n} points, and come out 0 of all others."
        return [dead] * (n <= d) + super()._remarks(n, d)

    def factors(self) -> Tensor:
        """What each principal direction is multiplied by (d), the loudest first."""
        values = self._learned("values")
        alive = values > len(values) * torch.finfo(values.dtype).eps * values[0]
        scaled = torch.where(alive, values / values[alive].mean(), 1.0) ** (-self.p / 2)
        return torch.where(alive, scaled, float(self.p == 0))

    def _map(self, x: Tensor) -> Tensor:
        axes = self.state["axes"]
        return self._centred(x) @ ((axes * self.factors()) @ axes.mT).to(x)


@dataclass(eq=False, repr=False)
class MeanTranslation(GradedTransform):
    r""":math:`x + s\mu`: the mean added ``s`` times; -1 takes it away. The covariance, hence IsoScore, stays.

    >>> import isonb, torch
    >>> x = torch.tensor([[1.0, 5.0], [3.0, 7.0]])
    >>> isonb.MeanTranslation(s=-0.5).fit(x).transform(x).tolist()
    [[0.0, 2.0], [2.0, 4.0]]
    """

    NEEDS = "mean"

    s: float = option(-1.0, "how many times the mean is added; -1 takes it away")
    keep_norms: bool = option(False, KEPT)

    def _map(self, x: Tensor) -> Tensor:
        return x + self.s * self.state["mean"].to(x)


@dataclass(eq=False, repr=False)
class DimensionScale(GradedTransform):
    r"""The ``count`` loudest dimensions, those of largest :math:`E\,x_j^2`, multiplied by ``factor``.

    0 silences them, more than 1 makes them louder.

    >>> import isonb, torch
    >>> x = torch.tensor([[9.0, 1.0], [8.0, 2.0]])
    >>> isonb.DimensionScale(factor=0.5).fit(x).transform(x).tolist()
    [[4.5, 1.0], [4.0, 2.0]]
    """

    NEEDS = "variance"

    factor: float = option(0.0, "of the loudest dimensions: 0 silences them")
    count: int = option(1, "how many dimensions", low=1)
    keep_norms: bool = option(False, KEPT)

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        if self.count > len(mean):
            fail(ShapeError, f"count must be at most the {len(mean)} dimensions", self.count, "Scale fewer of them.")
        square = (n - 1) / n * cov + mean.square()
        return {"loudest": square.topk(self.count).indices}

    def _map(self, x: Tensor) -> Tensor:
        return x * x.new_ones(x.shape[-1]).index_fill(0, self.state["loudest"].to(x.device), self.factor)


@dataclass(eq=False, repr=False)
class Standardize(GradedTransform):
    r""":math:`(x_j - \mu_j)/\sigma_j^p` in each dimension j; p = 1 gives each the variance 1.

    A dimension that is constant comes out 0. Raises :class:`~isonb.errors.DegenerateError` where all are.

    >>> import isonb, torch
    >>> x = torch.tensor([[0.0, 1.0], [4.0, 1.0], [2.0, 1.0]])
    >>> isonb.Standardize().fit(x).transform(x).tolist()
    [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """

    NEEDS = "variance"

    p: float = option(1.0, "power of the deviation that each dimension is divided by")
    keep_norms: bool = option(False, KEPT)

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        if not bool((cov > 0).any()):
            fail(DegenerateError, "the points must not all be equal", "no variance", "Give more points.")
        return {"deviation": cov.sqrt()}

    def _map(self, x: Tensor) -> Tensor:
        deviation = self.state["deviation"]
        alive = deviation > 0
        scale = torch.where(alive, torch.where(alive, deviation, 1.0) ** -self.p, 0.0)
        return self._centred(x) * scale.to(x)


@dataclass(eq=False, repr=False)
class SingularDecay(GradedTransform):
    r"""SoftDecay (:func:`isonb.soft_decay`) as a map that is fitted on some points and applied to others.

    With the raw matrix :math:`X = U\,\mathrm{diag}(s)V^\top` of the fitted points the map is
    :math:`V\,\mathrm{diag}(\tilde s / s)V^\top`, :math:`\tilde s` the decayed singular values: of the fitted points it
    gives ``soft_decay(x, alpha, mode)``. ``alpha`` and ``mode`` as there; they may be set again after the fit.

    SoftDecay looks at the size of singular values, and they grow with the number of points: of more points the map is
    another one. ``rows`` gives the map as if there were so many.

    >>> import isonb, torch
    >>> x = torch.diag(torch.tensor([3.0, 1.0, 0.5]))
    >>> isonb.SingularDecay(alpha=-0.6).fit(x).transform(x).diagonal().tolist()
    [3.0, 0.7235, -0.2081]
    """

    alpha: float = option(-0.2, "of SoftDecay", low=-1, high=0)
    mode: Literal["code", "safe"] = option("code", "of SoftDecay: negative values stay, or are cut at 0")
    keep_norms: bool = option(False, KEPT)
    rows: int | None = option(None, "as if so many points had been fitted; None: as many as there were", low=1)

    def _learn(self, mean: Tensor, cov: Tensor, n: int) -> dict[str, Tensor]:
        squares = (n - 1) / n * cov + torch.outer(mean, mean)
        values, axes = principal_axes((self.rows or n) * squares, n)
        return {"singular": values.sqrt(), "axes": axes}

    def _map(self, x: Tensor) -> Tensor:
        singular, axes = self.state["singular"], self.state["axes"]
        decayed = soft_decay(singular.diag(), self.alpha, self.mode).diagonal()
        ratio = torch.where(decayed != 0, decayed / torch.where(singular > 0, singular, 1.0), 0.0)
        return x @ ((axes * ratio) @ axes.mT).to(x)
