"""Numbers of a cloud: measures with 95% intervals, beside those of an isotropic Gaussian; random cosines; thresholds.

A threshold at a rate of false matches is chosen on one half and measured on the other, raw and centred.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from isonb.auditing.unrelated import PAIRS, pair_cosines, random_pairs, unrelated_pairs
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
    their number says less about the model. A dimension near each point (TwoNN) that moves so far says nothing, nor does
    a measure of the spread of fewer than 2 d rows (not ``judged``): it isn't ``steady``, and reports withhold it.
    """

    measure: str
    name: str
    value: float
    low: float
    high: float
    gaussian: float
    fewer: float
    judged: bool = True

    @property
    def steady(self) -> bool:
        """Whether there are rows enough and half of them read the same, within the interval, where that is asked."""
        return self.judged and is_steady(self.measure, self.low, self.high, self.fewer)


def is_steady(measure: str, low: float, high: float, fewer: float) -> bool:
    """Whether ``fewer``, the value of half of the rows, lies within the interval of all; asked of TwoNN alone."""
    return measure != TWO_NN or low <= fewer <= high


@dataclass(frozen=True)
class Layer:
    """The readings of the vectors that one layer gives; layer 0 is the embedding output."""

    number: int
    rows: int
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Match:
    """A threshold chosen at a rate of false matches on one half, and what the other half says of it.

    ``cloud``: the vectors as they are or centred; of queries it says so.

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


def has_rows(x: Tensor, measure: str) -> bool:
    """Whether rows (n, d) are enough for the measure, which is asked of the spread: twice as many as dimensions."""
    return measure not in OF_SPREAD or len(x) >= 2 * x.shape[1]


def parts_of(group: Tensor) -> list[Tensor]:
    """Masks of what is read: all rows, all but each group, and half of them."""
    return [group >= 0, *(group != g for g in range(GROUPS)), group < GROUPS // 2]


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
    parts = parts_of(groups_of(len(x), draw))
    usual = shape_of(gaussian, names) if isinstance(gaussian, Tensor) else gaussian
    for name, (value, *without, fewer) in of_parts(x, parts, names, near, copies).items():
        half = jackknife(without)
        judged = has_rows(x, name)
        yield Reading(name, MEASURES[name].title, value, value - half, value + half, usual[name], fewer, judged)


def quantiles(cosines: Tensor, shares: Sequence[float] = SHARES) -> dict[str, float]:
    """Those of the floor, by their share."""
    ends = np.quantile(cosines.numpy(), shares).tolist()  # torch's takes no more than 16 million values
    return {f"{share:g}": end for share, end in zip(shares, ends, strict=True)}


@dataclass(frozen=True)
class Pairs:
    """Vectors (m, d) of the first and of the second text of labelled pairs, and the labels (m,) in float64.

    ``group`` (m,): pairs of one group aren't independent, see :func:`groups_of_pairs`.
    """

    first: Tensor
    second: Tensor
    labels: Tensor
    group: Tensor

    @property
    def binary(self) -> bool:
        """Whether the labels say match or no match, not how alike."""
        return set(self.labels.tolist()) == {0.0, 1.0}

    def changed(self, change: Change) -> Pairs:
        """The same pairs of changed vectors."""
        return replace(self, first=change(self.first), second=change(self.second))

    def part(self, mask: Tensor) -> Pairs:
        """Some of them."""
        return Pairs(self.first[mask], self.second[mask], self.labels[mask], self.group[mask])

    def cosines(self, centre: Tensor | float = 0.0) -> Tensor:
        """The cosine of each pair, with ``centre`` subtracted first."""
        return (unit_rows(self.first - centre) * unit_rows(self.second - centre)).sum(-1).double()


def groups_of_pairs(first: Sequence[Hashable], second: Sequence[Hashable]) -> Tensor:
    """The group (m,) of each pair: pairs that share a text, or are joined by others that do, are in one.

    Where such chains join more than a tenth of all pairs, pairs with the same first text are in one, as of a query.

    >>> groups_of_pairs("aabcdefghijk", "xyxzqrstuvwp").tolist()
    [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    root: dict[Hashable, Hashable] = {}

    def find(text: Hashable) -> Hashable:
        while root.setdefault(text, text) != text:
            root[text] = text = root[root[text]]
        return text

    for one, other in zip(first, second, strict=True):
        root[find(one)] = find(other)
    for names in ([find(text) for text in first], first):
        number = {name: i for i, name in enumerate(dict.fromkeys(names))}
        group = torch.tensor([number[name] for name in names])
        if int(group.bincount().max()) <= max(1, len(group) / GROUPS):
            break
    return group


def first_half(group: Tensor, draw: torch.Generator) -> Tensor:
    """Masks (m,) pairs of a random half of the groups; of one group a half of its pairs."""
    group = torch.unique(group, return_inverse=True)[1]
    group = group if bool(group.any()) else torch.arange(len(group))
    n = int(group.max()) + 1
    return torch.randperm(n, generator=draw)[group] < n / 2


def parts_of_pairs(group: Tensor) -> list[Tensor]:
    """Masks of pairs (m,): all, and all but each tenth of the groups; all alone where there are fewer than ten."""
    group = torch.unique(group, return_inverse=True)[1]
    n = int(group.max()) + 1
    tenth = groups_of(n, torch.Generator().manual_seed(0))[group]
    return parts_of(tenth)[:-1] if n >= GROUPS else [tenth >= 0]


def share_of(passed: Tensor, group: Tensor) -> tuple[float, float, float]:
    """The share of pairs (m,) that passed, with a 95% interval: Wilson's where each pair is a group of its own.

    Otherwise by a jackknife over groups; where none or all pass, Wilson's of the groups. Fewer than ten say nothing.

    >>> share_of(torch.arange(40) % 4 == 0, torch.arange(40) // 20)
    (0.25, 0.0, 1.0)
    """
    number = torch.unique(group, return_inverse=True)[1]
    share, *without = (float(passed[part].double().mean()) for part in parts_of_pairs(group))
    if not without:
        return share, 0.0, 1.0
    if len(group) == int(number.max()) + 1:
        return _wilson(passed)
    if 0 < share < 1:
        half = jackknife(without)
        return share, max(0.0, share - half), min(1.0, share + half)
    return _wilson(torch.full((int(number.max()) + 1,), bool(share)))


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
    choosing = first_half(pairs.group[wrong], draw)
    chosen_on, judged_on = wrong[choosing], wrong[~choosing]
    for name, centre in _clouds(x):
        cosines = pairs.cosines(centre)
        threshold = _upper(cosines[chosen_on], rate)
        passed = share_of(cosines[judged_on] > threshold, pairs.group[judged_on])
        recall = share_of(cosines[right] > threshold, pairs.group[right])
        yield Match(name, rate, threshold, _percentile(threshold, x - centre, draw), passed, recall)


def query_thresholds(queries: Tensor, x: Tensor, rate: float, draw: torch.Generator) -> Iterator[Match]:
    """Of queries without labels: the cosine that a share ``rate`` of unrelated pairs of a query and a row passes.

    Which pairs are unrelated is told as of two rows; where it can't be told there is no threshold. Pairs of one query
    are a group.
    """
    if len(queries) < 20:
        fail(InputError, "there must be 20 queries or more", len(queries), "Half of them judge the threshold.")
    wide = torch.promote_types(queries.dtype, x.dtype)  # they may come from a file of another type
    chosen = torch.randperm(len(queries), generator=draw)[: 2 * QUERIES]
    both = torch.cat([queries[chosen].to(wide), x.to(wide)])
    m = len(chosen)
    query, row = torch.randint(m, (PAIRS,), generator=draw), m + torch.randint(len(x), (PAIRS,), generator=draw)
    known, apart = unrelated_pairs(both, query, row, pair_cosines(both, query, row), draw)
    if not known.certain:
        return
    query, row = query[apart], row[apart]
    judging = query >= m // 2
    for name, centre in _clouds(both[m:]):
        cosines = pair_cosines(both - centre, query, row)
        threshold = _upper(cosines[~judging], rate)
        share = share_of(cosines[judging] > threshold, query[judging])
        yield Match(f"of queries, {name}", rate, threshold, _percentile(threshold, both[m:] - centre, draw), share)


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
