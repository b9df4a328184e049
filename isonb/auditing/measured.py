"""Numbers of a cloud: measures with 95% intervals, beside those of an isotropic Gaussian; random cosines; thresholds.

A threshold at a rate of false matches is chosen on one half and measured on the other, raw and centred.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from isonb.auditing.unrelated import pair_cosines, random_pairs
from isonb.checks import is_number
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.measures.isoscore import unbiased_ratio
from isonb.measures.neighbourhoods import Neighbours
from isonb.measures.purity import length_kurtosis, purity_of
from isonb.measures.registry import MEASURES
from isonb.numerics.products import gram
from isonb.numerics.rows import center_rows, unit_rows
from isonb.numerics.scale import unit_sized

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)
GROUPS = 10  # of the jackknife
STUDENT = 2.2621571628  # its quantile 0.975 at GROUPS - 1 degrees of freedom

NORMAL = 1.96  # quantile 0.975 of a normal distribution
QUERIES = 1000  # of each half that are compared with the sampled rows

TWO_NN = "two_nn"
EV1 = "explained_variance_1_centered"
OF_SPREAD = ("isoscore", "isoscore_unbiased", "participation_ratio_unbiased", EV1)
LISTED = 12  # neighbours of which two are left where a group of the jackknife is not there

# The measures of the registry that an audit takes.
AUDITED = ("mean_cosine", "common_mean", *OF_SPREAD, "two_nn")
BY_LAYER = tuple(name for name in AUDITED if name not in (EV1, "common_mean"))

Change = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Reading:
    """A measure with its 95% interval, and what it is compared with.

    ``measure``: its name in the registry of measures, ``name``: its title there. ``gaussian``: what an isotropic
    Gaussian of as many points and dimensions reads. ``fewer``: the value of half of the rows; a measure that moves with
    their number says less about the model. A dimension near each point (TwoNN) that moves so far says nothing: it isn't
    ``steady``, and reports withhold it.
    """

    measure: str
    name: str
    value: float
    low: float
    high: float
    gaussian: float
    fewer: float

    @property
    def steady(self) -> bool:
        """Whether half of the rows read the same, within the interval, where that is asked."""
        return self.measure != TWO_NN or self.low <= self.fewer <= self.high


@dataclass(frozen=True)
class Layer:
    """The readings of the vectors that one layer gives; layer 0 is the embedding output."""

    number: int
    rows: int
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Match:
    """A threshold chosen at a rate of false matches on one half, and what the other half says of it.

    ``false_matches`` and ``recall`` are (share, low, high) with a 95% interval: of the half of the pairs that don't
    match (or of the queries) that weren't used for the choice, and of all pairs that match; ``recall`` is None without
    labels. ``percentile``: how many in a hundred random pairs aren't above the threshold.
    """

    cloud: str
    rate: float
    threshold: float
    percentile: float
    false_matches: tuple[float, float, float]
    recall: tuple[float, float, float] | None = None


def groups_of(n: int, draw: torch.Generator) -> Tensor:
    """The group of the jackknife that each of n rows is in."""
    return torch.randperm(n, generator=draw) % GROUPS


def jackknife(without: list[float]) -> float:
    """Half the 95% interval of a value, from what it is without each group."""
    values = torch.tensor(without, dtype=torch.float64)
    n = len(values)
    return STUDENT * math.sqrt((n - 1) / n * float((values - values.mean()).square().sum()))


def shape_of(x: Tensor, names: Sequence[str], scatter: Tensor | None = None) -> dict[str, float]:
    """Measures of points (n, d) by their names in the registry, those of the spread from one product; none undefined.

    With S the smaller of :math:`y^T y` and :math:`y y^T` of the centred rows y, every measure of the spread is read off
    the shares of its eigenvalues, as :mod:`isonb.measures.isoscore` says. ``scatter``: S, where it is known.

    >>> x = torch.tensor([[0.0, 1], [1, 3], [2, 0], [4, 1], [6, 4], [7, 3], [8, 5], [9, 4]])
    >>> names = "isoscore", "participation_ratio_unbiased", "explained_variance_1_centered"
    >>> [f"{value - float(MEASURES[name](x)):.3f}" for name, value in shape_of(x, names).items()]
    ['0.000', '0.000', '0.000']
    """
    values: dict[str, float] = {}
    with contextlib.suppress(DegenerateError, ShapeError):  # rows that are all the same have no spectrum
        if set(names) & set(OF_SPREAD):
            n, d = x.shape
            if scatter is None:
                y = center_rows(unit_sized(x))[0]
                scatter = gram(y if n < d else y.mT)
            q = purity_of(scatter)
            unbiased = float(unbiased_ratio(q, *length_kurtosis(x)))
            values = {
                "isoscore": (1 / float(q) - 1) / (d - 1),
                "isoscore_unbiased": (unbiased - 1) / (d - 1),
                "participation_ratio_unbiased": unbiased,
            }
            if EV1 in names:
                values[EV1] = float(torch.linalg.eigvalsh(scatter)[-1] / scatter.trace())
    for name in set(names) - set(OF_SPREAD):
        with contextlib.suppress(DegenerateError, ShapeError):
            values[name] = float(MEASURES[name](x))
    return {name: values[name] for name in names if name in values}


def _scatters(x: Tensor, parts: Sequence[Tensor]) -> Iterator[Tensor]:
    """The scatter of each part, joined from those of the groups that the parts consist of (Chan et al. 1983)."""
    sides, group = torch.unique(torch.stack([*parts]), dim=1, return_inverse=True)
    clouds = [center_rows(x[group == g]) for g in range(sides.shape[1])]
    within, n = torch.stack([gram(y.mT) for y, _ in clouds]), x.new_tensor([len(y) for y, _ in clouds])
    means = torch.stack([mean for _, mean in clouds])
    for part in sides:
        gap = means[part] - means[part][:1]  # exactly 0 where all rows are the same
        gap -= n[part] @ gap / n[part].sum()
        yield torch.tensordot(part.to(x), within, 1).addmm_(gap.mT * n[part], gap)


def of_parts(
    x: Tensor,
    parts: Sequence[Tensor],
    names: Sequence[str],
    near: Neighbours | None = None,
    copies: Tensor | None = None,
) -> dict[str, list[float]]:
    """Each measure of the rows (n, d) that each mask (n,) leaves; what isn't defined for one of the parts is left out.

    ``near``: the neighbours in x, searched once for all parts. ``copies`` marks rows that say what an earlier one says:
    TwoNN would measure the rounding between them.
    """
    flat = [name for name in names if name != TWO_NN]
    many = set(names) & set(OF_SPREAD) and min(int(part.sum()) for part in parts) >= 2 * x.shape[1]
    scatters: Iterable[Tensor | None] = _scatters(unit_sized(x), parts) if many else [None] * len(parts)
    read = [shape_of(x[part], flat, scatter) for part, scatter in zip(parts, scatters, strict=True)]
    values = {name: [item[name] for item in read] for name in names if all(name in item for item in read)}
    with contextlib.suppress(DegenerateError, ShapeError):
        if TWO_NN in names:
            near = Neighbours(x, min(LISTED, len(x) - 1)) if near is None else near
            values[TWO_NN] = [float(near.two_nn(part if copies is None else part & ~copies)) for part in parts]
    return {name: values[name] for name in names if name in values}


def readings(
    x: Tensor,
    gaussian: Tensor | Mapping[str, float],
    draw: torch.Generator,
    names: Sequence[str] = AUDITED,
    near: Neighbours | None = None,
    copies: Tensor | None = None,
) -> Iterator[Reading]:
    """Each measure that is defined for these rows. ``gaussian``: points, or what they read; else :func:`of_parts`."""
    group = groups_of(len(x), draw)
    parts = [group >= 0, *(group != g for g in range(GROUPS)), group < GROUPS // 2]
    usual = shape_of(gaussian, names) if isinstance(gaussian, Tensor) else gaussian
    for name, (value, *without, fewer) in of_parts(x, parts, names, near, copies).items():
        half = jackknife(without)
        yield Reading(name, MEASURES[name].title, value, value - half, value + half, usual[name], fewer)


def quantiles(cosines: Tensor, shares: Sequence[float] = SHARES) -> dict[str, float]:
    """Those of the floor, by their share."""
    ends = np.quantile(cosines.numpy(), shares).tolist()  # torch's takes no more than 16 million values
    return {f"{share:g}": end for share, end in zip(shares, ends, strict=True)}


@dataclass(frozen=True)
class Pairs:
    """Vectors (m, d) of the first and of the second text of labelled pairs, and the labels (m,) in float64."""

    first: Tensor
    second: Tensor
    labels: Tensor

    @property
    def binary(self) -> bool:
        """Whether the labels say match or no match, not how alike."""
        return set(self.labels.tolist()) == {0.0, 1.0}

    def changed(self, change: Change) -> Pairs:
        """The same pairs of changed vectors."""
        return Pairs(change(self.first), change(self.second), self.labels)

    def cosines(self, centre: Tensor | float = 0.0) -> Tensor:
        """The cosine of each pair, with ``centre`` subtracted first."""
        return (unit_rows(self.first - centre) * unit_rows(self.second - centre)).sum(-1).double()


def pair_score(cosines: Tensor, labels: Tensor, binary: bool) -> float:
    """The chance that a match is more alike than a pair that is none (AUC); of graded labels Spearman's correlation.

    >>> pair_score(torch.tensor([0.9, 0.2, 0.5, 0.1]), torch.tensor([1.0, 0.0, 0.0, 0.0]), True)
    1.0
    """
    ranks = _ranks(cosines)
    if binary:
        match = labels > 0
        n, others = int(match.sum()), int((~match).sum())
        return float((ranks[match].sum() - n * (n + 1) / 2) / (n * others)) if n and others else math.nan
    return float(torch.corrcoef(torch.stack([ranks, _ranks(labels)]))[0, 1])


def _ranks(x: Tensor) -> Tensor:
    """Ranks from 1; ties share the mean of theirs."""
    ordered = x.sort().values
    below, upto = (torch.searchsorted(ordered, x.contiguous(), right=right) for right in (False, True))
    return (below + upto + 1).double() / 2


def pair_thresholds(pairs: Pairs, x: Tensor, rate: float, draw: torch.Generator) -> Iterator[Match]:
    """Of labelled pairs: the cosine that a share ``rate`` of the pairs labelled 0 passes. ``x``: rows of the audit."""
    wrong, right = (torch.nonzero(pairs.labels == label).flatten() for label in (0, 1))
    least = math.ceil(2 / rate)
    if len(wrong) < least:
        invariant = f"a rate of {rate:g} needs {least} pairs labelled 0 or more"
        fail(InputError, invariant, len(wrong), "Give more such pairs, or a larger false_match_rate.")
    chosen_on, judged_on = wrong[torch.randperm(len(wrong), generator=draw)].chunk(2)
    for name, centre in _clouds(x):
        cosines = pairs.cosines(centre)
        threshold = _upper(cosines[chosen_on], rate)
        passed = _wilson(cosines[judged_on] > threshold)
        recall = _wilson(cosines[right] > threshold)
        yield Match(name, rate, threshold, _percentile(threshold, x - centre, draw), passed, recall)


def query_thresholds(queries: Tensor, x: Tensor, rate: float, draw: torch.Generator) -> Iterator[Match]:
    """Of queries without labels: the cosine that a share ``rate`` of all pairs of a query and a row passes.

    Nearly all such pairs have nothing to do with each other. The interval is a jackknife over groups of queries, since
    each brings many pairs; where none has a false match it ends where the share of such queries may lie.
    """
    if len(queries) < 20:
        fail(InputError, "there must be 20 queries or more", len(queries), "Half of them judge the threshold.")
    wide = torch.promote_types(queries.dtype, x.dtype)  # they may come from a file of another type
    queries, x = queries.to(wide), x.to(wide)
    order = torch.randperm(len(queries), generator=draw)
    chosen_on, judged_on = (half[:QUERIES] for half in order.chunk(2))
    for name, centre in _clouds(x):
        rows = unit_rows(x - centre).mT
        threshold = _upper((unit_rows(queries[chosen_on] - centre) @ rows).flatten().double(), rate)
        each = ((unit_rows(queries[judged_on] - centre) @ rows) > threshold).double().mean(-1)
        group = groups_of(len(each), torch.Generator().manual_seed(0))
        mean, half = float(each.mean()), jackknife([float(each[group != g].mean()) for g in range(GROUPS)])
        high = mean + half if mean else _wilson(each > 0)[2]  # where no query has any
        share = (mean, max(0.0, mean - half), min(1.0, high))
        yield Match(name, rate, threshold, _percentile(threshold, x - centre, draw), share)


def _clouds(x: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield "as they are", torch.zeros_like(x[0])
    yield "centred", x.mean(0)


def check_rate(rate: float) -> float:
    """A rate of false matches lies between 0 and 1."""
    if not is_number(rate) or not 0 < rate < 1:
        fail(InputError, "false_match_rate must lie between 0 and 1", repr(rate), "0.01 lets one of 100 pass.")
    return float(rate)


def _upper(scores: Tensor, rate: float) -> float:
    """The smallest of the scores that no more than a share ``rate`` of them passes."""
    ordered = scores.sort().values
    return float(ordered[math.ceil(len(ordered) * (1 - rate)) - 1])


def _percentile(threshold: float, x: Tensor, draw: torch.Generator) -> float:
    """The percentage of random pairs of rows below the threshold."""
    cosines = pair_cosines(x, *random_pairs(len(x), draw))
    return 100 * float((cosines <= threshold).double().mean())


def _wilson(passed: Tensor) -> tuple[float, float, float]:
    """A share with Wilson's 95% interval."""
    n, share, z = len(passed), float(passed.double().mean()), NORMAL**2
    middle = (share + z / (2 * n)) / (1 + z / n)
    half = NORMAL / (1 + z / n) * math.sqrt(share * (1 - share) / n + z / (4 * n * n))
    return share, max(0.0, middle - half), min(1.0, middle + half)
