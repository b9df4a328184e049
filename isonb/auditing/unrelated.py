"""Which random pairs of rows are unrelated. The floor of scores is a quantile of theirs, not of a mixture with others.

Each row is moved to the mean of itself and its nearest rows, which takes out most of its noise. Two rows of a cluster
are then near each other and all others are far, with a gap between (a valley of the histogram). Where there is no gap,
the cloud is held beside a Gaussian with its mean and covariance, which has no clusters: if no more pairs are near, and
the cosines end at the same place, nothing seems related. Otherwise the floor is withheld, with the ends between which
it lies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from isonb.errors import DegenerateError
from isonb.measures.isoscore import participation_ratio
from isonb.measures.neighbors import knn
from isonb.measures.rank import effective_rank
from isonb.numerics.rows import unit_rows
from isonb.runtime.told import fine

PAIRS = 100_000  # random pairs behind the quantiles of the cosine
K = 10  # rows that a local mean takes in
BINS = 60
DEEP = 1 / 3  # of the lower of both peaks: a valley
LEAST, REST = 5e-4, 0.02  # shares of the pairs below and above a valley
FEW = 20.0  # pairs a bin, below which a peak may be chance
TOLERANCE = 0.03  # of a cosine: what a floor may be wrong by
NEAR, MORE = 0.01, 2.0  # a share of the Gaussian's pairs, and how many times that share is no more than chance
MANY = 0.4  # share of related pairs that one long direction makes, too: two rows are on one side of it or on both
WIDER = 1.15  # times the Gaussian's spread of distances that is no more than chance
TOP = 0.99  # the quantile that is called the floor
GAP = 1.5  # ratio of neighbouring eigenvalues from which the directions before it stand out
MOST = 20  # directions that may stand out
DIRECTIONS = 20  # in fewer of them clusters overlap, and no gap between pairs is to be trusted
WIDE = 4096  # dimensions above which no covariance is computed


@dataclass(frozen=True)
class Unrelated:
    """What is known of the cosine of two unrelated rows.

    ``related``: the share of random pairs that seem related, or None where that can't be told. ``low`` and ``high``:
    the ends between which the floor lies, the quantile 0.99 of unrelated pairs; both are it where it could be told.
    ``reason``: why.
    """

    related: float | None
    low: float
    high: float
    reason: str

    @property
    def certain(self) -> bool:
        """Whether the floor could be told."""
        return self.related is not None

    @property
    def why(self) -> str:
        """The reason as the end of a sentence."""
        if self.related is None:
            ends = f"between {fine(self.low, 2)} and {fine(self.high, 2)}"
            return f"{self.reason}: the floor lies {ends}."
        if not self.related:
            return f"which 1% of random pairs pass; {self.reason}."
        return f"which 1% of unrelated pairs pass; {self.related:.1%} of random pairs seem related, as {self.reason}."

    def __str__(self) -> str:
        if self.related is None:
            return f"The floor is withheld, since {self.why} Labelled pairs would tell."
        return f"The floor is {fine(self.high, 2)}, {self.why}"


def unrelated_pairs(
    x: Tensor,
    first: Tensor,
    second: Tensor,
    cosines: Tensor,
    draw: torch.Generator,
    nearest: Tensor | None = None,
) -> tuple[Unrelated, Tensor]:
    """What is known of unrelated rows of x (n, d), and which of the pairs (m,), with their cosines, are unrelated.

    Where that can't be told all are marked. ``nearest`` (n, k): the nearest rows of each by cosine, if they are known.

    >>> draw = torch.Generator().manual_seed(0)
    >>> topics = torch.randn(20, 64, generator=draw).repeat(40, 1) + 0.5 * torch.randn(800, 64, generator=draw)
    >>> first, second = random_pairs(800, draw, 20_000)
    >>> known, mask = unrelated_pairs(topics, first, second, pair_cosines(topics, first, second), draw)
    >>> round(known.related, 2), bool((mask == (first % 20 != second % 20)).all())
    (0.05, True)
    """
    distance = _local_distances(x, first, second, nearest)
    every = torch.ones_like(distance, dtype=torch.bool)
    top = _top(cosines)
    far = min(top, _top(cosines[distance >= _mode(distance)]))
    cuts = list(_cuts(distance))
    if x.shape[1] <= WIDE and _few_directions(x):
        low = min([far, *(_top(cosines[distance > cut[2]]) for cut in cuts)])
        return Unrelated(None, low, top, "clusters overlap in so few directions"), every
    if cuts:
        floors = [_top(cosines[distance > end]) for cut in cuts for end in cut]
        if max(floors) - min(floors) > TOLERANCE:
            return Unrelated(None, min(floors), top, "rows are alike on several levels"), every
        mask = distance > cuts[0][1]
        floor = _top(cosines[mask])
        share = float((~mask).double().mean())
        if share > MANY and x.shape[1] <= WIDE and any(_cuts(_local_distances(gaussian_like(x, draw), first, second))):
            return Unrelated(None, min(floors), top, "one direction alone makes rows alike"), every
        return Unrelated(share, floor, floor, "they lie in one cluster of neighbours"), mask
    if top - far <= TOLERANCE or _is_gaussian(x, first, second, distance, top, draw):
        return Unrelated(0.0, top, top, "the rows form no clusters"), every
    return Unrelated(None, far, top, "related pairs pass into unrelated ones without a gap"), every


def _few_directions(x: Tensor) -> bool:
    """Whether the effective rank is low. It is never below the participation ratio, which costs a third."""
    try:
        return all(float(rank(x)) < DIRECTIONS for rank in (participation_ratio, partial(effective_rank, center=True)))
    except DegenerateError:  # all rows are the same
        return True


def _top(cosines: Tensor) -> float:
    return float(np.quantile(cosines.numpy(), TOP))  # by numpy, whose sort is the faster


def _local_distances(x: Tensor, first: Tensor, second: Tensor, nearest: Tensor | None = None) -> Tensor:
    """Squared distances of pairs of rows, each moved to the mean of its neighbourhood on the sphere."""
    unit = unit_rows(x)
    k = max(1, min(K, len(x) // 10))
    index = knn(unit, k)[1] if nearest is None else nearest
    local = unit.clone()
    for column in index[:, :k].unbind(-1):
        local += unit.index_select(0, column)  # three times as fast as unit[column]
    local /= k + 1
    return _over_pairs(lambda a, b: a.sub_(b).square_().sum(-1), local, first, second)


def random_pairs(n: int, draw: torch.Generator, count: int = PAIRS) -> tuple[Tensor, Tensor]:
    """The numbers of two different random rows of n, ``count`` times."""
    first = torch.randint(n, (count,), generator=draw)
    return first, (first + torch.randint(1, n, (count,), generator=draw)) % n


def pair_cosines(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The cosine of each pair of rows of x (n, d)."""
    return _over_pairs(lambda a, b: a.mul_(b).sum(-1), unit_rows(x), first, second)


