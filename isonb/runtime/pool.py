"""Work of many processes side by side: threads that do no more than wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

__all__ = ["side_by_side"]

LOOK_EVERY = 0.5  # seconds; a wait without an end would hold up Ctrl-C

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(
    items: Sequence[T], work: Callable[[T, bool, threading.Event], R | None], workers: int
) -> Iterator[tuple[T, R]]:
    """``work(item, False, stop)`` of each item, ``workers`` at a time; each item with what came of it, as they end.

    Where that is None, another process is at the item. Then it waits for its turn behind the others, as ``work(item,
    True, stop)``: so two commands share what both are asked for. Ctrl-C, or leaving the loop early, sets ``stop``; the
    call returns when what runs has ended by it.

    >>> sorted(side_by_side([1, 2], lambda number, patient, stop: -number, 2))
    [(1, -1), (2, -2)]
    """
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as threads:
        waiting = {threads.submit(work, item, False, stop): item for item in items}
        try:
            while waiting:
                ended, _ = wait(waiting, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED)
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
