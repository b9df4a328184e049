"""What a study compares, said once: grid, recordings, arms, tasks and claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from isonb.errors import InputError
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
    ``recordings``: where its runs are; of a run that is in several, the first counts. ``arm(config)``: the name of the
    arm in print, or None for a run that is no part of the comparison. ``suite(config)``: the place of a run in the
    tables, by default the name of its task in print. ``reservation``: why these runs can't judge a claim about trained
    models, whatever the task. ``no_setting()``: the (arm, suite) where every setting that was tried failed.
    """

    name: str
    page: str
    recordings: tuple[str, ...]
    arm: Callable[[Mapping[str, Any]], str | None]
    claims: tuple[Claim, ...] = ()
    suite: Callable[[Mapping[str, Any]], str] | None = None
    size: str = "small"
    reservation: str = ""
    grid: str = ""
    no_setting: Callable[[], Collection[tuple[str, str]]] = frozenset

    def suite_of(self, config: Mapping[str, Any]) -> str:
        """The suite of a run."""
        if self.suite is not None:
            return self.suite(config)
        return TASK_NAMES.get(str(config.get("task")), str(config.get("task")))
