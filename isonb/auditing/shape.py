"""Measures of a cloud with 95% intervals, beside what a round cloud of the same size reads; cosines of random rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from isonb.auditing.parts import Reading
from isonb.auditing.reading.rows import CHUNK
from isonb.errors import DegenerateError, ShapeError
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore, participation_ratio
from isonb.measures.neighbors import two_nn
from isonb.measures.spectrum import explained_variance
from isonb.numerics.rows import unit_rows

__all__ = [
    "BY_LAYER",
    "GROUPS",
    "MEASURES",
    "SHARES",
    "TWO_NN",
    "groups_of",
    "jackknife",
    "quantiles",
    "random_cosines",
    "readings",
]

PAIRS = 100_000  # random pairs behind the quantiles of the cosine
SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
GROUPS = 10  # of the jackknife
STUDENT = 2.262  # its quantile 0.975 at GROUPS - 1 degrees of freedom

TWO_NN = "TwoNN dimension"

Measure = Callable[[Tensor], Tensor]


def common_mean(x: Tensor) -> Tensor:
    """The share of the mean squared length that all rows have in common, in [0, 1].

    >>> common_mean(torch.tensor([[3.0, 4.0], [3.0, -4.0]])).item()
    0.36
    """
    found: Tensor = x.mean(0).square().sum() / x.square().sum(-1).mean()
    return found


MEASURES: dict[str, Measure] = {
    "mean cosine": mean_cosine,
    "common mean": common_mean,
    "IsoScore": isoscore,
    "IsoScore-U": lambda x: isoscore(x, unbiased=True),
    "participation ratio": lambda x: participation_ratio(x, unbiased=True),
    "EV1, centred": lambda x: explained_variance(x, 1, center=True)[0],
    TWO_NN: two_nn,
}
BY_LAYER = {name: MEASURES[name] for name in MEASURES if name not in ("EV1, centred", "common mean")}


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
    round_cloud: Tensor | Mapping[str, float],
    draw: torch.Generator,
    measures: Mapping[str, Measure] = MEASURES,
    copies: Tensor | None = None,
) -> Iterator[Reading]:
    """Each measure that is defined for these rows. ``round_cloud``: points, or what they read.

    ``copies`` marks rows that say what an earlier one says: TwoNN would measure the rounding between them.
    """
    group = groups_of(len(x), draw)
    for name, measure in measures.items():
        kept = ~copies if copies is not None and name == TWO_NN else torch.ones(len(x), dtype=torch.bool)
        try:
            value = float(measure(x[kept]))
            half = jackknife([float(measure(x[kept & (group != g)])) for g in range(GROUPS)])
            fewer = float(measure(x[kept & (group < GROUPS // 2)]))
            usual = float(measure(round_cloud)) if isinstance(round_cloud, Tensor) else round_cloud[name]
        except (DegenerateError, ShapeError):  # rows that are all the same have no spectrum and no neighbours
            continue
        yield Reading(name, value, value - half, value + half, usual, fewer)


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
