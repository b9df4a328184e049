"""What each method of the head to head gains over all tasks together.

A task has few seeds, and its rows set a limit to what can be seen. Over several tasks the same seeds show more. The
tasks' scores are of different kinds, so each gain is first divided by what plain training adds there.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import pandas as pd

from isonb_lab.claims.comparing import LABELS
from isonb_lab.claims.design import PLAIN
from isonb_lab.claims.study import Study
from isonb_lab.claims.verdicts import FEWEST, difference
from isonb_lab.statistics.paired import OPEN, paired_tests
from isonb_lab.statistics.seeds import student

from .head_to_head import methods_of

COLUMNS = ("arm", "tasks", "n", "mean", "low", "high", "mde", "p", "carried")


def seed_means(gains: Mapping[tuple[str, int], float], units: Mapping[str, float]) -> list[float]:
    """The mean gain of each seed over the tasks, each in its task's unit; only seeds that every task has.

    >>> gains = {("a", 1): 0.02, ("b", 1): 0.1, ("a", 2): 0.04, ("b", 2): 0.3, ("a", 3): 0.5}
    >>> [round(mean, 3) for mean in seed_means(gains, {"a": 0.2, "b": 0.5})]
    [0.15, 0.4]
    """
    seeds = sorted(set.intersection(*({s for task, s in gains if task == name} for name in units))) if units else []
    return [fmean(gains[task, seed] / unit for task, unit in units.items()) for seed in seeds]


def over_tasks(study: Study) -> pd.DataFrame:
    """The gain of each method over all tasks on which no plain run failed.

    A gain is a share of the plain model's mean lead over the majority baseline: 0.01 is a hundredth of what training
    adds. So a task counts where plain training always learned it. Student's interval is over the means of the seeds, so
    it speaks of new seeds on these tasks. Columns: ``arm``, ``tasks`` (how many; a task where a method has no working
    setting isn't among them), ``n`` (seeds), ``mean``, ``low``, ``high``, ``mde`` (the minimum detectable effect at
    the first step of Holm's method), ``p`` by Holm's method over the methods, ``carried`` (the task without which the
    interval holds 0, if one carries it) and ``outcome``: what one task carries is no outcome of all. A method with
    fewer than three seeds has no row.
    """
    leads = {suite: study.lead(PLAIN, suite) for suite in steady(study)}
    means: dict[str, list[float]] = {}
    about: dict[str, tuple[int, str]] = {}
    for arm in methods_of(study):
        units = {s: lead.estimate for s, lead in leads.items() if lead is not None and (arm, s) not in study.no_setting}
        gains = difference(study.units("score", arm), study.units("score", PLAIN))
        values = seed_means(gains, units)
        if len(values) >= FEWEST:
            means[arm], about[arm] = values, (len(units), _carried(gains, units))
    rows = []
    for arm, test in paired_tests(means).items():
        tasks, carried = about[arm]
        outcome = OPEN if carried else LABELS[test.verdict]
        rows.append((arm, tasks, test.interval.n, *test.interval.ends, test.visible, test.p, carried, outcome))
    return pd.DataFrame(rows, columns=[*COLUMNS, "outcome"])


def _carried(gains: Mapping[tuple[str, int], float], units: Mapping[str, float]) -> str:
    """The task without which the interval of the mean holds 0, though it doesn't with all; empty without one."""
    if len(units) < 2 or not student(seed_means(gains, units)).excludes():
        return ""
    rest = {task: {name: unit for name, unit in units.items() if name != task} for task in units}
    undecided = (task for task, some in rest.items() if not student(seed_means(gains, some)).excludes())
    return next(undecided, "")


def steady(study: Study) -> tuple[str, ...]:
    """The tasks on which no run of plain training failed."""
    failures = study.failures()
    plain = failures[failures["arm"] == PLAIN].set_index("suite")["failed"]
    return tuple(suite for suite in study.suites if plain.get(suite, 1) == 0)
