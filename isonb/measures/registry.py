"""Every number that is taken of a cloud, under one name: what it is called, what it may be and what it sees.

The records of the lab, the audit, the monitor, the torchmetrics classes and the command line read this list, so that
a name means one number wherever it stands. A new entry is measured by all of them; records that are there stay as they
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from isonb.barcodes.entropy import persistent_entropy
from isonb.barcodes.rips import h0_barcode
from isonb.checks import strict, validated
from isonb.errors import InputError, ShapeError, fail
from isonb.measures.cosine import cls_uniformity, mean_cosine, token_uniformity
from isonb.measures.isoscore import isoscore, isoscore_star, participation_ratio
from isonb.measures.neighbors import two_nn
from isonb.measures.offset import common_mean, largest_share, mean_norm, relative_spread
from isonb.measures.rank import effective_number, power_law, usual_first_rank
from isonb.measures.spectrum import anisotropy, singular_values, spectral_median, spectral_skewness
from isonb.measures.uniformity import rbf_uniformity
from isonb.numerics.rows import centered

ZETA = 0.2  # weight of the shrinkage matrix in isoscore_star
LEADING = 3  # directions whose shares are measured


def _points(x: Tensor) -> Tensor:
    return x


@dataclass(frozen=True)
class Measure:
    """One number of a cloud of points (n, d): calling it gives the number.

    Args:
        name: the key in records, logs and rules, such as "mean_cosine".
        title: the name in reports and tables.
        low: the least that it can be.
        high: the most that it can be.
        sees: what of a cloud changes it, in a clause.
        read: the function, of what ``source`` makes of the points.
        source: what several measures are read from, such as the shares of the directions, computed once for all.
    """

    name: str
    title: str
    low: float
    high: float
    sees: str
    read: Callable[[Tensor], Tensor]
    source: Callable[[Tensor], Tensor] = _points

    def __call__(self, x: Tensor) -> Tensor:
        """The measure of points (n, d). InputError where it isn't defined for them."""
        return self.read(self.source(x))

    @property
    def range(self) -> str:
        """The ends in words.

        >>> MEASURES["mean_cosine"].range, MEASURES["two_nn"].range, TOKEN_MEASURES["spectral_skewness"].range
        ('-1 to 1', '0 up', 'any')
        """
        if math.isinf(self.low):
            return "any"
        return f"{self.low:g} up" if math.isinf(self.high) else f"{self.low:g} to {self.high:g}"


def _all_shares(x: Tensor, center: bool) -> Tensor:
    return anisotropy(x, min(x.shape), center=center)


_RAW, _CENTRED = partial(_all_shares, center=False), partial(_all_shares, center=True)


def _nth(shares: Tensor, j: int, together: bool) -> Tensor:
    """The share of direction j, or of the first j together."""
    if len(shares) < j:
        fail(ShapeError, f"there must be {j} directions", len(shares), "Pass more points or dimensions.")
    return (shares.cumsum(-1) if together else shares)[j - 1]


def _effective_rank(shares: Tensor) -> Tensor:
    """:func:`isonb.effective_rank` from shares of squared length."""
    lengths = shares.sqrt()
    return effective_number(lengths / lengths.sum(), 1.0)


def _decay(shares: Tensor) -> Tensor:
    """:func:`isonb.alpha_req` from shares of variance: the first rank of the fit is the same, without its warning."""
    return power_law(shares, usual_first_rank(len(shares)))


def _over_the_most(bars: Tensor) -> Tensor:
    """The persistent entropy over the logarithm of the number of bars."""
    if len(bars) < 2:
        fail(ShapeError, "there must be at least 2 bars", len(bars), "Pass 3 points or more.")
    return persistent_entropy(bars) / math.log(len(bars))


def _shares() -> Iterable[Measure]:
    for ending, word, source in (("", "raw", _RAW), ("_centered", "centred", _CENTRED)):
        square = "squared length" if word == "raw" else "variance"
        for j in range(1, LEADING + 1):
            name, sees = f"anisotropy_{j}{ending}", f"{square} in leading direction {j}"
            yield Measure(name, f"A{j} {word}", 0, 1, sees, partial(_nth, j=j, together=False), source)
        for j in range(1, LEADING + 1):
            name, sees = (f"explained_variance_{j}{ending}", f"{square} in the first {j} directions")
            yield Measure(name, f"EV{j} {word}", 0, 1, sees, partial(_nth, j=j, together=True), source)


