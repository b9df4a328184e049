"""The singular values of the token matrices of sentences, and what SoftDecay (Yan et al., UAI 2022) reads off them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor

from isonb.checks import check_points, validated
from isonb.measures.cosine import cls_uniformity, token_uniformity
from isonb.measures.registry import TOKEN_MEASURES
from isonb.measures.spectrum import spectral_median, spectral_skewness
from isonb.numerics.rows import row_count

LABELS = {name.removeprefix("spectral_"): measure.title for name, measure in TOKEN_MEASURES.items()}
NUMBERS = tuple(LABELS)


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


@validated
@torch.no_grad()
def token_spectrum(states: Tensor, mask: Tensor | None = None) -> TokenSpectrum:
    """The spectrum of the hidden states (B, T, d) of B sentences at one layer; ``mask`` (B, T) marks real tokens.

    Each sentence is a matrix of its own, raw and without padding: min(tokens, d) singular values. Two tokens at least.

    >>> spectrum = token_spectrum(torch.diag(torch.tensor([4.0, 2.0, 2.0])).unsqueeze(0))
    >>> spectrum.values.tolist(), spectrum.median, round(spectrum.token_uniformity, 6), round(spectrum.bound, 6)
    ([4.0, 2.0, 2.0], 0.5, 0.0, 1.0)
    """
    x, mask = check_points(states, mask, name="states", points=2)
    u, s, _ = torch.linalg.svd(x, full_matrices=False)
    real = torch.arange(s.shape[-1], device=s.device) < row_count(x, mask).unsqueeze(-1)
    values = s[real]
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
    distances = (u * s.unsqueeze(-2)).square().flip(-1).cumsum(-1).flip(-1).amax(-2).sqrt()
    solid = s > 1e3 * torch.finfo(s.dtype).eps * s[..., :1]
    return float((distances / torch.where(solid, s, torch.inf)).max())


def layer_spectra(batches: Iterable[tuple[Tensor, Tensor]]) -> tuple[pd.DataFrame, dict[int, Tensor]]:
    """One row a batch and layer: :data:`NUMBERS` and ``bound``; and the pooled singular values of each layer.

    ``batches``: hidden states (L+1, B, T, d) and which tokens are real (B, T).
    """
    rows: list[dict[str, float]] = []
    pooled: dict[int, list[Tensor]] = {}
    for batch, (states, mask) in enumerate(batches):
        for layer, state in enumerate(states):
            spectrum = token_spectrum(state, mask)
            numbers = {name: getattr(spectrum, name) for name in (*NUMBERS, "bound")}
            rows.append({"batch": batch, "layer": layer} | numbers)
            pooled.setdefault(layer, []).append(spectrum.values)
    return pd.DataFrame(rows), {layer: torch.cat(parts) for layer, parts in pooled.items()}
