"""Paired tests of many differences at once: interval, adjusted p-value, verdict, minimum detectable effect."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isonb_lab.statistics.seeds import POWER, Interval, StatsError, holm, minimum_detectable, paired_p, student

MOST = 10**6  # seeds that nobody runs
GAIN, LOSS, OPEN = "gain", "loss", "not significant"
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class PairedTest:
    """One difference among several that are judged together.

    ``interval``: of the mean difference, by Student's law. ``p``: of the paired test, adjusted by Holm's method over
    the family. ``visible``: the minimum detectable effect at the level that Holm's first step leaves. ``spread``: the
    standard deviation of one difference. ``verdict``: :data:`GAIN`, :data:`LOSS` or :data:`OPEN`.
    """

    interval: Interval
    p: float
    visible: float
    spread: float
    verdict: str


def paired_tests(
    differences: Mapping[Name, Sequence[float]], *, family: int = 0, level: float = 0.95, power: float = POWER
) -> dict[Name, PairedTest]:
    """Student's paired test of each family member, one difference a seed, judged together by Holm's method.

    The chance of even one wrong gain or loss among all of them is at most 1 - ``level``, whatever their dependence.
    A planned ``family`` may have more members than have been measured: each of the others counts as p = 1. Raises
    :class:`~isonb_lab.statistics.seeds.StatsError` for fewer than 2 differences.

    >>> told = paired_tests({"a": [1.0, 1.1, 0.9, 1.0], "b": [1.0, -1.2, 0.3, 0.1]})
    >>> told["a"].verdict, told["b"].verdict, round(told["a"].p, 4)
    ('gain', 'not significant', 0.0003)
    >>> round(paired_tests({"a": [1.0, 1.1, 0.9, 1.0]}, family=9)["a"].p, 4)
    0.0013
    """
    if not differences:
        return {}
    p_values = [paired_p(values) for values in differences.values()]
    p_values += [1.0] * (family - len(p_values))
    adjusted, alpha = holm({f"{i}": p for i, p in enumerate(p_values)}), (1 - level) / len(p_values)
    tests = {}
    for (name, values), p in zip(differences.items(), adjusted.values(), strict=False):
        interval, spread = student(values, level=level), float(np.std(values, ddof=1))
        visible = minimum_detectable(spread, len(values), alpha=alpha, power=power)
        side = GAIN if interval.estimate > 0 else LOSS
        tests[name] = PairedTest(interval, p, visible, spread, side if p <= 1 - level else OPEN)
    return tests


def seeds_needed(spread: float, gain: float, *, alpha: float = 0.05, power: float = POWER) -> int:
    """The fewest seeds with which a paired test shows a true ``gain`` at ``alpha`` in a share ``power`` of studies.

    Args:
        spread: standard deviation of one paired difference, in the unit of the gain.
        gain: the true mean difference that is to be seen, above 0.
        alpha: two-sided level of the test; of the first step of Holm's method over m tests, alpha / m.
        power: share of the studies that show it.

    >>> seeds_needed(1.0, 1.0), seeds_needed(1.0, 1.0, alpha=0.05 / 32)
    (10, 21)
    """
    if not gain > 0:
        raise StatsError(f"the gain must be above 0; got {gain}. Name a gain that would matter.")

    def shows(n: int) -> bool:
        return minimum_detectable(spread, n, alpha=alpha, power=power) <= gain

    needed = bisect_left(range(MOST), True, lo=2, key=shows)
    if needed == MOST:
        raise StatsError(f"the gain must be one that {MOST:,} seeds show; got {gain}. Name a larger gain.")
    return needed
