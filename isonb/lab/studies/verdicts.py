"""Claims of the papers and what runs say of them: one rule for every paper.

A claim has parts; a part says on which side of a border the mean of a number lies, over several cells (tasks, say). A
cell is shown as what it is; the verdict is of the mean over the cells: its 95% interval lies wholly in the claimed
range (supported), wholly on the other side (contradicted), or neither (inconclusive). No single cell may carry it: the
mean must lie there whichever cell is left out. Cells that all lie on one side by themselves agree, too. Where some
cells lie on one side and some on the other, no mean speaks for them: the answer *depends on* what the cells differ in.
A claim can't be tested where there are fewer than three seeds, or where nothing learned its task.

Cells that share seeds have the mean of their seeds' means, with Student's interval: it speaks of new seeds in these
cells. Others have the mean of random effects, which speaks of cells like these.
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
from isonb.lab.statistics.pooling import STUDENTS, Heterogeneity, heterogeneity, law, random_effects, standard_error
from isonb.lab.statistics.seeds import POWER, dz, holm, minimum_detectable, student

__all__ = [
    "CONTRADICTED",
    "DEPENDS",
    "DIRECTIONS",
    "INCONCLUSIVE",
    "KINDS",
    "NOT_TESTABLE",
    "NO_SETTING",
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

OUTCOMES = SUPPORTED, CONTRADICTED, DEPENDS, INCONCLUSIVE, NOT_TESTABLE = (
    "supported",
    "contradicted",
    "depends",
    "inconclusive",
    "not testable",
)
NO_SETTING = "no working setting"  # of a cell: every setting that was tried failed there
SILENT = (NOT_TESTABLE, NO_SETTING)  # cells that say nothing about a claim
DIRECTIONS = ("greater", "less", "at least", "at most", "equal")
KINDS = ("runs", "identity", "printed")
RULES = ("mean", "all", "most")
FEWEST = 3  # seeds
MANY = 20  # seeds from which the expanded bootstrap decides; below, Student's interval
LEVEL = 0.95

Units: TypeAlias = Mapping[tuple[str, int], float]
Evidence: TypeAlias = "Units | Mapping[str, Sequence[float] | Interval]"


class ClaimError(InputError):
    """A claim that says nothing, or numbers that it can't be judged by."""


@dataclass(frozen=True)
class Cell:
    """What the runs say in one cell.

    ``visible`` is the minimum detectable effect: the smallest true distance from the border that so many seeds of this
    spread would show in four of five repetitions. ``against``: the one-sided p-value of lying on the other side.
    """

    name: str
    outcome: str
    reason: str
    n: int = 0
    interval: Interval | None = None
    dz: float | None = None
    visible: float | None = None
    against: float = 1.0


@dataclass(frozen=True)
class Part:
    """``what`` lies in a range, over the cells.

    Args:
        what: the number, in words.
        evidence: ``evidence(study, suites)`` gives one number a cell and seed, or an interval a cell.
        direction: "greater" (above ``margin``), "less" (below -margin), "at least" (above -margin), "at most" (below
            margin), "equal" (between -margin and margin).
        margin: the smallest difference that counts. A "greater" that is clear but within the margin is neither
            supported nor contradicted: it is negligible.
        details: a cell is a suite with one of them behind it ("CoLA, raw").
        gated: the part speaks of trained models, so a suite counts only where something learned its task.
        rule: the "mean" over cells decides; "all" cells must hold (identities), or "most" (counted cells).
        on: the suites that the claim speaks of; all by default. With none, ``()``, the keys of the evidence are cells.
        runs_of: the study whose recorded runs judge the part, where it isn't the claim's own.
        depends: what the cells differ in, for a claim that holds in some and fails in others.
        arms: the arms whose runs are compared; a cell where one of them has no working setting says nothing.
    """

    what: str
    evidence: Callable[[Any, Sequence[str]], Evidence]
    direction: str = "less"
    margin: float = 0.0
    details: tuple[str, ...] = ("",)
    gated: bool = False
    rule: str = "mean"
    on: tuple[str, ...] | None = None
    runs_of: str = ""
    depends: str = "the task"
    arms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            known = ", ".join(DIRECTIONS)
            fail(ClaimError, f"the direction must be one of {known}", repr(self.direction), "Choose one of these.")
        if not 0 <= self.margin < math.inf or (self.direction == "equal" and self.margin == 0):
            fix = "Pass the smallest difference that counts."
            fail(ClaimError, 'the margin must be >= 0, for "equal" above 0', self.margin, fix)
        if self.rule not in RULES:
            fail(ClaimError, f"the rule must be one of {', '.join(RULES)}", repr(self.rule), "Choose one of these.")

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

    @property
    def tolerated(self) -> tuple[float, float]:
        """The range outside of which the claim is contradicted: a negligible effect doesn't contradict a direction."""
        low, high = self.claimed
        return (0.0, high) if self.direction == "greater" else (low, 0.0) if self.direction == "less" else (low, high)


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
    """The outcome of one part, and its cells.

    ``mean``: over the cells that can tell, with its interval. ``visible``: the minimum detectable effect of that mean.
    ``spread``: whether the cells differ beyond chance.
    """

    part: Part
    outcome: str
    cells: tuple[Cell, ...]
    mean: Interval | None = None
    visible: float | None = None
    spread: Heterogeneity | None = None
    against: float = 1.0


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

    @property
    def words(self) -> str:
        """The outcome in words: "depends on the encoder" names what on."""
        if self.outcome != DEPENDS:
            return self.outcome
        on = dict.fromkeys(part.part.depends for part in self.parts if part.outcome == DEPENDS)
        return f"{DEPENDS} on {' and '.join(on)}"


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


