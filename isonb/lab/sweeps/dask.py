"""Many runs on a Dask cluster: one task a run, one process a run, and no run lost with a worker.

A cluster is any Dask scheduler with workers that see the sweep's folder, the templates and this package. Workers take
one run at a time; where a machine has several GPUs, start one worker a GPU::

    dask scheduler --scheduler-file cluster.json
    CUDA_VISIBLE_DEVICES=0 dask worker --scheduler-file cluster.json --nthreads 1 --memory-limit 0
    CUDA_VISIBLE_DEVICES=1 dask worker --scheduler-file cluster.json --nthreads 1 --memory-limit 0

Such a scheduler executes whatever a client sends, unencrypted and unasked. Give it an address that only your machines
reach, or TLS (the page *Run experiments* shows how).

SLURM (dask-jobqueue) and Kubernetes (dask-kubernetes) start the same scheduler and workers by other means.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from isonb.errors import InputError, needs
from isonb.lab.sweeps.execution import Prepared, execute
from isonb.lab.sweeps.outcomes import Outcome

CONNECT = 15  # seconds
LOOK_EVERY = 0.05  # seconds between two looks at what has ended
ALONE = 2.0  # seconds between two looks at the workers
AGAIN = 2  # times that a run is given out again after its worker was lost, or its process was ended
GOES_ON = "Start one (dask worker --scheduler-file FILE): the runs go on with it. Ctrl-C ends the sweep."


class SchedulerError(InputError):
    """No Dask scheduler answers at the address."""


def run_on_dask(runs: Sequence[Prepared], scheduler: str) -> Iterator[Outcome]:
    """The outcomes of the runs as they end, on the cluster whose scheduler has this address.

    Dask gives the runs of a worker that is lost to another one, and those that were ended from outside, as by the time
    limit of a queue; their locks keep a run from being done twice. While there is no worker, it says so. After Ctrl-C
    runs that have begun go on to their record, the others don't begin.
    Raises :class:`SchedulerError`, or :class:`~isonb.errors.DependencyError` without ``distributed``.
    """
    with needs("a sweep on Dask", "cluster"):
        from distributed import as_completed
    with _client(scheduler) as client:
        left = {}
        for run in runs:
            key = f"{run.run_id}@{hashlib.sha256(str(run.out).encode()).hexdigest()[:8]}"
            left[client.submit(_execute, run, key=key, pure=False, retries=AGAIN)] = run
        ended = as_completed(list(left))
        try:
            for future in _as_they_end(ended, client, scheduler):
                if future.status in ("pending", "lost") and client.status == "running":
                    ended.add(future)  # its outcome went with its worker; the next one meets the record
                else:
                    yield _outcome(future, left.pop(future))
        except BaseException:
            client.cancel(list(left), force=True)
            raise


def _client(scheduler: str) -> Any:
    from distributed import Client

    try:
        return Client(scheduler, timeout=CONNECT, name="isonb")
    except (OSError, TypeError, ValueError, TimeoutError) as error:  # TypeError: tls:// without a certificate
        raise SchedulerError(
            f"a Dask scheduler must answer at {scheduler}; got {error}. Start one, or correct it."
        ) from error


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
        if time.monotonic() >= look:
            was, alone, look = alone, _no_worker(client), time.monotonic() + ALONE
            if alone and not was:
                print(f"No worker at {scheduler} now. {GOES_ON}", file=sys.stderr, flush=True)


def _no_worker(client: Any) -> bool:
    with suppress(OSError):  # the scheduler has gone: its futures end
        return not client.scheduler_info()["workers"]
    return False


def _outcome(future: Any, run: Prepared) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    reason = "the connection to the scheduler was lost"
    if future.status == "error":
        error = future.exception()
        if isinstance(error, _EndedOutside):
            return Outcome(run.run_id, "stopped", str(error))
        reason = f"{type(error).__name__}: {error}"
    return Outcome(run.run_id, "not recorded", reason)
