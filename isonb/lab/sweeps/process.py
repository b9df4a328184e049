"""Start the process of one run, wait for its answer, and leave no process behind."""

from __future__ import annotations

import contextlib
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
from isonb.lab.sweeps.child import OUTSIDE, cut
from isonb.runtime.leash import UNLEASHED, Leash

__all__ = ["Answer", "supervise"]

LOOK_EVERY = 0.05  # seconds
LOG_LINES, LOG_BYTES = 3, 10_000  # at the log's end
PIPE = 1 << 20  # bytes, more than a pipe holds
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
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
REFUSED = FULL | {errno.EIO, errno.EROFS}
# write_record's, the system's, and those of torch.save, which keeps the system's to itself
WORDS = ("the disk must take", *map(os.strerror, FULL), "PytorchStreamWriter failed", "] . unexpected pos ")


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
        numbers = re.findall(r"(?:^\[Errno |\(os error )(\d+)[\])]", self.text)
        return any(words in self.text for words in WORDS) or any(int(number) in REFUSED for number in numbers)

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
    assert run.process.stdout is not None
    with run.process.stdout as pipe:
        os.set_blocking(pipe.fileno(), False)
        heard = bytearray()
        try:
            ended = _wait(run.process, pipe.fileno(), heard, timeout, stop)
        finally:
            code = run.end()
        return ended or _answer(bytes(heard), code, log)


def _wait(
    process: subprocess.Popen[bytes], pipe: int, heard: bytearray, timeout: float | None, stop: threading.Event | None
) -> Answer | None:
    """None when the process has ended by itself. What it says is read as it comes: a full pipe would hold it up."""
    start = time.monotonic()
    while _listen(pipe, heard, process.poll()) is None:
        if stop is not None and stop.is_set():
            return Answer("stopped", "the run was stopped before its end")
        if timeout is not None and time.monotonic() - start > timeout:
            return Answer("timeout", f"the run took longer than {timeout:g} seconds")
        time.sleep(LOOK_EVERY)
    return None


def _listen(pipe: int, heard: bytearray, code: int | None) -> int | None:
    """Take what is in the pipe, after the look at the exit code, so that an answer is whole once there is one."""
    with contextlib.suppress(BlockingIOError):
        heard += os.read(pipe, PIPE)
    return code


def _answer(heard: bytes, code: int, log: Path) -> Answer:
    try:
        found = json.loads(heard)
        answer = Answer(str(found["kind"]), str(found["text"]))
    except (ValueError, KeyError, TypeError):
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        words = _last_words(log)
        kind = "KeyboardInterrupt" if words.endswith("KeyboardInterrupt") else "ProcessEnded"  # while Python started
        answer = Answer(kind, cut(f"the process of the run ended with {how}. {words}"))
    if -code in OUTSIDE or code == UNLEASHED or answer.kind == "KeyboardInterrupt":
        return Answer("stopped", f"the run was ended from outside: {answer.text}")
    return answer


def _last_words(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_BYTES))
        return " / ".join(file.read().decode("utf-8", "replace").strip().splitlines()[-LOG_LINES:])
