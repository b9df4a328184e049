"""How far a run is, noted in its folder of checkpoints for whoever waits for its process."""

from __future__ import annotations

import contextlib
from pathlib import Path

PROGRESS = "progress"  # the file


def note_progress(folder: str | Path, done: int, total: int) -> None:
    """Note the updates of a run, for whoever waits for its process; a disk that refuses is no reason to end it."""
    with contextlib.suppress(OSError):
        (Path(folder) / PROGRESS).write_text(f"{done} {total}", encoding="utf-8")


def read_progress(folder: Path) -> tuple[int, int] | None:
    """Updates done and to do, if the run in ``folder`` has noted them."""
    try:
        done, total = map(int, (folder / PROGRESS).read_text(encoding="utf-8").split())
    except (OSError, ValueError):  # not there yet, or just being written
        return None
    return done, total
