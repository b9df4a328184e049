"""The singular values of the token matrices of sentences, and what SoftDecay (Yan et al., UAI 2022) reads off them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isonb.checks import border, cloud
from isonb.measures.cosine import cls_uniformity, token_uniformity
from isonb.measures.spectrum import spectral_median, spectral_skewness
from isonb.numerics.rows import row_count

__all__ = ["TokenSpectrum", "token_spectrum"]


@dataclass(frozen=True)
class TokenSpectrum:
    """``values`` (N,): the singular values of all sentences, pooled. The others are numbers about them.

    ``skewness`` and ``median`` (over the largest) of the pooled values; ``token_uniformity`` and ``cls_uniformity``
    (the first token's cosine to itself included, as in the official code), means over sentences; ``bound``, the largest
    distance of a token from the span of the first k directions of its sentence, over singular value k + 1, for any k:
    at most 1 by the paper's theorem.
    """

    values: Tensor
    skewness: float
    median: float
    token_uniformity: float
    cls_uniformity: float
    bound: float

    def quantile(self, q: float) -> float:
        """The value, over the largest one, below which a share ``q`` of the pooled values lies."""
        return float(spectral_median(self.values, q))


@border
@torch.no_grad()
def token_spectrum(states: Tensor, mask: Tensor | None = None) -> TokenSpectrum:
    """The spectrum of the hidden states (B, T, d) of B sentences at one layer; ``mask`` (B, T) marks real tokens.

    Each sentence is a matrix of its own, raw and without padding: min(tokens, d) singular values. Two tokens at least.

    >>> found = token_spectrum(torch.diag(torch.tensor([4.0, 2.0, 2.0])).unsqueeze(0))
    >>> found.values.tolist(), found.median, round(found.token_uniformity, 6), round(found.bound, 6)
    ([4.0, 2.0, 2.0], 0.5, 0.0, 1.0)
    """
    x, mask = cloud(states, mask, name="states", points=2)
    u, s, _ = torch.linalg.svd(x, full_matrices=False)
    kept = torch.arange(s.shape[-1], device=s.device) < row_count(x, mask).unsqueeze(-1)
    values = s[kept]
    return TokenSpectrum(
        values=values,
        skewness=float(spectral_skewness(values)),
        median=float(spectral_median(values)),
        token_uniformity=float(token_uniformity(x, mask).mean()),
        cls_uniformity=float(cls_uniformity(x, mask).mean()),
        bound=_bound(u, s),
    )


def _bound(u: Tensor, s: Tensor) -> float:
    """The largest distance from the first k directions over singular value k + 1, wherever that isn't rounding."""
    left = (u * s.unsqueeze(-2)).square().flip(-1).cumsum(-1).flip(-1).amax(-2).sqrt()
    solid = s > 1e3 * torch.finfo(s.dtype).eps * s[..., :1]
    return float((left / torch.where(solid, s, torch.inf)).max())
