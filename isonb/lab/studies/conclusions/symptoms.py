"""What can be wrong with training, counted: runs that failed, updates that were cut."""

from __future__ import annotations

from collections.abc import Sequence

from isonb.lab.studies.study import Study

__all__ = ["failures", "long_gradients"]


def failures(study: Study, arms: Sequence[str], suites: Sequence[str] | None = None) -> tuple[int, int]:
    """How many recorded runs of these arms failed (:func:`isonb.lab.studies.competence.failed`), and of how many.

    ``suites``: all by default.
    """
    runs = study.recorded[study.recorded["arm"].isin(list(arms))].dropna(subset="score")
    runs = runs if suites is None else runs[runs["suite"].isin(list(suites))]
    return int(runs["failed"].sum()), len(runs)


def long_gradients(study: Study, arm: str, suites: Sequence[str], limit: float = 1.0) -> float:
    """The share of an arm's logged updates whose gradient has a norm above ``limit``; NaN where none is logged."""
    return float((study.logged("step.train.grad_norm", arm, suites)["value"] > limit).mean())
