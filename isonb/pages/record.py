"""What is known about a run: when, how long, on what, with which versions. No host names, no folders."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from isonb.runtime import machine

__all__ = ["PACKAGES", "hardware", "run_record", "versions"]

PACKAGES = ("isonb", "torch", "transformers", "sentence-transformers", "numpy", "altair", "gudhi")


def versions() -> dict[str, str]:
    """Python and the packages that results depend on, as installed."""
    return {name: found for name, found in machine.versions(PACKAGES).items() if found}


def hardware() -> str:
    """The processor and how many of its cores a run may use, and a GPU if there is one."""
    found = machine.hardware()
    return ", ".join([found["cpu"], f"{found['cores']} cores", *found["gpus"][:1]])


def run_record(seconds: float, parameters: Mapping[str, object], key: str, peak_mib: float | None) -> dict[str, Any]:
    """The record of one run that ends now; ``peak_mib`` is the memory of its kernel, where it is known."""
    return {
        "seconds": round(seconds, 1),
        "peak_mib": peak_mib,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "hardware": hardware(),
        "versions": versions(),
        "parameters": dict(parameters),
        "key": key,
    }
