"""What is known about a run: when, how long, on what, with which versions. No host names, no folders."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from isonb.runtime import machine

PACKAGES = ("isonb", "torch", "transformers", "sentence-transformers", "numpy", "altair", "gudhi")


def run_record(seconds: float, parameters: Mapping[str, object], key: str, peak_mib: float | None) -> dict[str, Any]:
    """The record of one run that ends now; ``peak_mib`` is the memory of its kernel, where it is known."""
    found = machine.hardware()
    return {
        "seconds": round(seconds, 1),
        "peak_mib": peak_mib,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "hardware": ", ".join([found["cpu"], f"{found['cores']} cores", *found["gpus"][:1]]),
        "versions": {name: version for name, version in machine.versions(PACKAGES).items() if version},
        "parameters": dict(parameters),
        "key": key,
    }
