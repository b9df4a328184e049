"""Runs in a few words and a small table: a bar over one that goes on, means over seeds beside what they are held to."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import statistics
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isonb.errors import InputError
from isonb_lab.methods import label, plain_value
from isonb_lab.runs.record import Record
from isonb_lab.runs.recordings import metrics_of
from isonb_lab.runs.run_ids import canonical
from isonb_lab.runs.settings import Planned, identity
from isonb_lab.runtime.progress import read_progress

LOOK_EVERY = 0.5  # seconds
NOT_SETTINGS = ("experiment", "model", "task", "method", "seed")


def title(run: Planned) -> str:
    """A run in one line: task, model, method, seed.

    >>> from isonb_lab.runs.settings import plan
    >>> title(plan({"task": "cola", "model": "minilm", "seed": 1})), title(plan({"experiment": "synthetic"}))
    ('cola, minilm, none, seed 1', 'synthetic, seed 0')
    """
    settings = run.settings
    what = "synthetic" if run.experiment == "synthetic" else f"{settings.task}, {settings.model}, {run.label}"
    return f"{what}, seed {settings.seed}"


def scores(record: Record) -> list[tuple[str, float | None, float | None]]:
    """The task's metrics of a run, main one first: name, value, baseline.

    The baseline is that of the majority, in similarity the plain vectors; None where there is neither.
    """
    noted = record.manifest.get("scored", {}).get("metrics", ())
    metrics = metrics_of(str(record.config.get("task")), record.metrics, noted)
    return [(name, record.metrics[name], _baseline(record, name)) for name in metrics]


def _baseline(record: Record, metric: str) -> float | None:
    return record.metrics.get(f"baseline.{metric}", record.metrics.get(f"plain.{metric}"))


def time_words(manifest: Mapping[str, Any]) -> str:
    """How long a run took, and which share of that was measuring alone, where the manifest says.

    >>> time_words({"seconds": 40.0, "measuring": 3.0}), time_words({"seconds": 7.25})
    ('40.0 s, of which measuring took 8%', '7.2 s')
    """
    seconds, spent = float(manifest.get("seconds", 0.0)), manifest.get("measuring")
    share = "" if spent is None else f", of which measuring took {spent / max(seconds, spent, 1e-9):.0%}"
    return f"{seconds:.1f} s{share}"


def summary(records: Iterable[Record]) -> pd.DataFrame:
    """One row a cell: complete runs that differ in nothing but the seed.

    Columns: model, task, method (with options other than its defaults), ``settings`` that differ between rows which
    would look alike, metric, mean, std (n - 1; missing for one seed), ``seeds``, how many runs more have it
    ``undefined``, and the ``baseline``'s mean.
    """
    cells: dict[str, list[Record]] = {}
    for record in records:
        if record.status == "complete" and scores(record):
            cells.setdefault(_cell(record.config), []).append(record)
    rows = [_row(seeds) for seeds in cells.values()]
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault((row["model"], row["task"], row["method"]), []).append(row)
    for group in alike.values():
        _tell_apart(group)
    columns = ["model", "task", "method", "settings", "metric", "mean", "std", "seeds", "undefined", "baseline"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values(["task", "model", "method", "settings"], kind="stable", ignore_index=True)


def in_columns(frame: pd.DataFrame, **options: Any) -> str:
    """A table as text no wider than the terminal: columns for which there is no room follow below, by the same rows.

    Where there is no terminal, and COLUMNS names no width, a row is one line, for what reads lines.
    """
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = shutil.get_terminal_size().columns if narrow else None
    widest = {"line_width": width, "max_colwidth": width // 2} if width else {}
    return str(frame.to_string(na_rep="", index_names=False, **widest, **options))


def _cell(config: Mapping[str, Any]) -> str:
    """One word for all of a configuration but the seed; an option that came later counts as it does for an id."""
    alike = {name: value for name, value in config.items() if name != "seed"}
    with contextlib.suppress(InputError):  # the file of a method of one's own is gone: all of its options count
        alike = identity(alike)
    return canonical(alike)


def _row(records: list[Record]) -> dict[str, Any]:
    config, (metric, *_) = records[0].config, scores(records[0])[0]
    values = [float(value) for record in records if (value := record.metrics.get(metric)) is not None]
    bases = [float(value) for record in records if (value := _baseline(record, metric)) is not None]
    return {
        "model": config["model"],
        "task": config["task"],
        "method": label(config["method"]),
        "settings": {name: value for name, value in config.items() if name not in NOT_SETTINGS},
        "metric": metric,
        "mean": statistics.fmean(values) if values else math.nan,
        "std": statistics.stdev(values) if len(values) > 1 else math.nan,
        "seeds": len(values),
        "undefined": len(records) - len(values),
        "baseline": statistics.fmean(bases) if bases else math.nan,
    }


def _tell_apart(group: list[dict[str, Any]]) -> None:
    """Keep of each row's settings those in which the rows of a group differ, as text."""
    every = dict.fromkeys(name for row in group for name in row["settings"])
    names = [name for name in every if len({str(row["settings"].get(name)) for row in group}) > 1]
    for row in group:
        row["settings"] = " ".join(f"{name}={plain_value(row['settings'].get(name))}" for name in names)


@contextlib.contextmanager
def progress(work: Path, look_every: float = LOOK_EVERY) -> Iterator[None]:
    """Show the bar on a terminal inside the block: the time that went by, and the updates noted in ``work``."""
    from tqdm import tqdm

    ended = threading.Event()
    with tqdm(desc="Run", unit="update", disable=None, leave=False) as bar:
        thread = threading.Thread(target=_follow, args=(work, bar, ended, look_every), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _follow(work: Path, bar: Any, ended: threading.Event, look_every: float) -> None:
    while not bar.disable:
        last = ended.wait(look_every)
        bar.n, bar.total = read_progress(work) or (bar.n, bar.total)
        bar.refresh()
        if last:
            return
