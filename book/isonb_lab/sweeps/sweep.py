"""A sweep: many runs, each done once, whatever happens in between. The same call goes on where the last one ended.

Runs are processes of this machine, or tasks of a Dask cluster: any scheduler with workers that see the sweep's folder,
the templates and this package. Workers take one run at a time; where a machine has several GPUs, start one a GPU.
Such a scheduler executes whatever a client sends, unencrypted and unasked: give it an address that only your machines
reach, or TLS. The page *Run experiments on other machines* has the commands, also for SLURM and Kubernetes.

>>> import tempfile
>>> print(sweep([], tempfile.mkdtemp()))
0 runs: nothing to do.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail, needs
from isonb_lab.runs.settings import Planned
from isonb_lab.runs.table import Scan, scan
from isonb_lab.runtime.locks import free, run_concurrently
from isonb_lab.sweeps.execution import ExecuteError, Prepared, earlier_outcome, execute, prepare
from isonb_lab.sweeps.gpus import visible
from isonb_lab.sweeps.outcomes import Outcome, Report, Status

CONNECT = 15  # seconds
LOOK_EVERY = 0.05  # seconds between two looks at what has ended
WORKER_POLL_S = 2.0  # seconds between two looks at the workers
RETRIES = 2  # times that a run is given out again after its worker was lost, or its process was ended
NO_WORKER_HINT = "Start one (dask worker --scheduler-file FILE): the runs go on with it. Ctrl-C ends the sweep."


class SchedulerError(InputError):
    """No Dask scheduler answers at the address."""


def sweep(
    runs: Iterable[Planned],
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: bool = True,
    **options: Any,
) -> Report:
    """Do every run that has no complete record in ``out`` yet, and report on all of them in the order given.

    All are prepared before the first one starts. A run that fails, a full disk or a lost worker leaves
    the other runs alone. Ctrl-C ends the sweep, not the call: the report says so.

    Args:
        runs: as :func:`~isonb_lab.sweeps.grids.load_grid` gives them; the same run twice is one run.
        out: folder of records, notebooks and checkpoints.
        workers: runs side by side, by default one a GPU, without GPUs one.
        scheduler: the address of a Dask scheduler, or "local" (None is, too): processes of this machine, which listen
            to nobody.
        progress: show a bar.
        options: those of :func:`~isonb_lab.sweeps.execution.prepare`: data, retry_failed, report_to, ...

    Raises :class:`SchedulerError`, or :class:`~isonb.errors.DependencyError` for a cluster without ``distributed``.
    """
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        fail(ExecuteError, "workers must be a whole number >= 1", repr(workers), "None takes one a GPU.")
    jobs = {run.run_id: run for run in (prepare(run, out, **options) for run in runs)}
    # what a killed sweep has left of a run that is over is still to be put away
    pending = {name for name, run in jobs.items() if run.work.exists() or run.unfinished.exists()}
    ended = {name: outcome for name, run in jobs.items() if (outcome := earlier_outcome(run)) and name not in pending}
    todo = [run for name, run in jobs.items() if name not in ended]
    if todo:
        count = min(workers or len(visible()) or 1, len(todo))
        outcomes = _here(todo, count) if scheduler in (None, "local") else _on_dask(todo, str(scheduler))
        with suppress(KeyboardInterrupt):
            for outcome in _shown(outcomes, len(jobs), len(ended), progress):
                ended[outcome.run_id] = outcome
    return Report([ended.get(name) or Outcome(name, "stopped") for name in jobs])


def status(out: str | Path, runs: Iterable[Planned] | None = None, data: str | Path | None = None) -> Status:
    """Where the runs of ``out`` stand; with ``runs``, those alone, and which are still to be done.

    These are as :func:`sweep` would do them: where rows or weights are others than those of a record, it is another
    run. ``data`` as for :func:`~isonb_lab.sweeps.execution.prepare`.
    """
    out = Path(out)
    records = scan(out / "records") if (out / "records").is_dir() else Scan({}, [])
    planned = None if runs is None else [prepare(run, out, data=data).run_id for run in runs]
    good, bad = records.records, {damage.path.stem: damage.reason for damage in records.damaged}
    locks = sorted((out / "locks").glob("*.lock"))
    names = set(good) | set(bad) | {path.stem for path in locks} if planned is None else set(planned)
    complete = tuple(sorted(name for name in names & set(good) if good[name].status == "complete"))
    running = tuple(path.stem for path in locks if path.stem in names - set(complete) and not free(path))
    failed = {name: good[name].error for name in sorted(names & set(good)) if good[name].status == "failed"}
    damaged = {name: bad[name] for name in sorted(names & set(bad))}
    over = {*complete, *running, *failed, *damaged}
    return Status(complete, failed, damaged, running, tuple(n for n in dict.fromkeys(planned or ()) if n not in over))


def _here(runs: Sequence[Prepared], workers: int) -> Iterator[Outcome]:
    """The outcomes of the runs as they end, each in its own process on this machine."""

    def work(run: Prepared, patient: bool, stop: threading.Event) -> Outcome | None:
        outcome = execute(run, wait=patient, stop=stop)
        return None if outcome.status == "busy" else outcome

    return (outcome for _, outcome in run_concurrently(runs, work, workers))


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


def _on_dask(runs: Sequence[Prepared], scheduler: str) -> Iterator[Outcome]:
    """The outcomes of the runs as they end, one task and one process a run.

    Dask gives the runs of a worker that is lost to another one, and those that were ended from outside, as by the time
    limit of a queue; their locks keep a run from being done twice. After Ctrl-C runs that have begun go on to their
    record, the others don't begin.
    """
    with needs("a sweep on Dask", "cluster"):
        from distributed import Client, as_completed
    try:
        client = Client(scheduler, timeout=CONNECT, name="isonb")
    except (OSError, TypeError, ValueError, TimeoutError) as error:  # TypeError: tls:// without a certificate
        message = f"a Dask scheduler must answer at {scheduler}; got {error}. Start one, or correct it."
        raise SchedulerError(message) from error
    with client:
        pending = {}
        for run in runs:
            key = f"{run.run_id}@{hashlib.sha256(str(run.out).encode()).hexdigest()[:8]}"
            pending[client.submit(_execute, run, key=key, pure=False, retries=RETRIES)] = run
        ended = as_completed(list(pending))
        try:
            for future in _as_they_end(ended, client, scheduler):
                if future.status in ("pending", "lost") and client.status == "running":
                    ended.add(future)  # its outcome went with its worker; the next one meets the record
                else:
                    yield _outcome(future, pending.pop(future))
        except BaseException:
            client.cancel(list(pending), force=True)
            raise


class _EndedOutside(Exception):
    """A run was ended by a signal that says nothing about it: Dask is to give it out again."""


def _execute(run: Prepared) -> Outcome:
    """On the worker: one run."""
    outcome = execute(run)
    if outcome.status == "stopped":
        raise _EndedOutside(outcome.error)
    return outcome


def _as_they_end(ended: Any, client: Any, scheduler: str) -> Iterator[Any]:
    """The futures as they end. Says so, once each time, when there is no worker for the rest."""
    alone, look = False, time.monotonic()
    while ended.count():
        yield from ended.next_batch(block=False)
        time.sleep(LOOK_EVERY)
        if time.monotonic() < look:
            continue
        look, was = time.monotonic() + WORKER_POLL_S, alone
        with suppress(OSError):  # the scheduler has gone: its futures end
            alone = not client.scheduler_info()["workers"]
        if alone and not was:
            print(f"No worker at {scheduler} now. {NO_WORKER_HINT}", file=sys.stderr, flush=True)


def _outcome(future: Any, run: Prepared) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    error = future.exception() if future.status == "error" else None
    if isinstance(error, _EndedOutside):
        return Outcome(run.run_id, "stopped", str(error))
    reason = f"{type(error).__name__}: {error}" if error else "the connection to the scheduler was lost"
    return Outcome(run.run_id, "not recorded", reason)
