"""Measures of a cloud with 95% intervals, beside those of an isotropic Gaussian of the same size; random cosines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from isonb.auditing.findings import Reading
from isonb.auditing.reading.rows import CHUNK
from isonb.errors import DegenerateError, ShapeError
from isonb.measures.registry import MEASURES
from isonb.numerics.rows import unit_rows

PAIRS = 100_000  # random pairs behind the quantiles of the cosine
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
GROUPS = 10  # of the jackknife
STUDENT = 2.2621571628  # its quantile 0.975 at GROUPS - 1 degrees of freedom

TWO_NN = "two_nn"

# The measures of the registry that an audit takes.
AUDITED = (
    "mean_cosine",
    "common_mean",
    "isoscore",
    "isoscore_unbiased",
    "participation_ratio_unbiased",
    "explained_variance_1_centered",
    "two_nn",
)
BY_LAYER = tuple(name for name in AUDITED if name not in ("explained_variance_1_centered", "common_mean"))


def groups_of(n: int, draw: torch.Generator) -> Tensor:
    """The group of the jackknife that each of n rows is in."""
    return torch.randperm(n, generator=draw) % GROUPS


def jackknife(without: list[float]) -> float:
    """Half the 95% interval of a value, from what it is without each group."""
    left = torch.tensor(without, dtype=torch.float64)
    n = len(left)
    return STUDENT * math.sqrt((n - 1) / n * float((left - left.mean()).square().sum()))


def readings(
    x: Tensor,
    gaussian: Tensor | Mapping[str, float],
    draw: torch.Generator,
    names: Sequence[str] = AUDITED,
    copies: Tensor | None = None,
) -> Iterator[Reading]:
    """Each measure that is defined for these rows. ``gaussian``: points, or what they read.

    ``copies`` marks rows that say what an earlier one says: TwoNN would measure the rounding between them.
    """
    group = groups_of(len(x), draw)
    for measure in (MEASURES[name] for name in names):
        kept = ~copies if copies is not None and measure.name == TWO_NN else torch.ones(len(x), dtype=torch.bool)
        try:
            value = float(measure(x[kept]))
            half = jackknife([float(measure(x[kept & (group != g)])) for g in range(GROUPS)])
            fewer = float(measure(x[kept & (group < GROUPS // 2)]))
            usual = float(measure(gaussian)) if isinstance(gaussian, Tensor) else gaussian[measure.name]
        except (DegenerateError, ShapeError):  # rows that are all the same have no spectrum and no neighbours
            continue
        yield Reading(measure.name, measure.title, value, value - half, value + half, usual, fewer)


def random_cosines(x: Tensor, draw: torch.Generator) -> Tensor:
    """Cosines of pairs of two different random rows, ascending."""
    n, d = x.shape
    count, step = min(PAIRS, 2**29 // d), max(1, min(CHUNK, 2**22 // d))
    first = torch.randint(n, (count,), generator=draw)
    second = (first + torch.randint(1, n, (count,), generator=draw)) % n
    unit = unit_rows(x)
    parts = zip(torch.split(first, step), torch.split(second, step), strict=True)
    return torch.cat([(unit[a] * unit[b]).sum(-1) for a, b in parts]).double().sort().values


def quantiles(cosines: Tensor) -> dict[str, float]:
    """The quantiles of the floor, by their share."""
    ends = torch.quantile(cosines, torch.tensor(SHARES, dtype=torch.float64))
    return {f"{share:g}": float(end) for share, end in zip(SHARES, ends, strict=True)}
