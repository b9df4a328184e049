"""Claims of the papers, judged on runs: one number a unit (cell and seed), a rule fixed before looking, a verdict.

A claim speaks of cells (tasks, say) and holds if it holds in each of them, so no correction for several tests is due.
The rule in one cell is that of :func:`isonb.lab.statistics.seeds.verdict`: the interval of the mean over seeds decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from isonb.errors import InputError, fail
from isonb.lab.statistics.intervals import Interval
from isonb.lab.statistics.seeds import Verdict, dz, summary, verdict

__all__ = ["DIRECTIONS", "Claim", "ClaimError", "Judgement", "difference", "judge", "judged_table"]

DIRECTIONS = ("greater", "less", "at least", "at most", "equal")
HOLDS, DOES_NOT, UNTESTED = "holds", "does not hold", "not testable here"

Units: TypeAlias = Mapping[tuple[str, int], float]


class ClaimError(InputError):
    """A claim that says nothing, or numbers that it can't be judged by."""


@dataclass(frozen=True)
class Claim:
    """A ``statement`` about the mean of a ``statistic`` in every cell.

    ``direction``: "greater" (above ``margin``), "less" (below -margin), "at least" (above -margin), "at most" (below
    margin), "equal" (between -margin and margin). ``margin`` is the smallest difference that counts.
    """

    statement: str
    statistic: str
    direction: str = "less"
    margin: float = 0.0

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            known = ", ".join(DIRECTIONS)
            fail(ClaimError, f"the direction must be one of {known}", repr(self.direction), "Choose one of these.")
        if not 0 <= self.margin < float("inf") or (self.direction == "equal" and self.margin == 0):
            fix = "Pass the smallest difference that counts."
            fail(ClaimError, 'the margin must be >= 0, for "equal" above 0', self.margin, fix)


@dataclass(frozen=True)
class Judgement:
    """``outcome``: "holds", "does not hold" or "not testable here"; ``reason`` names the cells that decided.

    ``cells``: the :class:`~isonb.lab.statistics.seeds.Verdict` of each cell. ``counts``: seeds of each cell.
    """

    claim: Claim
    outcome: str
    reason: str
    cells: Mapping[str, Verdict]
    counts: Mapping[str, int]


def difference(a: Units, b: Units) -> dict[tuple[str, int], float]:
    """Subtract b from a for the units that both have: what a method changed, run by run.

    >>> difference({("cola", 0): 0.5, ("cola", 1): 0.25}, {("cola", 0): 0.25})
    {('cola', 0): 0.25}
    """
    return {unit: a[unit] - b[unit] for unit in sorted(set(a) & set(b))}


def judge(claim: Claim, values: Units, cells: Sequence[str]) -> Judgement:
    """Judge a claim on one number a unit, the keys of ``values`` being (cell, seed).

    ``cells`` are those the claim speaks of: one without numbers makes it untested, unless it fails elsewhere. Other
    cells are ignored. "does not hold" means that the runs don't show it; ``reason`` tells an interval on the other side
    from one that leaves both open. Raises :class:`~isonb.lab.statistics.intervals.StatsError` for numbers that aren't
    finite.

    >>> gains = {("cola", seed): 0.1 + 0.01 * seed for seed in range(5)}
    >>> judge(Claim("better", "gain", "greater"), gains, ["cola"]).outcome
    'holds'
    >>> judge(Claim("better", "gain", "greater"), gains, ["cola", "mrpc"]).outcome
    'not testable here'
    """
    if not cells:
        fail(ClaimError, "a claim must speak of at least one cell", "none", "Name its tasks.")
    found = {cell: [value for (at, _), value in sorted(values.items()) if at == cell] for cell in cells}
    verdicts = {cell: _cell(claim, numbers) for cell, numbers in found.items()}
    deciding, outcome = list(verdicts), HOLDS
    for candidate in (DOES_NOT, UNTESTED):
        if some := [cell for cell, one in verdicts.items() if one.outcome == candidate]:
            deciding, outcome = some, candidate
            break
    reason = "; ".join(f"{cell}: {verdicts[cell].reason}" for cell in deciding)
    return Judgement(claim, outcome, reason, verdicts, {cell: len(numbers) for cell, numbers in found.items()})


def judged_table(judgements: Iterable[Judgement]) -> list[dict[str, object]]:
    """One row a claim and cell: statement, cell, ``n`` seeds, mean, interval's ends, effect size ``dz``, outcome."""
    rows: list[dict[str, object]] = []
    for judgement in judgements:
        for cell, one in judgement.cells.items():
            ends = one.interval
            rows.append(
                {
                    "statement": judgement.claim.statement,
                    "statistic": judgement.claim.statistic,
                    "cell": cell,
                    "n": judgement.counts[cell],
                    "mean": None if ends is None else ends.estimate,
                    "low": None if ends is None else ends.low,
                    "high": None if ends is None else ends.high,
                    "dz": one.dz,
                    "outcome": one.outcome,
                    "reason": one.reason,
                }
            )
    return rows


def _cell(claim: Claim, numbers: Sequence[float]) -> Verdict:
    margin = claim.margin
    if claim.direction in ("greater", "less"):
        return _worded(verdict(numbers, claim.direction, margin=margin), numbers, 0.0)
    if claim.direction == "at most":
        return _shifted(numbers, "less", margin)
    if claim.direction == "at least":
        return _shifted(numbers, "greater", -margin)
    below, above = _shifted(numbers, "less", margin), _shifted(numbers, "greater", -margin)
    return above if below.outcome == HOLDS else below


def _shifted(numbers: Sequence[float], side: str, border: float) -> Verdict:
    """The verdict on which side of ``border`` the mean lies."""
    return _worded(verdict([value - border for value in numbers], side), numbers, border)


def _worded(found: Verdict, numbers: Sequence[float], border: float) -> Verdict:
    """``found``, of numbers less ``border``, in terms of the numbers themselves and in this module's words."""
    outcome = DOES_NOT if found.outcome == "does not" else found.outcome
    if found.interval is None:
        return Verdict(outcome, found.reason, None, None, None if len(numbers) < 2 else dz(numbers))
    was = found.interval
    ends = Interval(summary(numbers).mean, was.low + border, was.high + border, was.level, was.n, was.method)
    reason = found.reason
    if border and outcome != HOLDS:
        place = f"on the other side of {border:.4g}" if ends.excludes(border) else f"on both sides of {border:.4g}"
        reason = f"{was.level:.0%} interval [{ends.low:.4g}, {ends.high:.4g}] lies {place}"
    elif border:
        reason = f"{was.level:.0%} interval [{ends.low:.4g}, {ends.high:.4g}] lies on the claimed side of {border:.4g}"
    return Verdict(outcome, reason, ends, found.p, dz(numbers))
