"""The token spectrum of every layer, over batches of sentences."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import torch
from torch import Tensor

from isonb.lab.measuring.token_spectra import token_spectrum

__all__ = ["LABELS", "NUMBERS", "layer_spectra"]

LABELS = {
    "skewness": "skewness",
    "median": "median",
    "token_uniformity": "TokenUni",
    "cls_uniformity": "[CLS] uniformity",
}
NUMBERS = tuple(LABELS)


def layer_spectra(batches: Iterable[tuple[Tensor, Tensor]]) -> tuple[pd.DataFrame, dict[int, Tensor]]:
    """One row a batch and layer: :data:`NUMBERS` and ``bound``; and the pooled singular values of each layer.

    ``batches``: hidden states (L+1, B, T, d) and which tokens are real (B, T).
    """
    rows: list[dict[str, float]] = []
    pooled: dict[int, list[Tensor]] = {}
    for batch, (states, mask) in enumerate(batches):
        for layer, state in enumerate(states):
            found = token_spectrum(state, mask)
            numbers = {name: getattr(found, name) for name in (*NUMBERS, "bound")}
            rows.append({"batch": batch, "layer": layer} | numbers)
            pooled.setdefault(layer, []).append(found.values)
    return pd.DataFrame(rows), {layer: torch.cat(parts) for layer, parts in pooled.items()}
