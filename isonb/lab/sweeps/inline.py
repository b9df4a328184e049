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

from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import Planned, plan

CORES = "ISONB_CORES"  # set by who runs several chapters at once: how many cores are left to each
START = 6.0  # seconds a process takes before its first run
AHEAD = 2  # most runs that one of them is given before


def run_all(configs: Iterable[Mapping[str, Any]], *, workers: int | None = None) -> list[Record]:
    """The records of all ``configs``, in their order. Nothing is written.

    Every configuration is checked before the first run starts. Runs go one after the other in this process. When the
    last one's time tells that other processes would pay for their start, these take some of the rest: ``workers``
    processes in all, by default as many as cores, or as :data:`CORES` in the environment says, at most four. After an
    error here no further run begins; one in another process is raised when the runs of this one are over.
    """
    todo = [plan(config) for config in configs]
    others = min(workers or min(4, _cores()), len(todo)) - 1
    _get_ready()
    records: list[Record] = []
    while len(records) < len(todo):
        began = time.perf_counter()
        records.append(_run(todo[len(records)]))
        rest, took = todo[len(records) :], time.perf_counter() - began
        if others > 0 and (len(rest) - AHEAD) * took > START:
            return records + _shared(rest, others)
    return records


def _shared(todo: list[Planned], others: int) -> list[Record]:
    """Runs of which ``others`` processes take some; this one takes what none of them was given."""
    with ProcessPoolExecutor(others, multiprocessing.get_context("spawn"), get_ready_to_help) as pool:
        theirs = [pool.submit(_run, config) for config in todo]
        try:
            mine = {k: _run(config) for k, config in enumerate(todo) if theirs[k].cancel()}
            return [mine[k] if k in mine else future.result() for k, future in enumerate(theirs)]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _cores() -> int:
    return int(os.environ.get(CORES) or os.cpu_count() or 1)


@functools.cache
def _get_ready() -> None:
    """Import what runs need, once. It stays, so collections leave it out: each would take a run a third of a second."""
    import isonb.lab.engines.trainer  # noqa: F401

    gc.freeze()


def get_ready_to_help() -> None:
    """The same in a process that ends with the one that started it: a killed kernel's would wait for ever."""
    threading.Thread(target=_watch_parent, daemon=True).start()
    _get_ready()


def _watch_parent() -> None:
    """Waits for the parent's end, then leaves."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _run(planned: Planned) -> Record:
    """One run; the process it is in does nothing else and has one thread, so that runs don't slow each other down."""
    import torch

    from isonb.lab.engines.experiment import run

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run(planned, progress=False)
    finally:
        torch.set_num_threads(threads)
