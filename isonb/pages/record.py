"""What is known about a run: when, how long, on what, with which versions. No host names, no folders."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["PACKAGES", "hardware", "run_record", "versions"]

PACKAGES = ("isonb", "torch", "transformers", "sentence-transformers", "numpy", "altair", "gudhi")


@cache
def versions() -> dict[str, str]:
    """Python and the packages that results depend on, as installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def hardware() -> str:
    """The processor and how many of its cores a run may use, and a GPU if there is one."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [line for line in info.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    import torch

    gpu = f", {torch.cuda.get_device_name(0)}" if torch.cuda.is_available() else ""
    return f"{name}, {os.cpu_count()} cores{gpu}"


def run_record(seconds: float, parameters: Mapping[str, object], key: str) -> dict[str, Any]:
    """The record of one run that ends now."""
    return {
        "seconds": round(seconds, 1),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "hardware": hardware(),
        "versions": versions(),
        "parameters": dict(parameters),
        "key": key,
    }
