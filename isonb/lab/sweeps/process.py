"""Start the process of one run, wait for its answer, and leave no process behind."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isonb.lab.sweeps import child

__all__ = ["Answer", "supervise"]

LOOK_EVERY = 0.05  # seconds
GRACE = 10.0  # seconds that a run gets to end its kernel
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
    command = [sys.executable, "-P", child.__file__]
    with log.open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env={**DEFAULTS, **os.environ, **FIXED, **environment},
            pass_fds=tuple(locks),
            start_new_session=True,  # Ctrl-C reaches us alone; we end it
        )
    try:
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once: its exit code says so
            process.stdin.write((json.dumps(dict(job)) + "\n").encode())
            process.stdin.flush()
        return _wait(process, timeout, stop) or _answer(process, log)
    finally:
        _end(process)


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


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close its stdin, at which it ends its kernel and itself; make sure of it."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
