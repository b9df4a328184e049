"""What would help: transforms fitted on one half of the rows and judged on the other, and the code for what to do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from isonb.auditing.defects import SEARCH_P, SHIFTED, USED
from isonb.auditing.measured import GROUPS, Change, Pairs, groups_of, jackknife, pair_score, parts_of_pairs
from isonb.auditing.unrelated import stands_out
from isonb.errors import DegenerateError, FitWarning
from isonb.measures.registry import MEASURES
from isonb.runtime.told import between
from isonb.transforms import AllButTheTop, PartialWhitening, ZeroMean
from isonb.transforms.base import AffineTransform
from isonb.transforms.graded import SingularDecay

CENTRING = "centring"
MEAN_COSINE, ISOSCORE_U = MEASURES["mean_cosine"], MEASURES["isoscore_unbiased"]

Numbers = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Remedy:
    """A transform fitted on one half of the rows and judged on the other.

    ``before`` and ``after``: readings of the other half. ``gain``: of the score of labelled pairs, with its 95%
    interval, or None. ``verdict``: what to expect of it, in words.
    """

    name: str
    code: str
    before: Numbers
    after: Numbers
    verdict: str
    gain: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class _Fitted:
    name: str
    code: str
    change: Change
    already: str = ""  # what of its aim the vectors have before it is tried

    @property
    def reshapes(self) -> bool:
        """Whether it is to make the spread rounder, so that an interval of that is asked for."""
        return not self.already and self.name != CENTRING


def remedies(x: Tensor, draw: torch.Generator, pairs: Pairs | None = None, *, shape: bool = True) -> tuple[Remedy, ...]:
    """Centring, all-but-the-top, whitening in part and SoftDecay: what each does to rows that it wasn't fitted on.

    With ``shape=False`` nothing is said of the shape, of which too few rows tell nothing.
    """
    order = torch.randperm(len(x), generator=draw)
    fitting, judging = (x[half.sort().values] for half in order.chunk(2))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # few rows are told of by the audit itself
            group = groups_of(len(judging), draw)
            tried = list(_fitted(fitting, judging))
            judged = shape and any(remedy.reshapes for remedy in tried)
            before = _roundness(judging, group if judged else None)
            return tuple(_judged(remedy, judging, group, before, pairs, shape) for remedy in tried)
    except DegenerateError:  # all rows of a half are the same
        return ()


def candidates(x: Tensor) -> tuple[tuple[str, str, AffineTransform], ...]:
    """Each remedy for rows like x (n, d): its name, the same as Python, and not yet fitted."""
    k, n = stands_out(x), len(x)  # SoftDecay for as many rows as it is judged with
    return (
        (CENTRING, "isonb.ZeroMean()", ZeroMean()),
        (f"all-but-the-top, k = {k}", f"isonb.AllButTheTop(D={k})", AllButTheTop(D=k)),
        ("whitening in part", f"isonb.PartialWhitening(p={SEARCH_P})", PartialWhitening(p=SEARCH_P)),
        ("SoftDecay", f"isonb.SingularDecay(rows={n})", SingularDecay(rows=n)),
    )


def _fitted(x: Tensor, other: Tensor) -> Iterator[_Fitted]:
    is_round = "the spread is round already" if float(ISOSCORE_U(other)) >= USED else ""
    near = "the mean is near zero already" if float(MEAN_COSINE(other)) <= SHIFTED else ""
    for name, code, transform in candidates(x):
        already = near if name == CENTRING else is_round
        if name.endswith("k = 0"):
            already = already or "no direction stands out, so only the mean goes"
        yield _Fitted(name, code, transform.fit(x).transform, already)


def _roundness(x: Tensor, group: Tensor | None) -> list[float]:
    """IsoScore-U of all rows and, where there are groups, without each."""
    parts = [] if group is None else [group != g for g in range(GROUPS)]
    return [float(ISOSCORE_U(rows)) for rows in (x, *(x[part] for part in parts))]


def _judged(
    remedy: _Fitted, x: Tensor, group: Tensor, before: Sequence[float], pairs: Pairs | None, shape: bool
) -> Remedy:
    changed = remedy.change(x)
    after = _roundness(changed, group if shape and remedy.reshapes else None)
    rise, *without = (new - old for old, new in zip(before, after, strict=False))
    old, new = (
        ((MEAN_COSINE.title, float(MEAN_COSINE(y))), (ISOSCORE_U.title, score[0]))
        for y, score in ((x, before), (changed, after))
    )
    gain = None if pairs is None else gain_of(remedy.change, pairs)
    messages = [] if gain is None else [_gain_text(gain)]
    messages += [_shape_text(remedy, old[0][1] - new[0][1], rise, without)] if shape else []
    return Remedy(remedy.name, remedy.code, old, new, "; ".join(messages) or "too few rows to judge", gain)


def _shape_text(remedy: _Fitted, fall: float, rise: float, without: list[float]) -> str:
    if remedy.already:
        return remedy.already
    if remedy.name == CENTRING:
        return f"random cosines fall by {fall:.2f}; the spread can't change"
    half = jackknife(without)
    if rise - half > 0:
        return f"rounder by {between(rise, rise - half, rise + half)}"
    return "less round" if rise + half < 0 else "no rounder on other rows"


def gain_of(change: Change, pairs: Pairs) -> tuple[float, float, float]:
    """How much the score of the pairs rises, by a jackknife over groups of pairs; no interval of fewer than ten."""
    cosines = pairs.cosines(), pairs.changed(change).cosines()

    def rise(part: Tensor) -> float:
        old, new = (pair_score(remedy[part], pairs.labels[part], pairs.binary) for remedy in cosines)
        return new - old

    value, *without = map(rise, parts_of_pairs(pairs.group))
    half = jackknife(without) if without else math.nan
    return value, value - half, value + half


def _gain_text(gain: tuple[float, float, float]) -> str:
    """The verdict, with as many digits as show on which side of 0 both ends are.

    >>> _gain_text((-0.0031, -0.0058, -0.0004))
    'harms: score -0.0031 (-0.0058 to -0.0004)'
    """
    value, low, high = gain
    if math.isnan(high):  # few groups, or a tenth of them holds all of one label
        return f"score {value:+.3f}, too few pairs of one label that share no text for an interval"
    word = "helps" if low > 0 else "harms" if high < 0 else "no clear change"
    digits = next((n for n in (3, 4, 5) if round(low, n) and round(high, n)), 3)
    return f"{word}: score {between(*gain, digits, '+')}"


def score_text(pairs: Pairs | None) -> str:
    """What the verdicts stand on."""
    if pairs is None:
        return "Only labelled pairs tell whether any of this helps a task: isotropy is no score."
    name = "AUC" if pairs.binary else "Spearman"
    score = pair_score(pairs.cosines(), pairs.labels, pairs.binary)
    messages = f"The score is {name} over {len(pairs.labels):,} pairs: {score:.3f} as they are."
    return f"{messages} Pairs may hold rows that a remedy was fitted on."
