"""A process that does one job, never outlives the process that started it, and leaves no temporary file.

:class:`Leash` starts this file as a script in a new Python. It reads its job, one line of JSON, from stdin and gives it
to a function. stdin stays open as long as the starter lives: when it ends, however that came about, the process kills
all that it has started, removes its temporary folder and kills itself. Scripts may import this module, and need not
import isonb for it, which brings torch: that is for the kernels they start.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ENDING", "UNLEASHED", "Leash", "scratch", "sockets"]

ENDING = threading.Event()  # set when the starter is gone: what fails from then on says nothing about the job
UNLEASHED = 75  # exit code of a process that ended because its starter was gone
GRACE = 10.0  # seconds that a process gets to end what it has started
PREFIX = "isonb-run-"  # of folders that are locked as long as a process needs them
LONGEST_SOCKET = 90  # bytes; systems allow about 104 with the name in the folder


class Leash:
    """A process at work on ``function(job)``; ``function`` is ``FILE.py:NAME`` or ``MODULE:NAME``.

    Its folder for temporary files, and for what kernels write about themselves, goes with it. It inherits ``locks``;
    ``options`` are those of :class:`subprocess.Popen`. Ctrl-C doesn't reach it: end it with :meth:`end`.
    """

    def __init__(
        self,
        function: str,
        job: Mapping[str, Any],
        *,
        environment: Mapping[str, str],
        locks: Sequence[int] = (),
        **options: Any,
    ) -> None:
        self.folder, self._lock = _scratch()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__, self.folder, function],
                stdin=subprocess.PIPE,
                env={**environment, "TMPDIR": self.folder, "JUPYTER_RUNTIME_DIR": self.folder},
                pass_fds=(*locks, self._lock),
                start_new_session=True,
                **options,
            )
        except BaseException:
            self._clean()
            raise
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died at once: its exit code says so
            self.process.stdin.write((json.dumps(dict(job)) + "\n").encode())
            self.process.stdin.flush()

    def end(self) -> int:
        """End the process, and all it has started, if it still runs; its exit code (below 0: a signal's number).

        To end it twice does no harm.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
        code = self.process.wait()
        _kill_orphans(self.folder)
        self._clean()
        return code

    def _clean(self) -> None:
        if self._lock >= 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def sockets() -> dict[str, Any]:
    """Options of nbclient for a kernel with sockets in our folder: ports, many kernels that start at once might share.

    None where the folder's name is too long for a socket.
    """
    from traitlets.config import Config

    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) >= LONGEST_SOCKET:
        return {}
    return {"config": Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})}


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder, removed at the end; if this process is killed, when the next one is made."""
    folder, lock = _scratch()
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _scratch() -> tuple[str, int]:
    """A new temporary folder and its lock. Folders whose holders were all killed at once are removed on the way."""
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = _locked(old)
            shutil.rmtree(old, ignore_errors=True)
            os.close(lock)
    made = tempfile.mkdtemp(prefix="isonb-")
    lock = _locked(made)
    folder = str(Path(made).with_name(PREFIX + Path(made).name))  # by the name that others look for, it is locked
    os.rename(made, folder)
    return folder, lock


def _locked(folder: str | Path) -> int:
    """Lock a folder, or OSError: the lock is held as long as a process has it open."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _main(folder: str, function: str) -> int:
    """Do the job on stdin; the exit code."""
    import psutil  # before the work, so that the watch is ready when that begins

    sys.modules["isonb.runtime.leash"] = sys.modules[__name__]
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_watch, args=(0, folder, psutil), daemon=True).start()
    try:
        return int(_named(function)(job) or 0)
    finally:
        if ENDING.is_set():
            threading.Event().wait()  # the watch has work to do, and ends us


def _named(function: str) -> Callable[[Mapping[str, Any]], int | None]:
    where, _, name = function.rpartition(":")
    found = runpy.run_path(where) if where.endswith(".py") else vars(importlib.import_module(where))
    return found[name]  # type: ignore[no-any-return]


def _watch(pipe: int, folder: str, psutil: Any) -> None:
    """Wait for the end of the starter, then end all that this process has started, and itself."""
    while os.read(pipe, 1024):
        pass
    ENDING.set()
    _kill_descendants(psutil)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(UNLEASHED)


def _kill_descendants(psutil: Any) -> None:
    """Kill children and theirs."""
    _kill_all(lambda: psutil.Process().children(recursive=True), psutil)


def _kill_orphans(folder: str) -> None:
    """Kill what a process has left that ended before it: no children of ours, but the folder is theirs too."""
    import psutil

    def ours(process: Any) -> bool:
        with contextlib.suppress(psutil.Error, OSError):
            return bool(process.environ().get("TMPDIR") == folder)
        return False

    _kill_all(lambda: [process for process in psutil.process_iter() if ours(process)], psutil)


def _kill_all(look: Callable[[], list[Any]], psutil: Any) -> None:
    """Kill what ``look`` finds; look again, as one of them may just have started another."""
    for _ in range(20):
        found = look()
        if not found:
            return
        for process in found:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(found, timeout=1)
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
