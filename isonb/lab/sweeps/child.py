"""The process of one run: it executes one notebook and never outlives the process that started it.

Run on a leash (:mod:`isonb.runtime.leash`) without importing isonb, which brings torch: that is for the notebook's
kernel. It answers with one line on stdout; whatever else is printed goes to stderr, the run's log. When the starter is
gone, the kernel and this process are killed, and with them falls the run's lock.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["OUTSIDE", "cut", "main", "notebook", "unfinished"]

LONGEST_TEXT = 2000  # characters; an error may quote a whole file
START_TIMEOUT = 300  # seconds a kernel may take to start on a busy machine
OUTSIDE = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # whoever ends a process by these has nothing against its run


def main(job: Mapping[str, Any]) -> int:
    """Do the job; 0 when it went well."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        _named(job["runner"])(job)
        found = {"kind": "", "text": ""}
    except BaseException as error:
        found = {"kind": type(error).__name__, "text": str(error)}
        if hasattr(error, "ename") and hasattr(error, "evalue"):  # papermill's: the error inside the notebook
            found = {"kind": error.ename, "text": error.evalue}
    answer.write(json.dumps({name: cut(said) for name, said in found.items()}))
    answer.flush()
    return 1 if found["kind"] else 0


def notebook(job: Mapping[str, Any]) -> None:
    """Execute the template of a job by papermill. The notebook gets its name when it has ended, well or not."""
    os.environ["JUPYTER_RUNTIME_DIR"] = tempfile.gettempdir()  # the leash's own: what the kernel needs goes with it
    import jupytext
    import papermill

    from isonb.runtime.leash import ENDING, sockets  # there already: nothing of isonb is imported for it

    target = Path(job["notebook"])
    part = unfinished(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    source = jupytext.reads(Path(job["template"]).read_text(encoding="utf-8"), fmt="md:myst")
    options: dict[str, Any] = {
        "kernel_name": "python3",
        "cwd": os.getcwd(),
        "start_timeout": START_TIMEOUT,
        **sockets(),
    }
    codes: list[int] = []
    try:
        options |= {"progress_bar": False, "kernel_manager_class": _noting(codes)}
        papermill.execute_notebook(source, part, parameters=job["parameters"], **options)
    except RuntimeError as error:  # what nbclient says of dead kernels, at the start too
        if codes and -codes[-1] in OUTSIDE:
            raise KeyboardInterrupt(f"its kernel got {signal.Signals(-codes[-1]).name}") from error
        raise
    finally:
        if part.is_file() and not ENDING.is_set():
            os.replace(part, target)


def cut(text: str) -> str:
    """An error fit for a record: what UTF-8 can hold, without the middle of a long one.

    >>> cut("short"), cut(chr(0xD800)), len(cut("long" * 100_000)) <= LONGEST_TEXT
    ('short', '\\\\ud800', True)
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - 500]} [... {len(text)} characters ...] {text[-400:]}"


def unfinished(target: Path) -> Path:
    """Where a notebook is while it runs."""
    return target.with_name(f".{target.stem}.part.ipynb")


def _noting(codes: list[int]) -> Any:
    """A class of kernel managers that note the exit code of a kernel that is found dead."""
    from jupyter_client.manager import AsyncKernelManager

    class Noting(AsyncKernelManager):
        async def is_alive(self) -> bool:  # type: ignore[override,unused-ignore]
            alive = bool(await super().is_alive())
            code = None if alive or self.provisioner is None else await self.provisioner.poll()
            codes.append(code or 0)
            return alive

    return Noting


def _named(name: str) -> Callable[[Mapping[str, Any]], None]:
    """The function ``module:function``; without a name, :func:`notebook`."""
    if not name:
        return notebook
    module, _, function = name.partition(":")
    found: Callable[[Mapping[str, Any]], None] = getattr(importlib.import_module(module), function)
    return found