_ANY = (-math.inf, math.inf)
_UP = math.inf
_UNBIASED = "the same, right on average in a small sample"
_MIXED = f"IsoScore rescaled: {ZETA:g} of the identity is in it"
_SHORT_TOO = "how many directions are used, short ones too"
_BESIDE_FIRST = "the variance beside that of the first direction"
_ANY_COUNT = "the same for any number of points"
_PR_UNBIASED = partial(participation_ratio, unbiased=True)
_ENTRIES = (
    Measure("isoscore", "IsoScore", 0, 1, "how even the variance is; low in a small sample", isoscore),
    Measure("isoscore_unbiased", "IsoScore-U", 0, _UP, _UNBIASED, partial(isoscore, unbiased=True)),
    Measure("isoscore_star", "IsoScore*", 0, 1, _MIXED, partial(isoscore_star, zeta=ZETA)),
    Measure("participation_ratio", "participation ratio", 1, _UP, "how many directions are used", participation_ratio),
    Measure("participation_ratio_unbiased", "participation ratio, unbiased", 1, _UP, _UNBIASED, _PR_UNBIASED),
    Measure("effective_rank", "effective rank", 1, _UP, _SHORT_TOO, _effective_rank, _RAW),
    Measure("nesum", "NESum", 1, _UP, _BESIDE_FIRST, partial(effective_number, order=math.inf), _CENTRED),
    Measure("alpha_req", "alpha-ReQ", 0, _UP, "how fast the variances decay from the eleventh on", _decay, _CENTRED),
    Measure("mean_cosine", "mean cosine", -1, 1, "a direction that all points share", mean_cosine),
    Measure(
        "mean_cosine_centered", "mean cosine centred", -1, 1, "the same once the mean is gone", mean_cosine, centered
    ),
    Measure("rbf_uniformity", "RBF uniformity", -8, 0, "whether directions fill the sphere", rbf_uniformity),
    Measure("mean_norm", "length of the mean", 0, 1, "how far the cloud lies from the origin", mean_norm),
    Measure("common_mean", "common mean", 0, 1, "the share of the squared length in the mean", common_mean),
    Measure("relative_spread", "relative spread", 0, 1, "whether points differ at all", relative_spread),
    Measure("largest_share", "largest share", 0, 1, "one coordinate that drowns the others", largest_share),
    *_shares(),
    Measure("two_nn", "TwoNN dimension", 0, _UP, "the dimension near each point", two_nn),
    Measure(
        "persistent_entropy", "persistent entropy", 0, _UP, "how even the gaps are", persistent_entropy, h0_barcode
    ),
    Measure("persistent_entropy_normalized", "entropy of the barcode", 0, 1, _ANY_COUNT, _over_the_most, h0_barcode),
)
#: The measures of a cloud by name.
MEASURES: dict[str, Measure] = {measure.name: measure for measure in _ENTRIES}

#: Measures of the token matrix of a sentence, which are averaged over sentences, or read off all their singular values.
TOKEN_MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("spectral_skewness", "skewness", *_ANY, "few large values", spectral_skewness, singular_values),
        Measure("spectral_median", "median", 0, 1, "the middle over the largest", spectral_median, singular_values),
        Measure("token_uniformity", "TokenUni", -1, 1, "how alike the tokens of a sentence are", token_uniformity),
        Measure("cls_uniformity", "[CLS] uniformity", -1, 1, "how alike the tokens are to the first", cls_uniformity),
    )
}


def titles(*names: str) -> dict[str, str]:
    """The titles of some measures, of a cloud or of tokens, by name.

    >>> titles("isoscore_star", "token_uniformity")
    {'isoscore_star': 'IsoScore*', 'token_uniformity': 'TokenUni'}
    """
    known = MEASURES | TOKEN_MEASURES
    return {name: known[name].title for name in names}


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


@validated
@torch.no_grad()
def measure_all(x: Tensor, names: Iterable[str] | None = None) -> dict[str, float | None]:
    """Measures of points (n, d) by name, all of them or some; None where one isn't defined for these points.

    >>> values = measure_all(torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]]), ["isoscore", "two_nn"])
    >>> {name: round(value, 6) for name, value in values.items()}
    {'isoscore': 0.551724, 'two_nn': 3.0}
    """
    selected = [MEASURES[name] for name in (MEASURES if names is None else names)]
    sources = {measure.source: attempt(measure.source, x) for measure in selected}
    read = {
        item.name: None if sources[item.source] is None else attempt(item.read, sources[item.source])
        for item in selected
    }
    return {name: None if value is None else float(value) for name, value in read.items()}
