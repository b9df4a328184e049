"""Claims of the papers and what runs say of them: four outcomes, one rule for every paper.

A claim has parts; a part says on which side of a border the mean of a number lies, in each of several cells (tasks,
say). The rule in one cell, fixed before looking: the interval of the mean lies wholly in the claimed range (supported),
wholly outside it (contradicted), or on both sides of a border (inconclusive). Fewer than three seeds, seeds that varied
nothing, or a task that the plain model hasn't learned leave the cell not testable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import stats as scipy_stats

from isonb.errors import InputError, fail
from isonb.lab.statistics.intervals import Interval, bootstrap, finite
from isonb.lab.statistics.seeds import dz, holm, student

__all__ = [
    "CONTRADICTED",
    "DIRECTIONS",
    "INCONCLUSIVE",
    "KINDS",
    "NOT_TESTABLE",
    "OUTCOMES",
    "SUPPORTED",
    "Cell",
    "Claim",
    "ClaimError",
    "Judgement",
    "Part",
    "PartJudgement",
    "by_cell",
    "difference",
    "judge",
    "judge_cell",
    "judge_part",
    "smallest_visible",
]

OUTCOMES = SUPPORTED, CONTRADICTED, INCONCLUSIVE, NOT_TESTABLE = (
    "supported",
    "contradicted",
    "inconclusive",
    "not testable",
)
DIRECTIONS = ("greater", "less", "at least", "at most", "equal")
KINDS = ("runs", "identity", "printed")
FEWEST = 3  # seeds
MANY = 20  # seeds from which the expanded bootstrap decides; below, Student's interval
LEVEL = 0.95
POWER = 0.8

Units: TypeAlias = Mapping[tuple[str, int], float]
Evidence: TypeAlias = Mapping[str, "Sequence[float] | Interval"]


class ClaimError(InputError):
    """A claim that says nothing, or numbers that it can't be judged by."""


@dataclass(frozen=True)
class Cell:
    """What the runs say in one cell.

    ``visible`` is the smallest true distance from the border that so many seeds of this spread would show in four of
    five repetitions. ``against`` is the one-sided p-value of lying outside the claimed range.
    """

    name: str
    outcome: str
    reason: str
    n: int = 0
    interval: Interval | None = None
    dz: float | None = None
    visible: float | None = None
    against: float | None = None


@dataclass(frozen=True)
class Part:
    """``what`` lies in a range, cell by cell.

    ``evidence(study, suites)`` gives the numbers of each cell: one a seed, or an interval that is there already.
    ``direction``: "greater" (above ``margin``), "less" (below -margin), "at least" (above -margin), "at most" (below
    margin), "equal" (between -margin and margin). ``margin`` is the smallest difference that counts. A cell is a suite
    with one of ``details`` behind it ("CoLA, raw"). ``gated``: the part speaks of gains or losses of a score, so a
    suite counts only where the plain model has learned its task. ``rule``: in "all" cells that can tell, or in "most".
    ``on``: the recorded suites that the claim speaks of; all by default. With none, ``()``, the evidence is asked for
    all suites and its keys are the cells. ``runs_of``: the study whose recorded runs judge the part, where it isn't the
    claim's own.
    """

    what: str
    evidence: Callable[[Any, Sequence[str]], Evidence]
    direction: str = "less"
    margin: float = 0.0
    details: tuple[str, ...] = ("",)
    gated: bool = False
    rule: str = "all"
    on: tuple[str, ...] | None = None
    runs_of: str = ""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            known = ", ".join(DIRECTIONS)
            fail(ClaimError, f"the direction must be one of {known}", repr(self.direction), "Choose one of these.")
        if not 0 <= self.margin < math.inf or (self.direction == "equal" and self.margin == 0):
            fix = "Pass the smallest difference that counts."
            fail(ClaimError, 'the margin must be >= 0, for "equal" above 0', self.margin, fix)
        if self.rule not in ("all", "most"):
            fail(ClaimError, 'the rule must be "all" or "most"', repr(self.rule), "Choose one of these.")

    @property
    def claimed(self) -> tuple[float, float]:
        """The range in which the mean should lie."""
        m = self.margin
        return {
            "greater": (m, math.inf),
            "less": (-math.inf, -m),
            "at least": (-m, math.inf),
            "at most": (-math.inf, m),
            "equal": (-m, m),
        }[self.direction]


@dataclass(frozen=True)
class Claim:
    """A numbered claim of a paper. ``kind``: judged on "runs", an "identity" of mathematics, or "printed" numbers."""

    number: int | str  # the papers' are numbered; the contradictions have names
    statement: str
    parts: tuple[Part, ...]
    kind: str = "runs"
    remark: str = ""  # why it can't be tested here, or what the reader should know of the rule

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            fail(ClaimError, f"the kind must be one of {', '.join(KINDS)}", repr(self.kind), "Choose one of these.")


