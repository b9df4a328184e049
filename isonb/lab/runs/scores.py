"""What a run is judged by: its main metric, its score, that of the majority baseline, and the rows behind them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb.lab.data import own
from isonb.lab.data.own_columns import METRICS
from isonb.lab.data.tasks import TASKS, task_size


def scored(runs: pd.DataFrame) -> pd.DataFrame:
    """A table of runs with ``metric`` (the main one, or None), ``score``, ``majority`` and ``rows``.

    ``majority`` is the score of the majority baseline, and ``rows`` counts what a score was measured on.
    """
    rows = runs.to_dict("records")
    metrics = [main_metric(row) for row in rows]
    return runs.assign(
        metric=metrics,
        score=[_number(row, f"metric.{name}") for name, row in zip(metrics, rows, strict=True)],
        majority=[_number(row, f"metric.baseline.{name}") for name, row in zip(metrics, rows, strict=True)],
        rows=[_rows(row) for row in rows],
    )


def metrics_of(task: str, values: Mapping[str, float | None]) -> list[str]:
    """The metrics that a run of a task is judged by, main one first, by the names that ``values`` has.

    In similarity the mean over subsets where there are some, else over all pairs. Of a task of one's own, whose files
    may be gone: those that its name asks for, else all that stand beside a baseline.

    >>> metrics_of("stsb", {"pearson": None, "spearman": 0.7, "loss": 1.0})
    ['pearson', 'spearman']
    """
    asked = TASKS[task].metrics if task in TASKS else _asked(task)
    metrics: list[str] = []
    for metric in asked or dict.fromkeys(name for names in METRICS.values() for name in names):
        there = [name for name in (metric, f"{metric}.mean", f"{metric}.all") if name in values]
        metrics += [name for name in there if values[name] is not None][:1] or there[:1]
    beside = [f"{of}.{name}" for name in metrics for of in ("baseline", "plain")]
    told = {name.partition(".")[2] for name in beside if values.get(name) is not None}
    return metrics if asked else [name for name in metrics if name in told]


def _asked(task: str) -> tuple[str, ...]:
    """The metrics of a task of one's own, main one first, as far as its files or its name tell."""
    with contextlib.suppress(InputError):
        return own.own_task(task).metrics if own.is_own(task) else ()
    with contextlib.suppress(InputError):
        return tuple(own.options_of(task).get("metrics", ()))
    return ()


def main_metric(row: Mapping[Any, Any]) -> str | None:
    """The first of :func:`metrics_of` of a row of a table, whether it is defined there or not; None: it has none.

    >>> main_metric({"task": "cola", "metric.matthews": float("nan"), "metric.accuracy": 0.8})
    'matthews'
    """
    told = {name.removeprefix("metric."): value for name, value in row.items() if name.startswith("metric.")}
    values = {name: value if value == value else None for name, value in told.items()}
    return next(iter(metrics_of(str(row.get("task")), values)), None)


def _rows(row: Mapping[Any, Any]) -> int:
    limit, all_of_them = row.get("eval_examples"), task_size(str(row.get("task"))).evaluation
    return all_of_them if limit is None or pd.isna(limit) else min(int(limit), all_of_them)


def _number(row: Mapping[Any, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
