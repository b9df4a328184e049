"""Synthetic experiments."""

from __future__ import annotations

from dataclasses import dataclass

from isonb.lab.options import Options, option

__all__ = ["SyntheticSettings"]


@dataclass(frozen=True)
class SyntheticSettings(Options):
    """IsoScore* of small samples of a Gaussian cloud with a known covariance (I-STAR, Figure 2)."""

    seed: int = option(0, "of the points", low=0, high=10**6)
    dim: int = option(768, "dimensions", low=5, high=16384)
    sample_rows: int = option(250_000, "points in all", low=100, high=10**8)
    repeats: int = option(5, "disjoint samples of each size", low=1, high=1000)


def check_sizes(settings: SyntheticSettings) -> None:
    """Raise for samples that the points don't give."""
