"""How far a run is: one small file in its folder of checkpoints, for whoever waits for its process."""

from __future__ import annotations

import time
from pathlib import Path

__all__ = ["Progress", "read_progress"]

FILE = "progress"
EVERY = 0.5  # seconds between two notes


class Progress:
    """Notes updates done and to do in ``folder``, at most twice a second."""

    def __init__(self, folder: str | Path) -> None:
        self.file, self.noted = Path(folder) / FILE, -EVERY

    def note(self, done: int, total: int) -> None:
        """Note it, unless it has just been noted. A disk that refuses is no reason to end a run."""
        if time.monotonic() - self.noted >= EVERY:
            self.noted = time.monotonic()
            try:
                self.file.write_text(f"{done} {total}", encoding="utf-8")
            except OSError:
                return


def read_progress(folder: Path) -> tuple[int, int] | None:
    """Updates done and to do, if the run in ``folder`` has noted them."""
    try:
        done, total = map(int, (folder / FILE).read_text(encoding="utf-8").split())
    except (OSError, ValueError):  # not there yet, or just being written
        return None
    return done, total
