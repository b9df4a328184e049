"""Whether two quantities go together over several tasks at once, method by method."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats as scipy_stats

from isonb_lab.statistics.seeds import Array, StatsError

MOST = 8  # methods whose orders are all tried: 40,320
DRAWS = 20_000


@dataclass(frozen=True)
class Association:
    """``each``: Spearman's correlation by task. ``mean``: over tasks. ``p``: two-sided, of no association."""

    each: Mapping[str, float]
    mean: float
    p: float


def association(x: Mapping[str, Mapping[str, float]], y: Mapping[str, Mapping[str, float]]) -> Association:
    """The mean over tasks of Spearman's correlation between two numbers a method, and its permutation test.

    ``x`` and ``y`` hold a number for each method, task by task. The methods of one side are permuted in the same way on
    all tasks: a method is one thing on all of them, so its tasks aren't independent witnesses. All orders are tried up
    to eight methods, else 20,000 drawn ones, always the same. Raises
    :class:`~isonb_lab.statistics.seeds.StatsError` for fewer than 3 methods, tasks with other methods, or a side
    that is constant on a task.

    >>> x = {"a": {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0}}
    >>> together = association(x, {"a": {"one": 2.0, "two": 3.0, "three": 5.0, "four": 7.0}})
    >>> round(together.mean, 3), round(together.p, 3)  # 2 of the 24 orders are as far from 0
    (1.0, 0.083)
    """
    tasks, methods = list(x), list(next(iter(x.values()), {}))
    if len(methods) < 3 or list(y) != tasks or any(set(side[t]) != set(methods) for side in (x, y) for t in tasks):
        got = f"{len(methods)} methods, tasks {tasks} and {list(y)}"
        raise StatsError(f"both sides need the same tasks and at least 3 methods on each; got {got}. Align them.")
    a, b = (np.array([_ranks([side[task][m] for m in methods]) for task in tasks]) for side in (x, y))
    each = (a * b).sum(axis=1)
    order = range(len(methods))
    generator = np.random.default_rng(0)
    drawn = [order, *(generator.permutation(len(methods)) for _ in range(DRAWS))] if len(methods) > MOST else []
    orders = np.array(drawn or list(itertools.permutations(order)))
    means = sum((a[k][orders] @ b[k] for k in range(len(tasks))), np.zeros(len(orders))) / len(tasks)
    p = float((np.abs(means) >= abs(each.mean()) - 1e-12).mean())
    return Association(dict(zip(tasks, each.tolist(), strict=True)), float(each.mean()), p)


def _ranks(values: list[float]) -> Array:
    """Centred ranks of length 1."""
    ranks = scipy_stats.rankdata(values) - (len(values) + 1) / 2
    length = math.sqrt(float((ranks**2).sum()))
    if length == 0:
        raise StatsError(f"the methods must differ on every task; got {values[0]} for all. Leave that task out.")
    return np.asarray(ranks / length, dtype=np.float64)