@dataclass(frozen=True)
class PartJudgement:
    """The outcome of one part, and its cells."""

    part: Part
    outcome: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Judgement:
    """The outcome of a claim, and those of its parts."""

    claim: Claim
    outcome: str
    parts: tuple[PartJudgement, ...] = field(default=())

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of all parts."""
        return tuple(cell for part in self.parts for cell in part.cells)


def difference(a: Units, b: Units) -> dict[tuple[str, int], float]:
    """Subtract b from a for the units that both have: what a method changed, run by run.

    >>> difference({("cola", 0): 0.5, ("cola", 1): 0.25}, {("cola", 0): 0.25})
    {('cola', 0): 0.25}
    """
    return {unit: a[unit] - b[unit] for unit in sorted(set(a) & set(b))}


def by_cell(units: Units) -> dict[str, list[float]]:
    """The numbers of each cell, in the order of their seeds.

    >>> by_cell({("cola", 1): 0.5, ("cola", 0): 0.25})
    {'cola': [0.25, 0.5]}
    """
    found: dict[str, list[float]] = {}
    for (cell, _), value in sorted(units.items()):
        found.setdefault(cell, []).append(value)
    return found


def smallest_visible(interval: Interval) -> float:
    """The true effect that an interval of this width excludes 0 for in four of five repetitions.

    For Student's interval (t_0.975 + t_0.8) s / sqrt(n); for others with the normal quantiles.

    >>> round(smallest_visible(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile")), 2)
    2.8
    """
    law = _law(interval)
    half = (interval.high - interval.low) / 2
    return float(half * (1 + law.ppf(POWER) / law.ppf((1 + interval.level) / 2)))


def judge_cell(part: Part, name: str, evidence: Sequence[float] | Interval | None) -> Cell:
    """The outcome of one cell, from one number a seed or from an interval.

    >>> part = Part("gain", lambda study, suites: {}, "greater")
    >>> judge_cell(part, "cola", [0.1, 0.12, 0.14]).outcome, judge_cell(part, "cola", [0.1, -0.2, 0.14]).outcome
    ('supported', 'inconclusive')
    >>> judge_cell(part, "cola", [-0.1, -0.12, -0.14]).outcome, judge_cell(part, "cola", [0.1]).outcome
    ('contradicted', 'not testable')
    """
    if isinstance(evidence, Interval):
        return _placed(part, name, evidence, None)
    values = finite([] if evidence is None else list(evidence), "values", 0)
    if len(values) < FEWEST:
        why = f"{len(values)} seeds; at least {FEWEST} are needed" if len(values) else "no runs"
        return Cell(name, NOT_TESTABLE, why, len(values))
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        why = f"all {len(values)} values are {values[0]:.4g}: the seeds varied nothing"
        return Cell(name, NOT_TESTABLE, why, len(values))
    found = student(values, level=LEVEL) if len(values) < MANY else bootstrap(values, level=LEVEL)
    return _placed(part, name, found, dz(values))


def judge_part(part: Part, evidence: Evidence, cells: Iterable[str], learned: Callable[[str], str]) -> PartJudgement:
    """Judge one part in ``cells``. ``learned(cell)`` is empty, or says why gains there can't be told.

    With the rule "all", one cell against the claim is enough to contradict it, so the cells' p-values are adjusted by
    Holm's method first. Support needs every cell that can tell, and no adjustment.
    """
    judged = []
    for name in cells:
        why = learned(name) if part.gated else ""
        judged.append(Cell(name, NOT_TESTABLE, why) if why else judge_cell(part, name, evidence.get(name)))
    return PartJudgement(part, _together(part, judged), tuple(judged))


def judge(claim: Claim, parts: Sequence[PartJudgement]) -> Judgement:
    """The outcome of a claim: contradicted if a part is, supported if each part is, not testable if none can be tested.

    A claim whose parts differ otherwise is inconclusive: what can be tested doesn't settle it.
    """
    found = [part.outcome for part in parts]
    if CONTRADICTED in found:
        outcome = CONTRADICTED
    elif all(one == NOT_TESTABLE for one in found):
        outcome = NOT_TESTABLE
    else:
        outcome = SUPPORTED if all(one == SUPPORTED for one in found) else INCONCLUSIVE
    return Judgement(claim, outcome, tuple(parts))


def _together(part: Part, cells: Sequence[Cell]) -> str:
    telling = [cell for cell in cells if cell.outcome != NOT_TESTABLE]
    if not telling:
        return NOT_TESTABLE
    outcomes = [cell.outcome for cell in telling]
    if part.rule == "most":
        for outcome in (SUPPORTED, CONTRADICTED):
            if 2 * outcomes.count(outcome) > len(outcomes):
                return outcome
        return INCONCLUSIVE
    against = {cell.name: cell.against for cell in telling if cell.against is not None}
    if against and min(holm(against).values()) <= (1 - LEVEL) / 2:
        return CONTRADICTED
    return SUPPORTED if all(one == SUPPORTED for one in outcomes) else INCONCLUSIVE


def _placed(part: Part, name: str, found: Interval, effect: float | None) -> Cell:
    low, high = part.claimed
    ends = f"{found.level:.0%} interval [{found.low:.4g}, {found.high:.4g}]"
    border = " and ".join(f"{end + 0.0:.4g}" for end in (low, high) if math.isfinite(end))  # a border of -0 is 0
    if low < found.low and found.high < high:
        outcome, reason = SUPPORTED, f"{ends} lies on the claimed side of {border}"
    elif found.low >= high or found.high <= low:
        outcome, reason = CONTRADICTED, f"{ends} lies on the other side of {border}"
    else:
        outcome, reason = INCONCLUSIVE, f"{ends} lies on both sides of {border}"
    return Cell(name, outcome, reason, found.n, found, effect, smallest_visible(found), _against(found, low, high))


def _against(found: Interval, low: float, high: float) -> float:
    """The one-sided p-value of lying beyond the nearer end of the claimed range."""
    law = _law(found)
    half = (found.high - found.low) / 2
    if half == 0:
        return float(low < found.estimate < high)
    error = half / law.ppf((1 + found.level) / 2)
    gaps = [found.estimate - high, low - found.estimate]
    tails = [float(law.sf(gap / error)) for gap in gaps if math.isfinite(gap)]
    return min(tails)


def _law(interval: Interval) -> Any:
    return scipy_stats.t(interval.n - 1) if interval.method == "student" else scipy_stats.norm
