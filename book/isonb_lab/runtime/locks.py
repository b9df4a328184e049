"""Locks between processes, and threads that wait for processes side by side.

A lock is a file that one process at a time holds, and that falls free when its holders are gone.

The lock belongs to the open file, so a child process that inherits it (``pass_fds``) goes on holding it when its parent
is killed. On a shared file system it works between machines where ``flock`` does (NFS since version 4, Lustre with
``-o flock``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

LOOK_EVERY = 0.1  # seconds


@contextlib.contextmanager
def file_lock(paths: Sequence[Path], *, wait: bool = True, stop: threading.Event | None = None) -> Iterator[int | None]:
    """Hold the first of the files that falls free and give its descriptor; None when we don't get any.

    Waits as long as others hold all of them, unless ``wait`` is False or ``stop`` is set. Makes the folders. The files
    stay: to remove one would let two processes hold two files of one name.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.lock"
    >>> with file_lock([path]) as first, file_lock([path], wait=False) as second:
    ...     (first is None, second is None)
    (False, True)
    """
    stop = threading.Event() if stop is None else stop
    files = []
    try:
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            files.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o666))
        got = _first(files)
        while got is None and files and wait and not stop.wait(LOOK_EVERY):
            got = _first(files)
        yield got
    finally:
        for file in files:
            os.close(file)


def free(path: Path) -> bool:
    """Whether no process holds the lock now (or there is none yet).

    >>> free(Path("/nowhere/at/all.lock"))
    True
    """
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(file)


def _first(files: Sequence[int]) -> int | None:
    for file in files:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
    return None


GLANCE_EVERY = 0.5  # seconds; a wait without an end would hold up Ctrl-C

T = TypeVar("T")
R = TypeVar("R")


def run_concurrently(
    items: Sequence[T], work: Callable[[T, bool, threading.Event], R | None], workers: int
) -> Iterator[tuple[T, R]]:
    """``work(item, False, stop)`` of each item, ``workers`` at a time; each item with what came of it, as they end.

    Where that is None, another process is at the item. Then it waits for its turn behind the others, as ``work(item,
    True, stop)``: so two commands share what both are asked for. Ctrl-C, or leaving the loop early, sets ``stop``; the
    call returns when what runs has ended by it.

    >>> sorted(run_concurrently([1, 2], lambda number, patient, stop: -number, 2))
    [(1, -1), (2, -2)]
    """
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as threads:
        waiting = {threads.submit(work, item, False, stop): item for item in items}
        try:
            while waiting:
                ended, _ = wait(waiting, timeout=GLANCE_EVERY, return_when=FIRST_COMPLETED)
                for future in ended:
                    item, result = waiting.pop(future), future.result()
                    if result is None:
                        waiting[threads.submit(work, item, True, stop)] = item
                    else:
                        yield item, result
        finally:
            stop.set()
            for future in waiting:
                future.cancel()
