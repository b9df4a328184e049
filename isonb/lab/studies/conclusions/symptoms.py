"""What can be wrong with training, counted: runs that end at one answer for every example, updates that were cut."""

from __future__ import annotations

from collections.abc import Sequence

from isonb.lab.data.tasks import TASKS
from isonb.lab.studies.study import Study

__all__ = ["long_gradients", "one_answer"]

ROUNDING = 1e-9


def one_answer(study: Study, arms: Sequence[str], suites: Sequence[str] | None = None) -> tuple[int, int]:
    """How many recorded runs on tasks with classes score no better than one answer for every example, and of how many.

    ``suites``: all by default.
    """
    runs = study.recorded[study.recorded["arm"].isin(list(arms))]
    runs = runs[runs["task"].isin([task for task in TASKS if TASKS[task].kind == "classification"])]
    runs = runs if suites is None else runs[runs["suite"].isin(list(suites))]
    return int((runs["score"] <= runs["majority"] + ROUNDING).sum()), len(runs)


def long_gradients(study: Study, arm: str, suites: Sequence[str], limit: float = 1.0) -> float:
    """The share of an arm's logged updates whose gradient has a norm above ``limit``; NaN where none is logged."""
    return float((study.logged("step.train.grad_norm", arm, suites)["value"] > limit).mean())
