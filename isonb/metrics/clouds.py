"""Metrics of one cloud: of its mean and scatter, of its directions, and of the tokens of sentences."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.checks import strict, validated
from isonb.errors import InputError, ShapeError, fail
from isonb.measures.cosine import cls_uniformity, token_uniformity
from isonb.measures.isoscore import checked_zeta, isoscore_from_cov, shrinkage_matrix
from isonb.measures.purity import purity_of
from isonb.measures.rank import effective_rank, first_rank, power_law
from isonb.measures.spectrum import anisotropy, explained_variance, singular_values, spectral_skewness, varex_score
from isonb.metrics.streaming import Streaming
from isonb.streaming.moments import Moments
from isonb.streaming.streams import Average, Skewness, UnitSums
from isonb.streaming.traces import LengthMoments


def _squares_of(summary: Moments) -> Tensor:
    """Sum (d, d) of x x^T over all points: n cov_n + n mean mean^T."""
    count, mean, scatter = summary.state_tensors()
    return scatter.addr(mean, count * mean)


def _values_of(second_moment: Tensor, most: int) -> Tensor:
    """Eigenvalues (d), descending, of which ``most`` can be above 0: what is rounding is 0."""
    values = torch.linalg.eigvalsh(second_moment).flip(-1)
    values[most:] = 0
    return torch.where(values > len(values) * torch.finfo(values.dtype).eps * values[0], values, 0)


def _cloud_of(second_moment: Tensor, most: int) -> Tensor:
    """A small cloud (d, d) with the given matrix as its sum of x x^T, up to a rotation."""
    return torch.diag(_values_of(second_moment, most).sqrt())


class MeanVector(Streaming):
    """Mean (d) of all points."""

    def _value(self, summary: Moments) -> Tensor:
        return summary.mean


class Covariance(Streaming):
    """Covariance (d, d) of all points, with n - 1."""

    least = 2

    def _value(self, summary: Moments) -> Tensor:
        return summary.cov


class ParticipationRatio(Streaming):
    """:func:`isonb.measures.isoscore.participation_ratio` of all points; ``unbiased=True`` for PR-U."""

    def __init__(self, *, unbiased: bool = False, **kwargs: Any) -> None:
        super().__init__(LengthMoments if unbiased else Moments, **kwargs)
        self.unbiased, self.least = unbiased, 4 if unbiased else 2

    def _value(self, summary: Any) -> Tensor:
        ratio: Tensor = summary.participation_ratio if self.unbiased else 1 / purity_of(summary.cov)
        return ratio


class IsoScore(ParticipationRatio):
    """:func:`isonb.measures.isoscore.isoscore` of all points, (PR - 1)/(d - 1); ``unbiased=True`` takes PR-U.

    >>> metric = IsoScore()
    >>> metric.update(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> metric.update(torch.tensor([[-1.0, 0.0], [0.0, -2.0]]))
    >>> round(metric.compute().item(), 6)
    0.470588
    """

    def _value(self, summary: Any) -> Tensor:
        if not self.unbiased:
            return isoscore_from_cov(summary.cov)
        dims = int(summary.moments.mean.shape[0])
        if dims < 2:
            fail(ShapeError, "IsoScore needs at least 2 dimensions", dims, "Is the matrix transposed?")
        return (super()._value(summary) - 1) / (dims - 1)


class IsoScoreStar(Streaming):
    """:func:`isonb.isoscore_star` of all points with a fixed ``zeta`` and ``shrinkage_cov``.

    None: the trace-scaled identity, with which it is a function of :class:`IsoScore` and has the same bias.
    """

    least = 2

    def __init__(self, zeta: float = 0.2, shrinkage_cov: Tensor | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if str(zeta) == "auto":  # needs fourth moments, which aren't kept
            fix = "Call isonb.isoscore_star on all points, or take IsoScore(unbiased=True)."
            fail(InputError, "zeta of a metric must be a number in [0, 1]", repr(zeta), fix)
        self.zeta, self.shrinkage_cov = checked_zeta(zeta), shrinkage_cov

    def _value(self, summary: Moments) -> Tensor:
        cov, base = summary.cov, self.shrinkage_cov
        scaled = torch.eye(len(cov)).to(cov) * cov.trace() / len(cov)
        return isoscore_from_cov(cov.lerp(scaled if base is None else shrinkage_matrix(base, cov), self.zeta))


class Anisotropy(Streaming):
    """:func:`isonb.measures.spectrum.anisotropy` (k) of all points; ``center=True`` for shares of variance.

    ``alone=True`` gives the k-th of them, as the registry has it.
    """

    function = staticmethod(anisotropy)

    def __init__(self, k: int = 3, *, center: bool = False, alone: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k, self.center, self.alone, self.least = k, center, alone, 2 if center else 1

    def _value(self, summary: Moments) -> Tensor:
        n = int(summary.n)
        cloud = _cloud_of(summary.state_tensors()[2] if self.center else _squares_of(summary), n - self.center)
        return self._of(cloud[:n])  # n points have no more directions

    def _of(self, cloud: Tensor) -> Tensor:
        shares: Tensor = self.function(cloud, self.k)
        return shares[-1] if self.alone else shares


class ExplainedVariance(Anisotropy):
    """:func:`isonb.measures.spectrum.explained_variance` (k) of all points, the running sum of :class:`Anisotropy`."""

    function = staticmethod(explained_variance)


class EffectiveRank(Anisotropy):
    """:func:`isonb.effective_rank` of all points, of any order."""

    exact = True

    def __init__(self, order: float = 1.0, *, squared: bool = False, center: bool = False, **kwargs: Any) -> None:
        super().__init__(center=center, **kwargs)
        self.order, self.squared = order, squared

    def _of(self, cloud: Tensor) -> Tensor:
        return effective_rank(cloud, self.order, squared=self.squared)


class AlphaReQ(Streaming):
    """:func:`isonb.alpha_req` of all points; a cloud of few ranks is fitted from rank 1 on, with its warning."""

    least, exact = 2, True

    def __init__(self, first: int | None = None, last: int = 100, *, weighted: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first, self.last, self.weighted = first, last, weighted

    def _value(self, summary: Moments) -> Tensor:
        values = _values_of(summary.cov, int(summary.n) - 1)
        first = first_rank(self.first, min(int(summary.n), len(values)))
        return power_law(values / values.sum(), first, self.last, self.weighted)


class VarEx(Streaming):
    """:func:`isonb.measures.spectrum.varex_score` of all points."""

    least = 2

    def __init__(self, p: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.p = p

    def _value(self, summary: Moments) -> Tensor:
        cloud = _cloud_of(summary.cov, int(summary.n) - 1)
        return varex_score(torch.cat([cloud, -cloud]), self.p)


class MeanCosine(Streaming):
    """:func:`isonb.measures.cosine.mean_cosine` of all points, exact over all pairs."""

    summary, least = UnitSums, 2

    def _value(self, summary: UnitSums) -> Tensor:
        return summary.mean_cosine


class CosinePenalty(MeanCosine):
    """:func:`isonb.measures.cosine.cosine_penalty` of all points: CosReg's form, divided by n^2."""

    def _value(self, summary: UnitSums) -> Tensor:
        return summary.penalty


class CosineContributions(MeanCosine):
    """:func:`isonb.measures.cosine.cosine_contributions` (d) of all points."""

    def _value(self, summary: UnitSums) -> Tensor:
        return summary.contributions


class TokenUniformity(Streaming):
    """Mean over sentences of :func:`isonb.measures.cosine.token_uniformity`; feed it (B, T, d) and a mask (B, T)."""

    summary, function = Average, staticmethod(token_uniformity)

    def __init__(self, *, include_self: bool = False, **kwargs: Any) -> None:
        super().__init__(None, type(self).__name__, include_self, **kwargs)
        self.include_self = include_self

    @validated
    def update(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Add sentences (..., T, d); mask (..., T) marks real tokens."""
        with strict(), torch.no_grad():
            self._add(self.function(x, mask, include_self=self.include_self))


class ClsUniformity(TokenUniformity):
    """Mean over sentences of :func:`isonb.measures.cosine.cls_uniformity`; feed it (B, T, d) and a mask (B, T)."""

    function = staticmethod(cls_uniformity)

    def __init__(self, *, include_self: bool = True, **kwargs: Any) -> None:
        super().__init__(include_self=include_self, **kwargs)


class SpectralSkewness(Streaming):
    """:func:`isonb.spectral_skewness` of the singular values of the cloud of all points (n, d).

    ``sentences=True``: of the pooled singular values of the token matrices of all sentences; feed it (B, T, d) and a
    mask (B, T).

    >>> metric = SpectralSkewness()
    >>> for piece in torch.diag(torch.tensor([1.0, 1.0, 4.0])):
    ...     metric.update(piece[None])
    >>> round(metric.compute().item(), 6)
    0.707107
    """

    exact = True

    def __init__(self, *, sentences: bool = False, **kwargs: Any) -> None:
        super().__init__(Skewness if sentences else Moments, **kwargs)
        self.sentences, self.least = sentences, 2

    @validated
    def update(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Add points (n, d) of the cloud, or the token matrices (..., T, d) of sentences; mask marks the real ones."""
        if not self.sentences and isinstance(x, Tensor) and x.ndim > 2:
            fix = "For token matrices (B, T, d) make it with sentences=True; for one cloud of all tokens flatten them."
            fail(ShapeError, "the points of one cloud must have shape (n, d)", list(x.shape), fix)
        if not self.sentences:
            super().update(x, mask)
            return
        with strict(), torch.no_grad():
            values = singular_values(x, mask=mask)
            if mask is not None:  # padding adds zeros that aren't singular values
                values = values[torch.arange(values.shape[-1], device=x.device) < mask.sum(-1, keepdim=True)]
            self._add(values)

    def _value(self, summary: Any) -> Tensor:
        if self.sentences:
            return super()._value(summary)
        count = int(summary.n)
        return spectral_skewness(_values_of(_squares_of(summary), count)[:count].sqrt())
