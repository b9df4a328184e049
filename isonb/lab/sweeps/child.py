"""The process of one run: it executes one notebook and never outlives the process that started it.

Started as a script (:mod:`isonb.lab.sweeps.process`), so that it needs neither torch nor isonb itself: those are for
the notebook's kernel. It reads its job, one line of JSON, from stdin, and answers with one line on stdout; whatever
else is printed goes to stderr, the run's log. stdin stays open as long as the starter lives: when it ends, however that
came about, this process kills its kernel and itself, and with it falls the run's lock.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["main", "notebook", "unfinished"]

ENDING = threading.Event()  # set when the starter is gone: what fails from then on says nothing about the run
FOLDERS: list[str] = []  # temporary ones, to be removed at the end
LONGEST_SOCKET = 90  # bytes; systems allow about 104 with the name in the folder
START_TIMEOUT = 300  # seconds a kernel may take to start on a busy machine


def main() -> int:
    """Do the job on stdin; 0 when it went well."""
    job = json.loads(sys.stdin.readline())
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    import psutil  # before the work, so that the watch is ready when that begins

    threading.Thread(target=_watch, args=(0, psutil), daemon=True).start()
    try:
        _named(job["runner"])(job)
        found = {"kind": "", "text": ""}
    except BaseException as error:
        found = {"kind": type(error).__name__, "text": str(error)}
        if hasattr(error, "ename") and hasattr(error, "evalue"):  # papermill's: the error inside the notebook
            found = {"kind": error.ename, "text": error.evalue}
    answer.write(json.dumps(found))
    answer.flush()
    return 1 if found["kind"] else 0


def notebook(job: Mapping[str, Any]) -> None:
    """Execute the template of a job by papermill. The notebook gets its name when it has ended, well or not."""
    import jupytext
    import papermill
    from traitlets.config import Config

    target = Path(job["notebook"])
    part = unfinished(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    source = jupytext.reads(Path(job["template"]).read_text(encoding="utf-8"), fmt="md:myst")
    options: dict[str, Any] = {"kernel_name": "python3", "cwd": os.getcwd(), "start_timeout": START_TIMEOUT}
    sockets = tempfile.mkdtemp(prefix="isonb-")
    FOLDERS.append(sockets)
    if len(os.fsencode(sockets)) < LONGEST_SOCKET:  # not ports, which many kernels starting at once might share
        options["config"] = Config(KernelManager={"transport": "ipc", "ip": f"{sockets}/kernel"})
    try:
        papermill.execute_notebook(source, part, parameters=job["parameters"], progress_bar=False, **options)
    finally:
        _remove_folders()
        if part.is_file() and not ENDING.is_set():
            os.replace(part, target)


def unfinished(target: Path) -> Path:
    """Where a notebook is while it runs."""
    return target.with_name(f".{target.stem}.part.ipynb")


def _named(name: str) -> Callable[[Mapping[str, Any]], None]:
    """The function ``module:function``; without a name, :func:`notebook`."""
    if not name:
        return notebook
    module, _, function = name.partition(":")
    found: Callable[[Mapping[str, Any]], None] = getattr(importlib.import_module(module), function)
    return found


def _watch(pipe: int, psutil: Any) -> None:
    """Wait for the end of the starter, then end all that this process has started, and itself."""
    while os.read(pipe, 1024):
        pass
    ENDING.set()
    _kill_descendants(psutil)
    _remove_folders()
    os.kill(os.getpid(), signal.SIGKILL)


def _remove_folders() -> None:
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)


def _kill_descendants(psutil: Any) -> None:
    """Kill children and theirs; look again, as one of them may just have started another."""
    for _ in range(20):
        found = psutil.Process().children(recursive=True)
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
    sys.exit(main())