def smallest_visible(interval: Interval, alpha: float = 1 - LEVEL) -> float:
    """The minimum detectable effect behind an interval: shown at ``alpha`` in four of five repetitions.

    ``alpha`` is the level at which the verdict is given: of one test, or in a family of m tests alpha / m, the step of
    Holm's method that a first rejection needs. Where Student's law is behind it by
    :func:`~isonb.lab.statistics.seeds.minimum_detectable`; for others by the normal law.

    >>> round(smallest_visible(Interval(0.0, -1.96, 1.96, 0.95, 1000, "percentile")), 2)
    2.8
    """
    error = standard_error(interval)
    if interval.method in STUDENTS:
        return minimum_detectable(error * math.sqrt(interval.n), interval.n, alpha=alpha)
    return float(error * (scipy_stats.norm.ppf(1 - alpha / 2) + scipy_stats.norm.ppf(POWER)))


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
        why = f"replicates: {len(values)}; at least {FEWEST} are needed" if len(values) else "no runs"
        return Cell(name, NOT_TESTABLE, why, len(values))
    if np.ptp(values) <= 1e-12 * np.abs(values).max():
        why = f"all {len(values)} values are {values[0]:.4g}: the seeds varied nothing"
        return Cell(name, NOT_TESTABLE, why, len(values))
    found = student(values, level=LEVEL) if len(values) < MANY else bootstrap(values, level=LEVEL)
    return _placed(part, name, found, dz(values))


def judge_part(
    part: Part, evidence: Evidence, cells: Iterable[str], silent: Callable[[str], Cell | None]
) -> PartJudgement:
    """Judge one part in ``cells``. ``silent(name)`` is the cell itself where it can't tell, else None."""
    units: dict[Any, Any] = {key: value for key, value in evidence.items() if isinstance(key, tuple)}
    given: Mapping[Any, Any] = by_cell(units) if units else evidence
    judged = [silent(name) or judge_cell(part, name, given.get(name)) for name in cells]
    telling = [cell for cell in judged if cell.outcome not in SILENT]
    if not telling:
        return PartJudgement(part, NOT_TESTABLE, tuple(judged))
    mean = _over(telling, units)
    whole = _placed(part, "", mean, None)
    outcomes = [cell.outcome for cell in telling]
    against = min(holm({cell.name: cell.against for cell in telling}).values())
    if part.rule == "mean":
        outcome = _decided(part, telling, units, whole)
        # as the outcome: by the mean, or by every cell by itself
        surest = min(whole.against, max(cell.against for cell in telling))
        against = surest if outcome == CONTRADICTED else 1.0
    elif part.rule == "all":
        every = set(outcomes) == {SUPPORTED}
        outcome = CONTRADICTED if against <= (1 - LEVEL) / 2 else SUPPORTED if every else INCONCLUSIVE
    else:
        most = (one for one in (SUPPORTED, CONTRADICTED) if 2 * outcomes.count(one) > len(outcomes))
        outcome = next(most, INCONCLUSIVE)
        against = float(outcome != CONTRADICTED)
    spread = heterogeneity([cell.interval for cell in telling if cell.interval is not None])
    return PartJudgement(part, outcome, tuple(judged), mean, whole.visible, spread, against)


