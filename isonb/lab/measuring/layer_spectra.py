"""The token spectrum of every layer, over batches of sentences."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import torch
from torch import Tensor

from isonb.lab.measuring.token_spectra import token_spectrum
from isonb.lab.statistics.seeds import student

__all__ = ["LABELS", "NUMBERS", "depth_rows", "layer_spectra"]

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


def depth_rows(source: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The numbers of a source by depth: source, measure, depth (layer over the last), value, low, high.

    ``rows`` as of :func:`layer_spectra`. Mean over batches with Student's 95% interval; one batch alone has none.
    """
    found = []
    for (layer, number), values in rows.melt("layer", NUMBERS).groupby(["layer", "variable"])["value"]:
        ends = student(values) if len(values) > 1 else None
        low, high = (values.mean(),) * 2 if ends is None else (ends.low, ends.high)
        found.append((source, LABELS[number], layer / rows["layer"].max(), values.mean(), low, high))
    return pd.DataFrame(found, columns=["source", "measure", "depth", "value", "low", "high"])
