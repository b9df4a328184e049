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
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from isonb.checks import InputError, needs
from isonb.lab.execute import Job, execute
from isonb.lab.outcomes import Outcome

__all__ = ["SchedulerError", "run_on_dask"]

CONNECT = 15  # seconds


class SchedulerError(InputError):
    """No Dask scheduler answers at the address."""


def run_on_dask(jobs: Sequence[Job], scheduler: str, workers: int) -> Iterator[Outcome]:
    """The outcomes of the jobs as they end, on the cluster at ``scheduler``; "local" starts one with ``workers``.

    Dask gives the runs of a worker that is lost to another one; their locks keep a run from being done twice. Ctrl-C
    stops a local cluster with all its runs. On another one, runs that have begun go on to their record, the others
    don't begin. Raises :class:`SchedulerError`, or :class:`~isonb.checks.DependencyError` without ``distributed``.
    """
    with needs("a sweep on Dask", "cluster"):
        from distributed import as_completed
    with ExitStack() as stack:
        client = _client(stack, scheduler, workers)
        futures = {}
        for job in jobs:
            key = f"{job.run_id}@{hashlib.sha256(str(job.out).encode()).hexdigest()[:8]}"
            futures[client.submit(execute, job, key=key, pure=False, retries=2)] = job
        left = dict(futures)
        try:
            for future in as_completed(futures):
                yield _outcome(future, left.pop(future))
        except KeyboardInterrupt:
            client.cancel(list(left), force=True)
            for job in left.values():
                yield Outcome(job.run_id, "stopped")


def _client(stack: ExitStack, scheduler: str, workers: int) -> Any:
    from distributed import Client, LocalCluster

    if scheduler == "local":
        options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "memory_limit": 0}
        quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        return stack.enter_context(Client(stack.enter_context(LocalCluster(n_workers=workers, **options, **quiet))))
    try:
        client = stack.enter_context(Client(scheduler, timeout=CONNECT, name="isonb"))
    except (OSError, TypeError, ValueError, TimeoutError) as error:  # TypeError: tls:// without a certificate
        raise SchedulerError(
            f"a Dask scheduler must answer at {scheduler}; got {error}. Start one, or correct it."
        ) from error
    if not client.scheduler_info()["workers"]:
        print(f"No worker has joined {scheduler} yet; the runs begin when one does.", file=sys.stderr)
    return client


def _outcome(future: Any, job: Job) -> Outcome:
    if future.status == "finished":
        found: Outcome = future.result()
        return found
    reason = "the connection to the scheduler was lost"
    if future.status == "error":
        error = future.exception()
        reason = f"{type(error).__name__}: {error}"
    return Outcome(job.run_id, "not recorded", reason)
