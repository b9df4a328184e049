"""The measures of one cloud of points, each a number or, where it isn't defined, None."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isonb.barcodes.entropy import persistent_entropy
from isonb.barcodes.rips import h0_barcode
from isonb.checks import strict
from isonb.errors import InputError
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore, isoscore_star
from isonb.measures.neighbors import two_nn
from isonb.measures.spectrum import singular_values
from isonb.numerics.rows import centered
from isonb.points import label_groups

__all__ = ["ZETA", "Values", "attempt", "cloud_measures", "number", "shares_named", "squared_shares"]

ZETA = 0.2  # weight of the shrinkage matrix in IsoScore*
LEADING = 3  # directions whose shares are reported

Values = dict[str, float | None]


def attempt(measure: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor | None:
    """What ``measure`` returns; None if it refuses its input or returns a number that isn't finite.

    >>> attempt(isoscore, torch.ones(5, 3)) is None  # all points equal
    True
    """
    try:
        with strict():
            value = measure(*args, **kwargs)
    except InputError:
        return None
    return value if bool(torch.isfinite(value).all()) else None


def number(measure: Callable[..., Tensor], *args: Any, **kwargs: Any) -> float | None:
    """:func:`attempt` of a scalar, as a float."""
    value = attempt(measure, *args, **kwargs)
    return None if value is None else float(value)


@torch.no_grad()
def cloud_measures(points: Tensor, labels: Tensor | None = None, *, shrinkage_cov: Tensor | None = None) -> Values:
    """Measures of points (n, d), in float64 on the CPU; None where one isn't defined for them. Never an error.

    Shares of the leading directions, j = 1..3: ``anisotropy_<j>``, ``explained_variance_<j>``, and both with
    ``_centered``. ``isoscore``, ``isoscore_unbiased``, ``isoscore_star`` (zeta 0.2; ``shrinkage_cov`` (d, d), else the
    scaled identity). ``mean_cosine``, ``mean_cosine_centered``, ``mean_norm`` (length of the mean over mean length).
    ``two_nn``. ``persistent_entropy`` of all H0 bars, and ``persistent_entropy_normalized``, over the logarithm of
    their number. With integer ``labels`` (n,) also, each class moved to its own mean: ``anisotropy_<j>_class_centered``
    and ``isoscore_class_centered``.

    >>> found = cloud_measures(torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]]))
    >>> [round(found[name], 6) for name in ("anisotropy_1", "anisotropy_1_centered", "isoscore")]
    [0.90774, 0.768742, 0.551724]
    >>> found["anisotropy_3"] is None  # there are two dimensions
    True
    """
    x = points.detach().cpu().double()
    middle = attempt(centered, x)
    moved = torch.empty(0, x.shape[-1], dtype=x.dtype) if middle is None else middle
    return (
        shares_named(attempt(squared_shares, x), "")
        | shares_named(attempt(squared_shares, x, center=True), "_centered")
        | {
            "isoscore": number(isoscore, x),
            "isoscore_unbiased": number(isoscore, x, unbiased=True),
            "isoscore_star": number(isoscore_star, x, ZETA, shrinkage_cov),
            "mean_cosine": number(mean_cosine, x),
            "mean_cosine_centered": number(mean_cosine, moved),
            "mean_norm": number(_mean_norm, x),
            "two_nn": number(two_nn, x),
        }
        | _entropies(x)
        | ({} if labels is None else _within_classes(x, labels.cpu()))
    )


def squared_shares(x: Tensor, center: bool = False) -> Tensor:
    """Squared singular values of points (n, d) over their sum: what anisotropy and explained variance are made of."""
    square = singular_values(x, center=center).square()
    return square / square.sum()


def shares_named(shares: Tensor | None, ending: str) -> Values:
    """Anisotropy and explained variance of the leading directions under their names."""
    alone = [] if shares is None else shares[:LEADING].tolist()
    together = [] if shares is None else shares[:LEADING].cumsum(0).tolist()
    found: Values = {}
    for name, values in (("anisotropy", alone), ("explained_variance", together)):
        for j in range(LEADING):
            found[f"{name}_{j + 1}{ending}"] = values[j] if j < len(values) else None
    return found


def _mean_norm(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(x.mean(0)) / torch.linalg.vector_norm(x, dim=-1).mean()
    return length


def _entropies(x: Tensor) -> Values:
    bars = attempt(h0_barcode, x)
    entropy = None if bars is None else number(persistent_entropy, bars)
    most = 0.0 if bars is None else math.log(len(bars))
    return {
        "persistent_entropy": entropy,
        "persistent_entropy_normalized": entropy / most if entropy is not None and most > 0 else None,
    }


def _within_classes(x: Tensor, labels: Tensor) -> Values:
    def moved() -> Tensor:
        return torch.cat([centered(group) for _, group in label_groups(x, labels)])

    y = attempt(moved)
    shares = None if y is None else attempt(squared_shares, y)
    named = shares_named(shares, "_class_centered")
    found = {name: value for name, value in named.items() if name.startswith("anisotropy")}
    return found | {"isoscore_class_centered": None if y is None else number(isoscore, y)}