def _over_pairs(number: Callable[[Tensor, Tensor], Tensor], x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """A number of each pair of rows in float64, as many coordinates at a time as the cache holds."""
    step = max(1, 2**17 // x.shape[1])
    pairs = zip(torch.split(first, step), torch.split(second, step), strict=True)
    return torch.cat([number(*(x.index_select(0, part) for part in pair)) for pair in pairs]).double()


def _histogram(distance: Tensor) -> tuple[Tensor, float, float]:
    """Counts, smoothed over neighbouring bins, the lower end and the width of a bin."""
    low, high = float(distance.min()), float(distance.max())
    counts = torch.histc(distance, BINS, low, high)
    ends = torch.cat([counts[:1], counts, counts[-1:]])
    return (ends[:-2] + 2 * ends[1:-1] + ends[2:]) / 4, low, (high - low) / BINS


def _mode(distance: Tensor) -> float:
    counts, low, width = _histogram(distance)
    return low + width * (int(counts.argmax()) + 0.5)


def _cuts(distance: Tensor) -> Iterator[tuple[float, float, float]]:
    """For each valley of the histogram a cut before, at and behind its lowest place, from the left."""
    counts, low, width = _histogram(distance)
    if not width:
        return
    before, behind = counts.cummax(0).values, counts.flip(0).cummax(0).values.flip(0)
    peak = torch.minimum(before, behind)
    below = counts.cumsum(0) / counts.sum()
    valley = (counts <= DEEP * peak) & (peak >= FEW) & (below >= LEAST) & (1 - below >= REST)
    places = valley.nonzero().flatten().tolist()
    runs = (
        [place for _, place in run] for _, run in itertools.groupby(enumerate(places), lambda pair: pair[1] - pair[0])
    )
    for run in runs:
        lowest = [place for place in run if counts[place] == counts[run].min()]
        middle = low + width * (lowest[len(lowest) // 2] + 0.5)
        yield middle - width, middle, middle + width


def stands_out(x: Tensor) -> int:
    """How many principal directions stand before the largest gap of the spectrum; 0 where there is no gap.

    >>> ball = torch.randn(400, 8, generator=torch.Generator().manual_seed(0))
    >>> stands_out(ball), stands_out(ball * torch.tensor([9.0, 9.0, 1, 1, 1, 1, 1, 1]))
    (0, 2)
    """
    values = torch.linalg.eigvalsh(torch.cov(x.double().mT)).flip(-1).clamp_min(0)
    most = max(1, min(MOST, len(values) // 4, len(x) // 2 - 1))
    ratio = values[:most] / values[1 : most + 1].clamp_min(1e-12 * float(values[0]))
    return int(ratio.argmax()) + 1 if float(ratio.max()) >= GAP else 0


def _is_gaussian(x: Tensor, first: Tensor, second: Tensor, distance: Tensor, top: float, draw: torch.Generator) -> bool:
    """Whether the pairs are no nearer and no more alike than those of a Gaussian with this mean and covariance."""
    if x.shape[1] > WIDE or stands_out(x):  # clusters make directions that stand out
        return False
    other = gaussian_like(x, draw)
    usual = _local_distances(other, first, second)
    if float((distance < usual.quantile(NEAR)).double().mean()) > MORE * NEAR or distance.std() > WIDER * usual.std():
        return False
    return top - _top(pair_cosines(other, first, second)) <= TOLERANCE / 2


def gaussian_like(x: Tensor, draw: torch.Generator) -> Tensor:
    """Rows of a Gaussian with the mean and the covariance of x (n, d).

    >>> x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    >>> y = gaussian_like(x, torch.Generator().manual_seed(0))
    >>> bool((y[:, 1] - 2 * y[:, 0]).abs().max() < 1e-5)
    True
    """
    n, d = x.shape
    mean = x.double().mean(0)
    rows = x.double() - mean
    drawn = torch.randn(n, min(n, d), generator=draw, dtype=rows.dtype)
    if d > n:
        around = drawn @ rows / max(1, n - 1) ** 0.5
    else:
        values, axes = torch.linalg.eigh(torch.cov(rows.mT))
        around = drawn * values.clamp_min(0).sqrt() @ axes.mT
    sample: Tensor = (around + mean).to(x.dtype)
    return sample
