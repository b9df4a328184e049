"""What a run is judged by: its main metric, its score, that of the majority baseline, and the rows behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

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
    may be gone: the metrics that stand beside a baseline.

    >>> metrics_of("stsb", {"pearson": 0.8, "spearman": 0.7, "loss": 1.0})
    ['pearson', 'spearman']
    """
    known = TASKS.get(task)
    metrics: list[str] = []
    for metric in known.metrics if known else dict.fromkeys(name for names in METRICS.values() for name in names):
        there = [name for name in (metric, f"{metric}.mean", f"{metric}.all") if name in values]
        metrics += [name for name in there if values[name] is not None][:1] or there[:1]
    beside = [name for name in metrics if f"baseline.{name}" in values or f"plain.{name}" in values]
    return metrics if known else beside


def main_metric(row: Mapping[Any, Any]) -> str | None:
    """The first of :func:`metrics_of` that a row of a table has a value of; None where it has none.

    >>> main_metric({"task": "cola", "metric.matthews": 0.4, "metric.accuracy": 0.8})
    'matthews'
    """
    told = {name.removeprefix("metric."): value for name, value in row.items() if name.startswith("metric.")}
    values = {name: value for name, value in told.items() if value is not None and value == value}
    return next(iter(metrics_of(str(row.get("task")), values)), None)


def _rows(row: Mapping[Any, Any]) -> int:
    limit, all_of_them = row.get("eval_examples"), task_size(str(row.get("task"))).evaluation
    return all_of_them if limit is None or pd.isna(limit) else min(int(limit), all_of_them)


def _number(row: Mapping[Any, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
