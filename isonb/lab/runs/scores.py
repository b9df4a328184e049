"""What a run is judged by: its main metric, its score, that of the majority baseline, and the rows behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from isonb.lab.data.own_columns import METRICS
from isonb.lab.data.tasks import TASKS, task_size

__all__ = ["main_metric", "scored"]


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


def main_metric(row: Mapping[Any, Any]) -> str | None:
    """The metric of the task that comes first; of a task of one's own, the first that stands beside a baseline.

    In similarity the mean over subsets where there are some, else over all pairs. None where a run has none.

    >>> main_metric({"task": "cola", "metric.matthews": 0.4, "metric.accuracy": 0.8})
    'matthews'
    """
    task = TASKS.get(str(row.get("task")))
    known = task.metrics if task else dict.fromkeys(name for names in METRICS.values() for name in names)
    for name in known:
        for variant in (name, f"{name}.mean", f"{name}.all"):
            beside = task or f"metric.baseline.{variant}" in row or f"metric.plain.{variant}" in row
            if beside and not math.isnan(_number(row, f"metric.{variant}")):
                return variant
    return None


def _rows(row: Mapping[Any, Any]) -> int:
    limit, all_of_them = row.get("eval_examples"), task_size(str(row.get("task"))).evaluation
    return all_of_them if limit is None or pd.isna(limit) else min(int(limit), all_of_them)


def _number(row: Mapping[Any, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
