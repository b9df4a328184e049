"""What a study compares, said once: grid, recordings, arms, tasks and claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from isonb.errors import InputError
from isonb_lab.claims.verdicts import Claim

Settings: TypeAlias = Mapping[str, Any]  # by column: {"task": "cola", "method.name": "istar", "method.weight": -1}

PLAIN = "none"  # the arm without a method, in every study
TASK_NAMES = {
    "cola": "CoLA",
    "mrpc": "MRPC",
    "rte": "RTE",
    "stsb": "STS-B",
    "sst2": "SST-2",
    "sst2_joint": "SST-2 with test rows",
    "sst5": "SST-5",
    "qnli": "QNLI",
    "qqp": "QQP",
    "squad": "SQuAD",
}
SIMILARITY_NAMES = {"stsb_test": "STS-B"} | {f"sts{y}": f"STS-{y}" for y in range(12, 17)} | {"sickr": "SICK-R"}


def task_name(task: str) -> str:
    """A task as the book prints it."""
    return (TASK_NAMES | SIMILARITY_NAMES).get(task, task.removeprefix("english_"))


def printed_task(settings: Settings) -> str:
    """The task of a run as the papers print it; of another task its own name."""
    return TASK_NAMES.get(task := str(settings.get("task")), task)


class StudyError(InputError):
    """A study, arm, column or suite that isn't there."""


@dataclass(frozen=True)
class Design:
    """What a study compares.

    Args:
        name: of the study, and of the grid (``book/experiments/<name>.yaml``) unless ``grid`` names another.
        page: the chapter.
        recordings: where its runs are; of a run that is in several, the first counts.
        arm: the name of the arm in print by a run's settings, as the columns of a recording name them, or None for a
            run that isn't compared. Settings that a grid leaves out and no recording knows are missing.
        claims: what is judged.
        suite: the place of a run in the tables by its settings, by default the name of its task in print.
        size: of the grid; it is the plan.
        grid: its name, or the path of a file.
        more: further grids with their size, whose runs count, too.
        no_setting: gives the (arm, suite) where every setting that was tried failed.
        acts_on: by arm the vectors that its method changes, as a record names them: "tokens", "features" or "second";
            "cls" for all others.
    """

    name: str
    page: str
    recordings: tuple[str, ...]
    arm: Callable[[Settings], str | None]
    claims: tuple[Claim, ...] = ()
    suite: Callable[[Settings], str] = printed_task
    size: str = "small"
    grid: str = ""
    more: tuple[tuple[str, str], ...] = ()
    no_setting: Callable[[], Collection[tuple[str, str]]] = frozenset
    acts_on: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def plan(self) -> str:
        """The grid that holds what is planned."""
        return self.grid or self.name

    @property
    def others(self) -> set[str]:
        """The names of the studies whose runs its claims are judged on, too."""
        return {item.runs_of for claim in self.claims for item in (*claim.premise, *claim.predictions)} - {""}
