"""A few runs handed back as records, on all cores where that is sooner: for chapters; sweeps are for many."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import Planned, plan

CORES = "ISONB_CORES"  # set by who runs several chapters at once: how many cores are left to each
START = 6.0  # seconds that processes take before their first run


def run_all(configs: Iterable[Mapping[str, Any]], *, workers: int | None = None) -> list[Record]:
    """The records of all ``configs``, in their order. Nothing is written.

    Every configuration is checked before the first run starts. Runs go one after the other in this process. When the
    last one's time tells that other processes would pay for their start, these do the rest: ``workers`` of them, by
    default as many as cores, or as :data:`CORES` in the environment says, at most four. After an error no further run
    begins.
    """
    todo = [plan(config) for config in configs]
    workers = workers or min(4, int(os.environ.get(CORES) or os.cpu_count() or 1))
    _import_engines()
    records: list[Record] = []
    while len(records) < len(todo):
        began = time.perf_counter()
        records.append(_run(todo[len(records)]))
        rest, took = todo[len(records) :], time.perf_counter() - began
        count = min(workers, len(rest))
        if count > 1 and (len(rest) - len(rest) / count) * took > START:
            with worker_pool(count) as pool:
                records += pool.map(_run, rest)
    return records


def worker_pool(count: int) -> ProcessPoolExecutor:
    """Processes that have imported what runs need, and that end with this one, even if it is killed."""
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _init_worker)


def _init_worker() -> None:
    threading.Thread(target=_watch_parent, daemon=True).start()
    _import_engines()


def _watch_parent() -> None:
    """Waits for the parent's end, then leaves."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


@functools.cache
def _import_engines() -> None:
    """Import what runs need, once. It stays, so collections leave it out: each would take a run a third of a second."""
    import isonb_lab.engines.trainer  # noqa: F401

    gc.freeze()


def _run(planned: Planned) -> Record:
    """One run; the process it is in does nothing else and has one thread, so that runs don't slow each other down."""
    import torch

    from isonb_lab.engines.experiment import run

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run(planned, progress=False)
    finally:
        torch.set_num_threads(threads)
