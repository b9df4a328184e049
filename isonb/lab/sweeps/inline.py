"""A few runs side by side in processes of their own, their records handed back: for chapters; sweeps are for many."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve

__all__ = ["CORES", "run_all"]

CORES = "ISONB_CORES"  # set by who runs several chapters at once: how many cores are left to each


def run_all(configs: Iterable[Mapping[str, Any]], *, workers: int | None = None) -> list[Record]:
    """The records of all ``configs``, in their order. Nothing is written.

    Every configuration is checked before the first run starts. ``workers``: processes, by default as many as cores, or
    as :data:`CORES` in the environment says, at most four and no more than runs; one process runs them here. An error
    in a run is raised after the others ended.
    """
    todo = [resolve(config) for config in configs]
    count = min(workers or min(4, _cores()), len(todo))
    if count <= 1:
        return [_run(config) for config in todo]
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _leave_with_parent) as pool:
        return list(pool.map(_run, todo))


def _cores() -> int:
    return int(os.environ.get(CORES) or os.cpu_count() or 1)


def _leave_with_parent() -> None:
    """Ends this process when the one that started it is gone; a killed kernel's workers would wait for ever."""
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    """Waits for the parent's end, then leaves."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _run(config: Mapping[str, Any]) -> Record:
    """One run; the process it is in does nothing else and has one thread, so that runs don't slow each other down."""
    import torch

    from isonb.lab.engines.experiment import run

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return run(config, progress=False)
    finally:
        torch.set_num_threads(threads)
