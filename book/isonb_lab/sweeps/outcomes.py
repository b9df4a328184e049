"""How runs ended: one outcome a run, and the report of a sweep.

>>> report = Report([Outcome("a", "finished"), Outcome("b", "failed", "TaskError: no such task")])
>>> print(report)
2 runs: 1 finished, 1 failed.
failed: b: TaskError: no such task
>>> report.exit_code
1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from isonb.errors import on_a_screen

Ending = Literal["finished", "skipped", "failed", "failed before", "not recorded", "stopped", "busy"]

ORDER: tuple[Ending, ...] = get_args(Ending)
WORDS = {"skipped": "already there"}
BAD: frozenset[Ending] = frozenset({"failed", "failed before", "not recorded", "busy"})


@dataclass(frozen=True)
class Outcome:
    """How one run ended.

    ``status``: finished (its record is there) | skipped (it was there before) | failed (its record says why) |
    failed before (in an earlier sweep; it wasn't run again) | not recorded (the disk refused, model or rows couldn't be
    had, or a worker was lost for good: no record, or no predictions beside an earlier one) | stopped (before its end,
    by hand or by whoever ended its process; no record) | busy (another process runs it, and we didn't wait).
    ``error``: the reason, or what went wrong after the record of a finished run was written. ``damaged``: why a record
    met before was no good (it lies beside, as ``<id>.json.damaged``).
    """

    run_id: str
    status: Ending
    error: str = ""
    damaged: str = ""

    def __str__(self) -> str:
        """One line that fits on a screen: the reason is cut to its first line, and that where it is long."""
        reason = self.error.strip().splitlines()[:1]
        rest = "its record has the rest" if self.status.startswith("failed") else "the rest is left out"
        return f"{self.status}: {self.run_id}" + (f": {on_a_screen(reason[0], rest)}" if reason else "")


@dataclass(frozen=True)
class Report:
    """The outcomes of a sweep, in the order of the grid. Its text names every run that needs attention."""

    outcomes: Sequence[Outcome] = field(default_factory=list)

    def of(self, *statuses: Ending) -> list[Outcome]:
        """The outcomes with one of these endings."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def exit_code(self) -> int:
        """0: every run has a complete record; 130: some were stopped; 1: some have none."""
        if self.of("stopped"):
            return 130
        return 1 if any(outcome.status in BAD for outcome in self.outcomes) else 0

    def __str__(self) -> str:
        """The counts, then one line for every run that failed, wasn't recorded or had a damaged record."""
        counts = [(WORDS.get(status, status), len(self.of(status))) for status in ORDER]
        text = ", ".join(f"{count} {word}" for word, count in counts if count) or "nothing to do"
        lines = [f"{len(self.outcomes)} run{'s' * (len(self.outcomes) != 1)}: {text}."]
        lines += [str(outcome) for outcome in self.outcomes if outcome.error and outcome.status != "stopped"]
        lines += [
            f"damaged record of {outcome.run_id}: {outcome.damaged}" for outcome in self.outcomes if outcome.damaged
        ]
        if self.of("failed before"):
            lines.append("Runs that failed before are run again when failed runs are to be retried.")
        if self.of("not recorded", "stopped", "busy"):
            lines.append("The same sweep goes on from here: runs without a record are run, the others are left alone.")
        return "\n".join(lines)


@dataclass(frozen=True)
class Status:
    """Where the runs of a folder stand: run ids, and reasons for what went wrong. ``pending`` needs the grid."""

    complete: tuple[str, ...]
    failed: dict[str, str]
    damaged: dict[str, str]
    running: tuple[str, ...]
    pending: tuple[str, ...]

    def __str__(self) -> str:
        """One line of counts, then one line a failed run and a damaged record."""
        names = ("complete", "failed", "damaged", "running", "pending")
        lines = [", ".join(f"{len(getattr(self, name))} {name}" for name in names) + "."]
        lines += [f"failed: {name}: {(why.splitlines() or [''])[0]}" for name, why in self.failed.items()]
        lines += [f"damaged: {name}: {why}" for name, why in self.damaged.items()]
        return "\n".join(lines)
