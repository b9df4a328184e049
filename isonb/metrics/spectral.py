"""Metrics of the mean and the scatter: IsoScore and its relatives, shares of variance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.errors import ShapeError, fail
from isonb.measures.isoscore import checked_zeta, isoscore_from_cov, shrinkage_matrix
from isonb.measures.purity import purity_of
from isonb.measures.rank import effective_rank, power_law
from isonb.measures.spectrum import anisotropy, explained_variance, varex_score
from isonb.metrics.streaming import Streaming
from isonb.streaming.moments import Moments
from isonb.streaming.traces import LengthMoments

__all__ = [
    "AlphaReQ",
    "Anisotropy",
    "Covariance",
    "EffectiveRank",
    "ExplainedVariance",
    "IsoScore",
    "IsoScoreStar",
    "MeanVector",
    "ParticipationRatio",
    "VarEx",
]


class _FromMoments(Streaming):
    """A value of the mean and the scatter."""

    least = 2

    def __init__(self, kind: Any = Moments, **kwargs: Any) -> None:
        super().__init__(kind, **kwargs)


def _cloud_of(second_moment: Tensor) -> Tensor:
    """A small cloud (d, d) with the given matrix as its sum of x x^T, up to a rotation; rounding is no direction."""
    values = torch.linalg.eigvalsh(second_moment)
    return torch.diag(torch.where(values > len(values) * torch.finfo(values.dtype).eps * values[-1], values, 0).sqrt())


class MeanVector(_FromMoments):
    """Mean (d) of all points."""

    least = 1

    def _value(self, summary: Moments) -> Tensor:
        return summary.mean


class Covariance(_FromMoments):
    """Covariance (d, d) of all points, with n - 1."""

    def _value(self, summary: Moments) -> Tensor:
        return summary.cov


class ParticipationRatio(_FromMoments):
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


class IsoScoreStar(_FromMoments):
    """:func:`isonb.isoscore_star` of all points with a fixed ``zeta``; None: the trace-scaled identity."""

    def __init__(self, zeta: float = 0.2, shrinkage_cov: Tensor | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.zeta, self.shrinkage_cov = checked_zeta(zeta), shrinkage_cov

    def _value(self, summary: Moments) -> Tensor:
        cov, base = summary.cov, self.shrinkage_cov
        scaled = torch.eye(len(cov)).to(cov) * cov.trace() / len(cov)
        return isoscore_from_cov(cov.lerp(scaled if base is None else shrinkage_matrix(base, cov), self.zeta))


class Anisotropy(_FromMoments):
    """:func:`isonb.measures.spectrum.anisotropy` (k) of all points; ``center=True`` for shares of variance."""

    function = staticmethod(anisotropy)

    def __init__(self, k: int = 3, *, center: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.k, self.center, self.least = k, center, 2 if center else 1

    def _value(self, summary: Moments) -> Tensor:
        count, mean, scatter = summary.state_tensors()
        matrix = scatter if self.center else scatter.addr(mean, count * mean)
        return self._of(_cloud_of(matrix))

    def _of(self, cloud: Tensor) -> Tensor:
        shares: Tensor = self.function(cloud, self.k)
        return shares


class ExplainedVariance(Anisotropy):
    """:func:`isonb.measures.spectrum.explained_variance` (k) of all points, the running sum of :class:`Anisotropy`."""

    function = staticmethod(explained_variance)


class EffectiveRank(Anisotropy):
    """:func:`isonb.effective_rank` of all points, of any order."""

    def __init__(self, order: float = 1.0, *, squared: bool = False, center: bool = False, **kwargs: Any) -> None:
        super().__init__(center=center, **kwargs)
        self.order, self.squared = order, squared

    def _of(self, cloud: Tensor) -> Tensor:
        return effective_rank(cloud, self.order, squared=self.squared)


class AlphaReQ(_FromMoments):
    """:func:`isonb.alpha_req` of all points."""

    def __init__(self, first: int = 11, last: int = 100, *, weighted: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.first, self.last, self.weighted = first, last, weighted

    def _value(self, summary: Moments) -> Tensor:
        values = torch.linalg.eigvalsh(summary.cov).flip(-1)
        return power_law(values / values.sum(), self.first, self.last, self.weighted)


class VarEx(_FromMoments):
    """:func:`isonb.measures.spectrum.varex_score` of all points."""

    def __init__(self, p: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.p = p

    def _value(self, summary: Moments) -> Tensor:
        cloud = _cloud_of(summary.cov)
        return varex_score(torch.cat([cloud, -cloud]), self.p)
