"""What a handful of seeds can show: summaries, exact tests, and a verdict by a fixed rule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats as scipy_stats

from isonb.lab.statistics.intervals import (
    DRAWS,
    Array,
    Interval,
    StatsError,
    bootstrap,
    finite,
    pieces,
)

__all__ = ["Summary", "Verdict", "dz", "holm", "sign_flip", "student", "summary", "verdict"]

ALTERNATIVES = ("two-sided", "greater", "less")
EXACT = 20  # differences up to which every sign pattern is counted: about a million sums
MANY = 20  # seeds from which the bootstrap's interval decides; below, Student's
FEWEST = 3


@dataclass(frozen=True)
class Summary:
    """Number, mean, standard deviation (n - 1; None for one value), smallest and largest."""

    n: int
    mean: float
    std: float | None
    min: float
    max: float


@dataclass(frozen=True)
class Verdict:
    """``outcome``: "holds", "does not" or "not testable here", with its ``reason``; None where nothing was tested."""

    outcome: str
    reason: str
    interval: Interval | None
    p: float | None
    dz: float | None


def summary(values: ArrayLike) -> Summary:
    """Mean, standard deviation and range of at least one finite number.

    >>> summary([1.0, 2.0, 4.0]).mean, summary([1.0]).std
    (2.333..., None)
    """
    x = finite(values, "values", 1)
    std = float(x.std(ddof=1)) if len(x) > 1 else None
    return Summary(len(x), float(x.mean()), std, float(x.min()), float(x.max()))


def student(values: ArrayLike, *, level: float = 0.95) -> Interval:
    """Student's interval of the mean: exact for normal values however few. At least 2 values."""
    x = finite(values, "values", 2)
    if not 0 < level < 1:
        raise StatsError(f"level must be between 0 and 1; got {level}. Pass 0.95 for a 95% interval.")
    half = float(scipy_stats.t.ppf((1 + level) / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x)))
    return Interval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, level, len(x), "student")


def dz(values: ArrayLike) -> float:
    """Cohen's d_z of paired differences, mean / standard deviation (n - 1).

    The limit for equal differences is signed infinity, and 0 when all are 0.
    """
    x = finite(values, "values", 2)
    if _constant(x):
        return math.copysign(math.inf, x.mean()) if x.mean() else 0.0
    return float(x.mean() / x.std(ddof=1))


def sign_flip(values: ArrayLike, alternative: str = "two-sided", *, draws: int = DRAWS, seed: int = 0) -> float:
    """p-value of "the differences are symmetric about 0": the share of sign patterns with a sum as far out as ours.

    All 2^n patterns are counted up to n = 20; beyond, ``draws`` random ones (ours counted among them). The smallest
    possible value is 2 / 2^n two-sided, 1 / 2^n one-sided: 0.0625 and 0.03125 for five seeds.

    >>> sign_flip([0.1, 0.2, 0.3, 0.1, 0.2]), sign_flip([0.1, 0.2, 0.3, 0.1, 0.2], "greater")
    (0.0625, 0.03125)
    """
    x = finite(values, "values", 1)
    if alternative not in ALTERNATIVES:
        known = ", ".join(ALTERNATIVES)
        raise StatsError(f"alternative must be one of {known}; got {alternative!r}. Name one of them.")
    x = -x if alternative == "less" else x
    sums = _signed_sums(x) if len(x) <= EXACT else _random_sums(x, draws, seed)
    ours = x.sum()
    if alternative == "two-sided":
        sums, ours = np.abs(sums), abs(ours)
    count = int((sums >= ours - 1e-12 * np.abs(x).sum()).sum())  # rounding must not split ties
    return count / len(sums) if len(x) <= EXACT else (count + 1) / (len(sums) + 1)


def _signed_sums(x: Array) -> Array:
    sums = np.zeros(1)
    for value in x:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(x: Array, draws: int, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    sums: Array = np.concatenate([generator.choice([-1.0, 1.0], (n, len(x))) @ x for n in pieces(draws, len(x))])
    return sums


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values of a family of tests, under the same names and in the same order.

    Rejecting what is at most alpha keeps the chance of any false rejection at alpha, whatever the dependence.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    p = finite(list(p_values.values()), "p-values", 1)
    if p.min() < 0 or p.max() > 1:
        raise StatsError(f"p-values must lie in [0, 1]; got {p.min()} to {p.max()}. Pass unadjusted p-values.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return dict(zip(p_values, adjusted.tolist(), strict=True))


def verdict(
    values: ArrayLike, claim: str = "greater", *, margin: float = 0.0, level: float = 0.95, seed: int = 0
) -> Verdict:
    """Whether paired differences (ours - baseline, one a seed) bear out a claim about their mean.

    The rule, fixed before looking: "holds" if the two-sided interval of the mean lies wholly on the claimed side of
    ``margin`` ("greater": above it, "less": below -margin); "does not" otherwise; "not testable here" with fewer than
    3 seeds, or when all differences are equal, since then the seeds varied nothing. The interval is Student's below
    20 seeds, where bootstrap intervals are too short, and the expanded bootstrap from 20. ``p`` is the one-sided
    sign-flip test of the same claim; it informs and doesn't decide. "does not" says that these runs don't show it;
    ``reason`` tells an interval on the other side from one that leaves both open.
    """
    if claim not in ("greater", "less"):
        raise StatsError(f"claim must be greater or less; got {claim!r}. Name one of them.")
    if not (math.isfinite(margin) and margin >= 0):
        raise StatsError(f"margin must be a finite number >= 0; got {margin}. Pass the smallest gain that counts.")
    x = finite(values, "differences", 0)
    if len(x) < FEWEST:
        return Verdict("not testable here", f"{len(x)} seeds; at least {FEWEST} are needed", None, None, None)
    if _constant(x):
        why = f"all {len(x)} differences are {x[0]:.4g}: the seeds varied nothing; test over examples"
        return Verdict("not testable here", why, None, None, None)
    found = student(x, level=level) if len(x) < MANY else bootstrap(x, level=level, seed=seed)
    sign = 1.0 if claim == "greater" else -1.0
    p = sign_flip(sign * x - margin, "greater", seed=seed)
    outcome, reason = _decide(found, sign, margin)
    return Verdict(outcome, reason, found, p, dz(x))


def _decide(found: Interval, sign: float, margin: float) -> tuple[str, str]:
    near, far = sorted((sign * found.low, sign * found.high))
    ends = f"{found.level:.0%} interval [{found.low:.4g}, {found.high:.4g}]"
    side = "above" if sign > 0 else "below"
    if near > margin:
        return "holds", f"{ends} lies {side} {sign * margin:.4g}"
    if far < margin:
        return "does not", f"{ends} lies on the other side of {sign * margin:.4g}"
    return "does not", f"{ends} leaves both sides of {sign * margin:.4g} open"


def _constant(x: Array) -> bool:
    """Equal up to rounding."""
    return bool(np.ptp(x) <= 1e-12 * np.abs(x).max())
