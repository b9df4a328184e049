"""A process that works for the one that started it, never outlives it, and leaves no temporary file; and its notebooks.

:class:`SupervisedProcess` starts this file as a script in a new Python. It reads what is to be done, one line of JSON,
from stdin and gives it to a function, :func:`notebook` where none is named. stdin stays open as long as the starter
lives: when that ends, however it came about, the process kills all that it has started, removes its temporary folder
and kills itself. The last line that it says is how its work ended. Nothing of isonb is imported here, which would bring
torch: that is for the kernels.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

ENDING = threading.Event()  # set when the starter is gone: what fails from then on says nothing about the work
ATTEMPTS = 20  # to end what may start anew meanwhile
GRACE = 10.0  # seconds that a process gets to end what it has started
LOOK_EVERY = 0.05  # seconds
LONGEST_SOCKET = 90  # bytes; systems allow about 104 with the name in the folder
LONGEST_TEXT = 2000  # characters; an error may quote a whole file, and a pipe holds some kilobytes
LOG_LINES, LOG_BYTES = 3, 10_000  # at the log's end
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of a traceback in a notebook
PATIENCE = 20  # so much longer than a save of a notebook took must pass before the next
START_TIMEOUT = 300  # seconds a kernel may take to start on a busy machine
OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # whoever ends a process by these has nothing against its work
# What one process a notebook needs; values that are set already stay.
DEFAULTS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONHASHSEED": "0"}
# A bar would leave a widget or stderr in the notebook; the kernel is that of this Python, not one set up for the user.
FIXED = {
    "TQDM_DISABLE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "PYTHONSAFEPATH": "1",  # a file torch.py in the folder that a run is started in isn't torch
}
NO_FOLDER = "--InteractiveShellApp.ignore_cwd=True"  # the same of a kernel, which puts the folder back


@dataclass(frozen=True)
class Answer:
    """How the work ended: ``kind`` is the error's type ("" for none, "stopped"), ``text`` its words.

    ``peak_mib``: the memory of the largest process that it had started, such as a kernel.
    """

    kind: str = ""
    text: str = ""
    peak_mib: int = 0

    def __str__(self) -> str:
        """Type and words, as a traceback ends."""
        return f"{self.kind}: {self.text}" if self.kind else ""


class SupervisedProcess:
    """A process at work on ``function(work)``; ``function`` is ``MODULE:NAME``, or "" for :func:`notebook`.

    What it says goes to the file ``log``. Its folder for temporary files, and for what kernels write about themselves,
    goes with it. It inherits ``locks``. Ctrl-C doesn't reach it: whoever starts it has to :meth:`wait` for it.
    """

    def __init__(
        self,
        work: Mapping[str, Any],
        log: Path,
        *,
        function: str = "",
        environment: Mapping[str, str] | None = None,
        locks: Sequence[int] = (),
    ) -> None:
        self.log, self.folder = log, f"{tempfile.gettempdir()}/isonb-leash-{secrets.token_hex(6)}"
        folders = {"TMPDIR": self.folder, "JUPYTER_RUNTIME_DIR": self.folder, "PYTHONPATH": _search_path(self.folder)}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as report:
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__, self.folder, function],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=report,
                env={**DEFAULTS, **os.environ, **FIXED, **(environment or {}), **folders},
                pass_fds=locks,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once: its exit code says so
            self.process.stdin.write((json.dumps(dict(work)) + "\n").encode())
            self.process.stdin.flush()

    def wait(self, stop: threading.Event) -> Answer:
        """Wait until it ends or ``stop`` is set; none of its processes is left then."""
        try:
            while self.process.poll() is None:
                if stop.wait(LOOK_EVERY):
                    return Answer("stopped", "the run was stopped before its end")
            return self._answer(self.process.returncode)
        finally:
            self._end()

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        _remove(self.folder)

    def _answer(self, code: int) -> Answer:
        """What it has said itself, or what its exit code and its log say."""
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)  # a process that was left behind may hold it open
        try:
            answer = Answer(**json.loads(self.process.stdout.read() or b""))
        except (ValueError, TypeError):
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            answer = Answer("ProcessEnded", f"the process of the run ended with {how}. {self._last_words()}")
        if -code in OUTSIDE or answer.kind == "KeyboardInterrupt":
            return Answer("stopped", f"the run was ended from outside: {answer.text}")
        return answer

    def _last_words(self) -> str:
        text = self.log.read_bytes()[-LOG_BYTES:].decode("utf-8", "replace")
        return " / ".join(text.strip().splitlines()[-LOG_LINES:])


def notebook(work: Mapping[str, Any]) -> None:
    """Execute the notebook ``source`` (``.md`` or ``.ipynb``) by papermill, with ``parameters``, as ``target``."""
    import jupytext
    import papermill
    from papermill.engines import NotebookExecutionManager

    _save_seldom(NotebookExecutionManager)
    kernel = {"kernel_name": "python3", "start_timeout": START_TIMEOUT, **_sockets()}
    options = {"parameters": work["parameters"], "cwd": work["cwd"], "progress_bar": False}
    options["extra_arguments"] = [NO_FOLDER]
    Path(work["target"]).parent.mkdir(parents=True, exist_ok=True)
    source = jupytext.read(work["source"], fmt="md:myst" if work["source"].endswith(".md") else "ipynb")
    papermill.execute_notebook(source, work["target"], **kernel, **options)


def _search_path(first: str) -> str:
    """PYTHONPATH with a folder before it: the launcher of a kernel drops the first entry where that is its folder."""
    return os.pathsep.join([first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])


def _save_seldom(manager: Any) -> None:
    """Let papermill save only when the last save has cost no more than a twentieth of the time since.

    It saves before and after every cell. A chapter has a hundred cells and megabytes of charts, and saving them took
    longer than running it. The end, good or bad, is always saved.
    """
    save = manager.save

    def seldom(self: Any, **options: Any) -> None:
        began = self.now()
        if self.end_time is None and began < self.last_save_time + PATIENCE * getattr(self, "cost", timedelta(0)):
            return
        save(self, **options)
        self.cost = self.now() - began

    manager.save = seldom


def _sockets() -> dict[str, Any]:
    """Options for a kernel with sockets in our folder: ports, many kernels that start at once might share.

    None where the folder's name is too long for a socket.
    """
    from traitlets.config import Config

    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) >= LONGEST_SOCKET:
        return {}
    return {"config": Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})}


def _main(folder: str, function: str) -> int:
    """Do the work on stdin and say how it ended; the exit code."""
    import psutil  # noqa: F401  (before the work, so that the watch is ready when that begins)

    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed goes to the log
    os.mkdir(folder, 0o700)
    order = sys.stdin.readline()
    threading.Thread(target=_watch, args=(0, folder), daemon=True).start()
    if not order:
        threading.Event().wait()  # the starter has gone already, and the watch ends us
    kind, text = "", ""
    try:
        module, _, name = function.partition(":")
        (getattr(importlib.import_module(module), name) if function else notebook)(json.loads(order))
    except SystemExit as ended:
        kind, text = ("ExitCode", str(ended.code)) if ended.code else ("", "")
    except BaseException as error:
        kind, text = type(error).__name__, str(error)
        if hasattr(error, "ename") and hasattr(error, "evalue"):  # papermill's: the error inside the notebook
            kind, text = error.ename, error.evalue
        lines = getattr(error, "traceback", None) or traceback.format_exception(error)
        sys.stderr.write(COLOURS.sub("", "\n".join(map(str, lines))) + "\n")  # to the log, whole
    if ENDING.is_set():
        threading.Event().wait()  # the watch has work to do, and ends us
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # of those that have ended
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere
    report.write(json.dumps(asdict(Answer(kind, _cut(text), round(peak / unit)))))
    report.flush()
    _remove(folder)  # the starter does so, too, unless it is killed just now
    return 1 if kind else 0


def _cut(text: str) -> str:
    """An error fit for a record: without the middle of a long one.

    >>> _cut("short"), len(_cut("long" * 100_000)) <= LONGEST_TEXT
    ('short', True)
    """
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - 500]} [... {len(text)} characters ...] {text[-400:]}"


def _watch(pipe: int, folder: str) -> None:
    """Wait for the end of the starter, then end all that this process has started, and itself."""
    while os.read(pipe, 1024):
        pass
    ENDING.set()
    _remove(folder)
    os._exit(1)


def _remove(folder: str) -> None:
    """Kill the processes whose temporary folder this is, or lies in it, and remove it; again, if one has just begun."""
    for _ in range(ATTEMPTS):
        _kill_all(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.isdir(folder):
            return


def _kill_all(folder: str) -> None:
    import psutil

    def ours(process: Any) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            return process.pid != os.getpid() and str(process.environ().get("TMPDIR", "")).startswith(folder)
        return False

    for _ in range(ATTEMPTS):
        running = [process for process in psutil.process_iter() if ours(process)]
        if not running:
            return
        for process in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(running, timeout=1)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
