"""Recordings: published tables of runs that describe themselves, such as those of ``book/recorded``; their scores.

A folder a recording: ``runs.parquet`` (one row a run, as :func:`isonb_lab.runs.table.table` gives it),
``series.parquet`` (one row a logged value) and ``manifest.json`` (schema, run ids, checksums of both, and the defaults
that the options of these runs had). Nothing of what makes runs is needed to read one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb_lab.data import own
from isonb_lab.data.own_columns import METRICS
from isonb_lab.data.tasks import TASKS, task_named
from isonb_lab.places import RECORDINGS_FOLDER

FOLDER = RECORDINGS_FOLDER
SCHEMA = 1
FILES = ("runs.parquet", "series.parquet")


class RecordedError(InputError):
    """A recording that isn't there, isn't as it was published, or can't be made."""


@dataclass(frozen=True)
class Recorded:
    """A recording as it was published.

    ``runs``: one row a run; ``series``: run_id, name, step, value; ``manifest``: what the folder says of itself;
    ``defaults``: those of the options, by column, for each experiment and, as "method.NAME", for each method.
    """

    runs: pd.DataFrame
    series: pd.DataFrame
    manifest: Mapping[str, Any]
    defaults: Mapping[str, Mapping[str, Any]]


def recorded(name: str, folder: str | Path | None = None) -> Recorded:
    """The recording ``name`` of ``book/recorded``, or of ``folder``.

    Raises :class:`RecordedError` if it isn't there, is of another schema, or has other content than was published.
    """
    home = (FOLDER if folder is None else Path(folder)) / name
    try:
        about = json.loads((home / "manifest.json").read_text(encoding="utf-8"))
        content = {file: (home / file).read_bytes() for file in FILES}
    except (OSError, ValueError) as error:
        fix = "Those of the book come with isonb-lab; publish() makes others."
        raise RecordedError(f"a recording must be a readable folder; got {error} for {name!r}. {fix}") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        got = about.get("schema") if isinstance(about, dict) else about
        raise RecordedError(f"{name} must have schema {SCHEMA}; got {got!r}. Publish it again.")
    sums = {file: hashlib.sha256(data).hexdigest() for file, data in content.items()}
    if other := [file for file in FILES if about.get("sha256", {}).get(file) != sums[file]]:
        raise RecordedError(f"{name} must be as it was published; got another {other[0]}. Publish it again.")
    runs, series = (pd.read_parquet(io.BytesIO(content[file])) for file in FILES)
    return Recorded(runs, series, about, about.get("defaults", {}))


def scored(runs: pd.DataFrame) -> pd.DataFrame:
    """A table of runs with ``metric`` (the main one, or None), ``score``, ``majority`` and ``rows``.

    ``majority`` is the score of the majority baseline, and ``rows`` counts what a score was measured on. Of a run whose
    record doesn't say how many these are, and whose own files are gone, nothing can be judged: it has none of all this.
    """
    rows = runs.to_dict("records")
    counts = [_rows(row) for row in rows]
    metrics = [main_metric(row) if count == count else None for row, count in zip(rows, counts, strict=True)]
    return runs.assign(
        metric=metrics,
        score=[_number(row, f"metric.{name}") for name, row in zip(metrics, rows, strict=True)],
        majority=[_number(row, f"metric.baseline.{name}") for name, row in zip(metrics, rows, strict=True)],
        rows=counts,
    )


def metrics_of(task: str, values: Mapping[str, float | None], noted: Iterable[str] = ()) -> list[str]:
    """The metrics that a run of a task is judged by, main one first, by the names that ``values`` has.

    In similarity the mean over subsets where there are some, else over all pairs. ``noted``: those that the manifest of
    its record has under "scored". Without them, of a task of one's own whose files are gone: those that its name asks
    for, else all that stand beside a baseline.

    >>> metrics_of("stsb", {"pearson": None, "spearman": 0.7, "loss": 1.0})
    ['pearson', 'spearman']
    """
    requested = tuple(noted) or (TASKS[task].metrics if task in TASKS else _asked(task))
    metrics: list[str] = []
    for metric in requested or dict.fromkeys(name for names in METRICS.values() for name in names):
        available = [name for name in (metric, f"{metric}.mean", f"{metric}.all") if name in values]
        metrics += [name for name in available if values[name] is not None][:1] or available[:1]
    baselines = [f"{of}.{name}" for name in metrics for of in ("baseline", "plain")]
    measured = {name.partition(".")[2] for name in baselines if values.get(name) is not None}
    return metrics if requested else [name for name in metrics if name in measured]


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
    measured = {name.removeprefix("metric."): value for name, value in row.items() if name.startswith("metric.")}
    values = {name: value if value == value else None for name, value in measured.items()}
    noted = row.get("manifest.scored.metrics")
    noted = json.loads(noted) if isinstance(noted, str) else ()
    return next(iter(metrics_of(str(row.get("task")), values, noted)), None)


def _rows(row: Mapping[Any, Any]) -> float:
    """How many rows a run was scored on, by its record, else by the task as it is here; NaN: nobody knows."""
    if (noted := _number(row, "manifest.scored.rows")) == noted:
        return int(noted)
    limit = _number(row, "eval_examples")
    with contextlib.suppress(InputError):
        every = task_named(str(row.get("task"))).size.evaluation
        return min(int(limit), every) if limit == limit else every
    return math.nan


def _number(row: Mapping[Any, Any], name: str) -> float:
    value = row.get(name)
    return math.nan if value is None else float(value)
