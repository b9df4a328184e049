"""One run a GPU: which GPUs this process may use, and a claim on one of them that other runs of the machine respect."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from isonb_lab.runtime.locks import file_lock

VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible() -> tuple[str, ...]:
    """The GPUs that this process may use, by UUID where ``nvidia-smi`` tells it; none is the empty tuple.

    ``CUDA_VISIBLE_DEVICES`` narrows them down, its indices counted as ``nvidia-smi`` counts; set to nothing it means no
    GPU. No context is made on any of them.
    """
    setting = os.environ.get(VARIABLE)
    if setting is not None and not setting.strip():
        return ()
    devices = _listed()
    if setting is None:
        return devices
    names = [name.strip() for name in setting.split(",")]
    if "-1" in names:  # as CUDA reads it: none from there on
        names = names[: names.index("-1")]
    return tuple(devices[int(name)] if name.isdigit() and int(name) < len(devices) else name for name in names)


@contextlib.contextmanager
def claimed(
    gpus: Sequence[str], *, stop: threading.Event | None = None, folder: Path | None = None
) -> Iterator[tuple[dict[str, str], tuple[int, ...]]]:
    """Hold one of the GPUs, waiting for it if need be: the environment that shows it alone, and the lock to inherit.

    Both are empty without GPUs, or when ``stop`` was set while waiting. The locks are in the machine's temporary
    folder, so two sweeps of one machine don't meet on a GPU.

    >>> with claimed([]) as (environment, locks):
    ...     environment, locks
    ({}, ())
    """
    folder = Path(tempfile.gettempdir()) / f"isonb-gpus-{os.getuid()}" if folder is None else folder
    paths = [folder / f"{re.sub(r'[^A-Za-z0-9-]+', '-', gpu)}.lock" for gpu in gpus]
    with file_lock(paths, stop=stop) as lock:
        if lock is None:
            yield {}, ()
        else:
            inode = os.fstat(lock).st_ino
            mine = next(gpu for gpu, path in zip(gpus, paths, strict=True) if path.stat().st_ino == inode)
            yield {VARIABLE: mine}, (lock,)


def _listed() -> tuple[str, ...]:
    """The UUIDs of all GPUs of the machine, in their order."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    command = [program, "--query-gpu=uuid", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return tuple(line.strip() for line in done.stdout.splitlines() if line.startswith("GPU-"))
    return ()
