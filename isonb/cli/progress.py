"""A bar over a run that another process does: how far it is, and the time left."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isonb.runtime.files import read_progress

__all__ = ["progress"]

LOOK_EVERY = 0.5  # seconds


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
        done, total = read_progress(work) or (bar.n, bar.total)
        if bar.total is None and total is not None:
            bar.initial = done  # a run taken up again did the first updates another time
            bar.reset(total)
            bar.initial = done
        bar.n = done
        bar.refresh()
        if last:
            return
