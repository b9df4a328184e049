"""Start the process of one run, wait for its answer, and leave no process behind."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isonb.lab.sweeps import child
from isonb.runtime.leash import Leash

__all__ = ["Answer", "supervise"]

LOOK_EVERY = 0.05  # seconds
LOG_LINES = 3
# What one process a run needs; values that are set already stay.
DEFAULTS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONHASHSEED": "0"}
# A bar would leave a widget or stderr in the notebook; the kernel is that of this Python, not one set up for the user.
FIXED = {
    "TQDM_DISABLE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
REFUSED = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}
DISK_FULL = ("the disk must take", os.strerror(errno.ENOSPC), os.strerror(errno.EFBIG), "unexpected pos")


@dataclass(frozen=True)
class Answer:
    """How the process ended: ``kind`` is the error's type ("" for none, "stopped", "timeout"), ``text`` its words."""

    kind: str = ""
    text: str = ""

    @property
    def disk(self) -> bool:
        """Whether the disk refused something, which says nothing about the run.

        >>> Answer("OSError", "[Errno 28] No space left on device").disk, Answer("OSError", "[Errno 2] no file").disk
        (True, False)
        """
        number = re.match(r"\[Errno (\d+)\]", self.text)
        return any(words in self.text for words in DISK_FULL) or (number is not None and int(number[1]) in REFUSED)

    def __str__(self) -> str:
        """Type and words, as a traceback ends."""
        return f"{self.kind}: {self.text}" if self.kind else ""


def supervise(
    job: Mapping[str, Any],
    log: Path,
    *,
    environment: Mapping[str, str],
    locks: Sequence[int] = (),
    timeout: float | None = None,
    stop: threading.Event | None = None,
) -> Answer:
    """Run ``job`` in a process of its own that inherits ``locks``; its output goes to ``log``.

    The process is :mod:`isonb.lab.sweeps.child`. Ends it, with its kernel, after ``timeout`` seconds, when ``stop`` is
    set, and when this function is left early.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as said:
        run = Leash(
            f"{child.__file__}:main",
            job,
            environment={**DEFAULTS, **os.environ, **FIXED, **environment},
            locks=locks,
            stdout=subprocess.PIPE,
            stderr=said,
        )
    try:
        return _wait(run.process, timeout, stop) or _answer(run.process, log)
    finally:
        run.end()
        assert run.process.stdout is not None
        run.process.stdout.close()


def _wait(process: subprocess.Popen[bytes], timeout: float | None, stop: threading.Event | None) -> Answer | None:
    """None when the process has ended by itself."""
    start = time.monotonic()
    while process.poll() is None:
        if stop is not None and stop.is_set():
            return Answer("stopped", "the run was stopped before its end")
        if timeout is not None and time.monotonic() - start > timeout:
            return Answer("timeout", f"the run took longer than {timeout:g} seconds")
        time.sleep(LOOK_EVERY)
    return None


def _answer(process: subprocess.Popen[bytes], log: Path) -> Answer:
    assert process.stdout is not None
    try:
        found = json.loads(process.stdout.read())
        return Answer(str(found["kind"]), str(found["text"]))
    except (ValueError, KeyError, TypeError):
        code = process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LOG_LINES:]
        return Answer("ProcessEnded", f"the process of the run ended with {how}. " + " / ".join(lines))
