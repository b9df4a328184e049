"""What a study compares, said once: grid, recordings, arms, tasks and claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from isonb.errors import InputError
from isonb.lab.studies.plan import Settings
from isonb.lab.studies.verdicts import Claim

__all__ = ["PLAIN", "TASK_NAMES", "UNTAUGHT", "Design", "StudyError"]

PLAIN = "none"  # the arm without a method, in every study
UNTAUGHT = "the plain models of these runs had hardly learned their tasks"
TASK_NAMES = {
    "cola": "CoLA",
    "mrpc": "MRPC",
    "rte": "RTE",
    "stsb": "STS-B",
    "sst2": "SST-2",
    "sst5": "SST-5",
    "qnli": "QNLI",
    "qqp": "QQP",
    "squad": "SQuAD",
}


class StudyError(InputError):
    """A study, arm, column or suite that isn't there."""


@dataclass(frozen=True)
class Design:
    """What a study compares.

    ``name``: of the study, and of the grid (``book/experiments/<name>.yaml``) unless ``grid`` names another; the
    grid's ``size`` is the plan. ``page``: the chapter.
    ``recordings``: where its runs are; of a run that is in several, the first counts. ``arm(settings)``: the name of
    the arm in print by a run's settings, as the columns of a recording name them, or None for a run that isn't
    compared. ``suite(settings)``: the place of a run in the tables, by default the name of its task in print.
    ``reservation``: why these runs can't judge a claim about trained models, whatever the task. ``no_setting()``: the
    (arm, suite) where every setting that was tried failed. ``acts_on``: by arm the vectors that its method changes, as
    a record names them: "tokens", "features" or "second"; "cls" for the others.
    """

    name: str
    page: str
    recordings: tuple[str, ...]
    arm: Callable[[Settings], str | None]
    claims: tuple[Claim, ...] = ()
    suite: Callable[[Settings], str] | None = None
    size: str = "small"
    reservation: str = ""
    grid: str = ""
    no_setting: Callable[[], Collection[tuple[str, str]]] = frozenset
    acts_on: Mapping[str, str] = field(default_factory=dict)

    def suite_of(self, settings: Settings) -> str:
        """The suite of a run."""
        if self.suite is not None:
            return self.suite(settings)
        return TASK_NAMES.get(str(settings.get("task")), str(settings.get("task")))
