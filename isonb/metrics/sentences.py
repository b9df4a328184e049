"""Metrics of directions and of sentences: mean cosines, token uniformity, the spectra of token matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.checks import strict, tensor_of
from isonb.measures.cosine import cls_uniformity, token_uniformity
from isonb.measures.spectrum import singular_values
from isonb.metrics.streaming import Streaming
from isonb.streaming.streams import Average, Skewness, UnitSums

__all__ = [
    "ClsUniformity",
    "CosineContributions",
    "CosinePenalty",
    "MeanCosine",
    "SpectralSkewness",
    "TokenUniformity",
]


class MeanCosine(Streaming):
    """:func:`isonb.measures.cosine.mean_cosine` of all points, exact over all pairs."""

    least = 2

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(UnitSums, **kwargs)

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

    function = staticmethod(token_uniformity)

    def __init__(self, *, include_self: bool = False, **kwargs: Any) -> None:
        super().__init__(Average, **kwargs)
        self.include_self = include_self

    def update(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Add sentences (..., T, d); mask (..., T) marks real tokens."""
        with strict(), torch.no_grad():
            values = self.function(x, mask, include_self=self.include_self)
            self._keep(self._summary(self.metric_state).update(values))

    def _value(self, summary: Average) -> Tensor:
        return summary.value


class ClsUniformity(TokenUniformity):
    """Mean over sentences of :func:`isonb.measures.cosine.cls_uniformity`; feed it (B, T, d) and a mask (B, T)."""

    function = staticmethod(cls_uniformity)

    def __init__(self, *, include_self: bool = True, **kwargs: Any) -> None:
        super().__init__(include_self=include_self, **kwargs)


class SpectralSkewness(Streaming):
    """:func:`isonb.spectral_skewness` of the pooled singular values of the token matrices of all sentences."""

    least = 2

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(Skewness, **kwargs)

    def update(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Add the token matrices (..., T, d) of sentences; mask (..., T) marks real tokens."""
        x, mask = tensor_of(x), tensor_of(mask)
        with strict(), torch.no_grad():
            values = singular_values(x, mask=mask)
            if mask is not None:  # padding adds zeros that aren't singular values
                values = values[torch.arange(values.shape[-1], device=x.device) < mask.sum(-1, keepdim=True)]
            self._keep(self._summary(self.metric_state).update(values))

    def _value(self, summary: Skewness) -> Tensor:
        return summary.value
