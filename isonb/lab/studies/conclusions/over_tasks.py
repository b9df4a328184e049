"""What each method of the head to head gains over all tasks together.

A task has few seeds, and its rows set a limit to what can be seen. Over several tasks the same seeds show more. The
tasks' scores are of different kinds, so each gain is first divided by what plain training adds there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import pandas as pd

from isonb.lab.statistics.rank_sets import paired_p
from isonb.lab.statistics.seeds import holm, student
from isonb.lab.studies.arms import METHODS
from isonb.lab.studies.comparing import outcome_of
from isonb.lab.studies.study import PLAIN, Study
from isonb.lab.studies.verdicts import FEWEST, difference, smallest_visible

__all__ = ["over_tasks", "seed_means"]

COLUMNS = ("arm", "tasks", "n", "mean", "low", "high", "visible", "p")


def seed_means(gains: Mapping[tuple[str, int], float], units: Mapping[str, float]) -> list[float]:
    """The mean gain of each seed over the tasks, each in its task's unit; only seeds that every task has.

    >>> gains = {("a", 1): 0.02, ("b", 1): 0.1, ("a", 2): 0.04, ("b", 2): 0.3, ("a", 3): 0.5}
    >>> [round(mean, 3) for mean in seed_means(gains, {"a": 0.2, "b": 0.5})]
    [0.15, 0.4]
    """
    seeds = sorted(set.intersection(*({s for task, s in gains if task == name} for name in units))) if units else []
    return [fmean(gains[task, seed] / unit for task, unit in units.items()) for seed in seeds]


def over_tasks(study: Study, suites: Sequence[str] | None = None, *, level: float = 0.95) -> pd.DataFrame:
    """The gain of each method over all tasks that plain training has learned, or over ``suites``.

    A gain is a share of the plain model's mean lead over one answer for every example: 0.01 is a hundredth of what
    training adds. Student's interval is over the means of the seeds, so it speaks of new seeds on these tasks.
    Columns: ``arm``, ``tasks`` (how many), ``n`` (seeds), ``mean``, ``low``, ``high``, ``visible`` (the smallest true
    gain that so many seeds would have shown in four of five repetitions), ``p`` by Holm's method over the methods, and
    ``outcome``. A method that lacks a task, or with fewer than three seeds, has no row.
    """
    chosen = study.decisive if suites is None else tuple(suites)
    leads = {suite: study.lead(PLAIN, suite) for suite in chosen}
    units = {suite: lead.estimate for suite, lead in leads.items() if lead is not None}
    rows = []
    for arm in METHODS:
        gains = difference(study.units("score", arm), study.units("score", PLAIN))
        values = seed_means(gains, units)
        if len(values) >= FEWEST:
            found = student(values, level=level)
            ends = (found.estimate, found.low, found.high, smallest_visible(found))
            rows.append((arm, len(units), found.n, *ends, paired_p(values)))
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table["p"] = list(holm(dict(zip(table["arm"], table["p"], strict=True))).values()) if rows else []
    return table.assign(outcome=outcome_of(table, level))