def _decided(part: Part, telling: Sequence[Cell], units: Units, whole: Cell) -> str:
    """What the mean over cells says, if it says so whichever cell is left out; or what all cells say by themselves."""
    outcomes = {cell.outcome for cell in telling}
    if {SUPPORTED, CONTRADICTED} <= outcomes and part.direction != "equal":
        return DEPENDS  # "equal" has no sides: what is small in one cell and large in another is an effect
    if len(telling) == 1 or outcomes in ({SUPPORTED}, {CONTRADICTED}):
        return telling[0].outcome
    rest = ([cell for cell in telling if cell is not left] for left in telling)
    stands = all(_placed(part, "", _over(cells, units), None).outcome == whole.outcome for cells in rest)
    return whole.outcome if stands else INCONCLUSIVE


def judge(claim: Claim, parts: Sequence[PartJudgement]) -> Judgement:
    """The outcome of a claim: contradicted if a part is, supported if each part is, not testable if none can be tested.

    A claim holds only if all its parts hold, so each part may contradict it; their p-values are adjusted by Holm's
    method first. What depends on something in a part does so in the claim. Parts that differ otherwise leave it
    inconclusive: what can be tested doesn't settle it.
    """
    outcomes = [part.outcome for part in parts]
    told = {f"{k}": part.against for k, part in enumerate(parts) if part.outcome != NOT_TESTABLE}
    adjusted = holm(told) if told else {}
    if any(parts[int(k)].outcome == CONTRADICTED and p <= (1 - LEVEL) / 2 for k, p in adjusted.items()):
        outcome = CONTRADICTED
    elif DEPENDS in outcomes:
        outcome = DEPENDS
    elif not told:
        outcome = NOT_TESTABLE
    else:
        outcome = SUPPORTED if all(one == SUPPORTED for one in outcomes) else INCONCLUSIVE
    return Judgement(claim, outcome, tuple(parts))


def _over(telling: Sequence[Cell], units: Units) -> Interval:
    """The mean over cells: of the seeds that all have, or of random effects where cells share fewer than three."""
    if len(telling) == 1 and telling[0].interval is not None:
        return telling[0].interval
    seeds = [{seed for name, seed in units if name == cell.name} for cell in telling]
    common = sorted(set.intersection(*seeds))
    means = [float(np.mean([units[cell.name, seed] for cell in telling])) for seed in common]
    if len(means) >= FEWEST and np.ptp(means) > 0:
        return student(means, level=LEVEL)
    return random_effects([cell.interval for cell in telling if cell.interval is not None], level=LEVEL)


def _placed(part: Part, name: str, found: Interval, effect: float | None) -> Cell:
    (low, high), (least, most) = part.claimed, part.tolerated
    ends = f"{found.level:.0%} interval [{found.low:.4g}, {found.high:.4g}]"
    border = " and ".join(f"{end + 0.0:.4g}" for end in (low, high) if math.isfinite(end))  # a border of -0 is 0
    if low < found.low and found.high < high:
        outcome, reason = SUPPORTED, f"{ends} lies on the claimed side of {border}"
    elif found.low > most or found.high < least:
        outcome, reason = CONTRADICTED, f"{ends} lies on the other side of {border if low == least else '0'}"
    elif part.margin and -part.margin <= found.low and found.high <= part.margin:
        outcome, reason = INCONCLUSIVE, f"{ends} is negligible: it lies within {part.margin:g} of 0"
    else:
        outcome, reason = INCONCLUSIVE, f"{ends} lies on both sides of {border}"
    return Cell(name, outcome, reason, found.n, found, effect, smallest_visible(found), _beyond(found, least, most))


def _beyond(found: Interval, low: float, high: float) -> float:
    """The one-sided p-value of lying beyond the nearer end of a range."""
    gaps = [found.estimate - high, low - found.estimate]
    return min(_tail(found, gap) for gap in gaps if math.isfinite(gap))


def _tail(found: Interval, gap: float) -> float:
    error = standard_error(found)
    return float(law(found).sf(gap / error)) if error else float(gap <= 0)
