"""What a process runs on: versions of packages, processor, memory, GPUs. No host names, no folders."""

from __future__ import annotations

import functools
import math
import os
import platform
import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from isonb.runtime.machine import memory


def versions(packages: Iterable[str]) -> dict[str, str | None]:
    """Versions of Python and of the packages, as installed; None: not there."""
    return {"python": platform.python_version()} | {name: _version(name) for name in packages}


@functools.cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def hardware() -> dict[str, Any]:
    """Processor, cores, threads, memory, system and the names of the GPUs.

    ``cores`` counts those this process may use; ``threads`` those torch computes with.
    """
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu": _cpu_model(),
        "gpus": [torch.cuda.get_device_name(i) for i in range(count)],
        "machine": platform.machine(),
        "memory_gib": round(memory() / 2**30, 1) if memory() < math.inf else None,
        "system": platform.system(),
        "threads": torch.get_num_threads(),
    }


@functools.cache
def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    line = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return line.group(1).strip() if line else platform.processor() or platform.machine()
