"""What a number depends on besides its configuration: versions, hardware, code, data, seed and time.

A manifest is a dictionary of plain JSON values, its keys sorted. It names no host, user or folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import isonb
from isonb.errors import FitWarning
from isonb.lab.runs.arithmetic import bfloat16_pays
from isonb.runtime import machine

# that can change a number
PACKAGES = (
    "accelerate datasets giotto-ph gudhi isonb numpy pandas safetensors scikit-learn scipy sentence-transformers "
    "tokenizers torch torchmetrics transformers"
)


@dataclass(frozen=True)
class Clock:
    """Started when it is made: the time of day for the manifest, a monotonic counter for the duration."""

    utc: datetime = field(default_factory=lambda: datetime.now(UTC))
    tick: float = field(default_factory=time.perf_counter)
    measured: list[float] = field(default_factory=list)  # seconds of each stretch that only measures
    warned: list[str] = field(default_factory=list)  # what was learned from too few rows

    def seconds(self) -> float:
        """Seconds since the start, to a millisecond."""
        return round(time.perf_counter() - self.tick, 3)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """What runs inside only measures: the run would be the same without it."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.measured.append(time.perf_counter() - start)

    @contextlib.contextmanager
    def fitting(self) -> Iterator[None]:
        """What is fitted inside on too few rows says so in the manifest, not on the screen."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", FitWarning)
            show = warnings.showwarning

            def note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
                if issubclass(category, FitWarning):
                    self.warned.append(str(message))
                else:
                    show(message, category, *where, **more)

            warnings.showwarning = note
            yield


def manifest(*, seed: int, data: str | Mapping[str, Any], clock: Clock | None = None) -> dict[str, Any]:
    """The manifest of a run that ends now. Start a :class:`Clock` before the run and pass it.

    ``data`` is the fingerprint of the data: text, or one entry for each split (JSON values). Without a clock, the
    duration is 0 and the start is now. ``measuring`` is there when the clock has seen some: the seconds it took; and
    ``warnings`` when something was fitted on too few rows: a list of sentences.

    >>> list(manifest(seed=3, data="embedded"))
    ['code', 'data', 'hardware', 'seconds', 'seed', 'started', 'versions']
    """
    clock = Clock() if clock is None else clock
    return {
        "code": code_version(),
        "data": data if isinstance(data, str) else dict(sorted(data.items())),
        "hardware": hardware(),
        **({"measuring": round(sum(clock.measured), 3)} if clock.measured else {}),
        "seconds": clock.seconds(),
        "seed": seed,
        "started": clock.utc.isoformat(timespec="seconds"),
        "versions": versions(),
        **({"warnings": list(dict.fromkeys(clock.warned))} if clock.warned else {}),
    }


def versions() -> dict[str, str | None]:
    """Versions of Python, CUDA and the packages that can change a number; None: not there."""
    import torch

    return dict(sorted({"cuda": torch.version.cuda, **machine.versions(PACKAGES.split())}.items()))


def hardware() -> dict[str, Any]:
    """:func:`isonb.runtime.machine.hardware`, and whether bfloat16 is bfloat16 here."""
    import torch

    return {"bfloat16": bfloat16_pays("cuda" if torch.cuda.is_available() else "cpu")} | machine.hardware()


@functools.cache
def code_version(root: Path = Path(isonb.__file__).parent) -> dict[str, str | None]:
    """``sha256`` of the package's Python sources, and the git ``commit`` when it runs from a checkout (else None).

    The hash is what counts: it sees changes that were never committed, and it is the same for a wheel and a checkout,
    whose line ends may differ.
    """
    digest, commit = hashlib.sha256(), None
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    if (root.parent / ".git").exists():
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            asked = ["git", "-C", str(root.parent), "rev-parse", "HEAD"]
            commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return {"commit": commit, "sha256": digest.hexdigest()}
