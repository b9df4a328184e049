"""A sweep: many runs, each done once, whatever happens in between. The same call goes on where the last one ended.

>>> import tempfile
>>> print(sweep([], tempfile.mkdtemp()))
0 runs: nothing to do.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isonb.errors import fail
from isonb.lab.runs.settings import Planned, plan
from isonb.lab.runs.table import scan
from isonb.lab.sweeps.dask import run_on_dask
from isonb.lab.sweeps.execution import ExecuteError, Prepared, execute, known, prepare
from isonb.lab.sweeps.gpus import visible
from isonb.lab.sweeps.outcomes import Outcome, Report, Status
from isonb.runtime.locks import free, side_by_side


def sweep(
    runs: Iterable[Mapping[str, Any] | Planned],
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    data: str | Path | None = None,
    timeout: float | None = None,
    experiments: str | Path | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    runner: str = "",
    report_to: str = "",
    keep_predictions: bool = False,
) -> Report:
    """Do every run that has no complete record in ``out`` yet, and report on all of them in the order given.

    Every configuration is checked before the first run starts. A run that fails, a full disk or a lost worker leaves
    the other runs alone. Ctrl-C ends the sweep, not the call: the report says so.

    Args:
        runs: configurations, or what :func:`~isonb.lab.sweeps.grids.load_grid` gives; the same run twice is one run.
        out: folder of records, notebooks and checkpoints.
        workers: runs side by side, by default one a GPU, without GPUs one.
        scheduler: the address of a Dask scheduler, or "local" (None is, too): processes of this machine, which listen
            to nobody.
        data, timeout, experiments, runner, report_to, keep_predictions: as for
            :func:`~isonb.lab.sweeps.execution.prepare`; the time limit, in seconds, is that of a run.
        retry_failed: run failed runs again too.
        progress: show a bar.
    """
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        fail(ExecuteError, "workers must be a whole number >= 1", repr(workers), "None takes one a GPU.")
    options: dict[str, Any] = {"data": data, "timeout": timeout, "experiments": experiments, "runner": runner}
    options |= {"report_to": report_to, "keep_predictions": keep_predictions}
    prepared = (prepare(run, out, retry_failed=retry_failed, **options) for run in runs)
    asked = {run.run_id: run for run in prepared}
    ended = {name: outcome for name, run in asked.items() if (outcome := known(run)) and not _left_behind(run)}
    todo = [run for name, run in asked.items() if name not in ended]
    if todo:
        count = min(workers or len(visible()) or 1, len(todo))
        outcomes = _here(todo, count) if scheduler in (None, "local") else run_on_dask(todo, str(scheduler))
        with suppress(KeyboardInterrupt):
            for outcome in _shown(outcomes, len(asked), len(ended), progress):
                ended[outcome.run_id] = outcome
    return Report([ended.get(name) or Outcome(name, "stopped") for name in asked])


def status(out: str | Path, runs: Iterable[Mapping[str, Any] | Planned] | None = None) -> Status:
    """Where the runs of ``out`` stand; with ``runs``, those alone, and which are still to be done."""
    out = Path(out)
    records = scan(out / "records") if (out / "records").is_dir() else None
    planned = None if runs is None else [plan(run).run_id for run in runs]
    good = {} if records is None else records.records
    bad = {} if records is None else {damage.path.stem: damage.reason for damage in records.damaged}
    locks = sorted((out / "locks").glob("*.lock"))
    names = set(good) | set(bad) | {path.stem for path in locks} if planned is None else set(planned)
    complete = tuple(sorted(name for name in names & set(good) if good[name].status == "complete"))
    running = tuple(path.stem for path in locks if path.stem in names - set(complete) and not free(path))
    failed = {name: good[name].error for name in sorted(names & set(good)) if good[name].status == "failed"}
    damaged = {name: bad[name] for name in sorted(names & set(bad))}
    over = {*complete, *running, *failed, *damaged}
    return Status(complete, failed, damaged, running, tuple(n for n in dict.fromkeys(planned or ()) if n not in over))


def _left_behind(run: Prepared) -> bool:
    """Whether a killed sweep has left something of a run that is over."""
    return run.work.exists() or run.unfinished.exists()


def _here(runs: Sequence[Prepared], workers: int) -> Iterator[Outcome]:
    """The outcomes of the runs as they end, each in its own process on this machine."""

    def work(run: Prepared, patient: bool, stop: threading.Event) -> Outcome | None:
        outcome = execute(run, wait=patient, stop=stop)
        return None if outcome.status == "busy" else outcome

    return (outcome for _, outcome in side_by_side(runs, work, workers))


def _shown(outcomes: Iterator[Outcome], total: int, done: int, progress: bool) -> Iterator[Outcome]:
    """The outcomes: with a bar over the runs at a terminal, with a plain line a run in a log."""
    from tqdm import tqdm

    failures, bar_fits = 0, sys.stderr.isatty()
    with tqdm(
        outcomes, total=total, initial=done, desc="Sweep", unit="run", disable=not (progress and bar_fits)
    ) as bar:
        for number, outcome in enumerate(bar, start=done + 1):
            failures += outcome.status in ("failed", "not recorded")
            bar.set_postfix_str(f"{failures} failed" if failures else "", refresh=False)
            if progress and not bar_fits:
                print(f"{number} of {total}  {outcome}", file=sys.stderr, flush=True)
            yield outcome
