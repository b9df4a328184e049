"""What the heads of fine-tuned models read, and how round that is.

A loss acts on tokens or on [CLS] vectors, and a head with a pooler reads neither. So a sentence about a classifier
speaks of the vectors that a method's ``read_by`` names, and of no others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from isonb_lab.methods import reading_place

WIDTH = {"minilm": 384, "tiny": 128}


def isotropy(runs: pd.DataFrame, measure: str = "isoscore_unbiased") -> pd.Series[float]:
    """A measure of what the classifier of each run reads: the features, or the output of a second stage.

    Missing where it wasn't recorded: behind IsoLayer's layer and a pooler.
    """
    places = list(map(reading_place, runs["method.name"], runs["head"]))
    result = pd.Series(np.nan, index=runs.index)
    for place in sorted({*places} - {""}):
        here, column = [item == place for item in places], f"metric.end.{place}.{measure}"
        result[here] = runs.loc[here].reindex(columns=[column])[column].astype(float)
    return result


def width(runs: pd.DataFrame) -> pd.Series[float]:
    """The width of each run's encoder; of one that isn't the book's as 1 + (PR - 1) / IsoScore-U has it."""
    ratio = (isotropy(runs, "participation_ratio_unbiased") - 1) / isotropy(runs)
    return runs["model"].map(WIDTH).astype(float).fillna((1 + ratio).round())


def participation(runs: pd.DataFrame) -> pd.Series[float]:
    """The participation ratio of what the classifier of each run reads: 1 + (d - 1) IsoScore-U, from 1 to d."""
    return 1 + (width(runs) - 1) * isotropy(runs)


def span(runs: pd.DataFrame, by: Sequence[str]) -> str:
    """The least and the greatest mean of :func:`participation` over groups of runs: "1.1 to 2.9 of 128".

    A dash where no run says what its head read.
    """
    means = participation(runs).groupby([runs[name] for name in by]).mean().dropna()
    if means.empty:
        return "–"
    widths = " and ".join(f"{size:.0f}" for size in sorted(width(runs).dropna().unique()))
    return f"{means.min():.1f} to {means.max():.1f} of {widths}"
