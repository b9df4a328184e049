"""What a number depends on besides its configuration: versions, hardware, code, data, seed and time.

A manifest is a dictionary of plain JSON values, its keys sorted. It names no host, user or folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import isonb
from isonb.errors import InputError
from isonb.lab.runs.arithmetic import bfloat16_pays
from isonb.runtime import machine

__all__ = ["Clock", "ManifestError", "code_version", "hardware", "manifest", "versions"]

PACKAGES = (
    "accelerate",
    "datasets",
    "giotto-ph",
    "gudhi",
    "isonb",
    "numpy",
    "pandas",
    "safetensors",
    "scikit-learn",
    "scipy",
    "sentence-transformers",
    "tokenizers",
    "torch",
    "torchmetrics",
    "transformers",
)
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


class ManifestError(InputError):
    """A seed or a data fingerprint that a manifest can't hold."""


@dataclass(frozen=True)
class Clock:
    """Started when it is made: the time of day for the manifest, a monotonic counter for the duration."""

    utc: datetime = field(default_factory=lambda: datetime.now(UTC))
    tick: float = field(default_factory=time.perf_counter)
    measured: list[float] = field(default_factory=list)  # seconds of each part that only measures

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


def manifest(*, seed: int, data: str | Mapping[str, Any], clock: Clock | None = None) -> dict[str, Any]:
    """The manifest of a run that ends now. Start a :class:`Clock` before the run and pass it.

    ``data`` is the fingerprint of the data: text, or one entry a part (JSON values). Without a clock, the duration
    is 0 and the start is now. ``measuring`` is there when the clock has seen some: the seconds it took. Raises
    :class:`ManifestError` for a seed that isn't a whole number >= 0 and for an empty or unserialisable fingerprint.

    >>> list(manifest(seed=3, data="embedded"))
    ['code', 'data', 'hardware', 'seconds', 'seed', 'started', 'versions']
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ManifestError(f"seed must be a whole number >= 0; got {seed!r}. Pass the seed the run was started with.")
    clock = Clock() if clock is None else clock
    return {
        "code": code_version(),
        "data": _fingerprint(data),
        "hardware": hardware(),
        **({"measuring": round(sum(clock.measured), 3)} if clock.measured else {}),
        "seconds": clock.seconds(),
        "seed": seed,
        "started": clock.utc.isoformat(timespec="seconds"),
        "versions": versions(),
    }


def _fingerprint(data: str | Mapping[str, Any]) -> Any:
    try:
        text = json.dumps(data if isinstance(data, str) else dict(data), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ManifestError(f"data must be text or JSON values; got {error}. Pass hashes and counts.") from error
    if not data:
        raise ManifestError("data must say which data the run saw; got nothing. Pass a hash of the rows or their name.")
    return json.loads(text)


def versions() -> dict[str, str | None]:
    """Versions of Python, CUDA and the packages that can change a number; None: not there."""
    import torch

    return dict(sorted({"cuda": torch.version.cuda, **machine.versions(PACKAGES)}.items()))


def hardware() -> dict[str, Any]:
    """:func:`isonb.runtime.machine.hardware`, and whether bfloat16 is bfloat16 here."""
    import torch

    return {"bfloat16": bfloat16_pays("cuda" if torch.cuda.is_available() else "cpu")} | machine.hardware()


@functools.cache
def code_version() -> dict[str, str | None]:
    """``sha256`` of the package's Python sources, and the git ``commit`` when it runs from a checkout (else None).

    The hash is what counts: it sees changes that were never committed, and it is the same for a wheel and a checkout.
    Git itself isn't needed.
    """
    root = Path(isonb.__file__).parent
    return {"commit": _commit(root.parent), "sha256": source_hash(root)}


def source_hash(root: Path) -> str:
    """sha256 over the Python files below ``root``: their relative names and contents, line ends taken as ``\\n``."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).as_posix()):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def _commit(checkout: Path) -> str | None:
    """The commit that ``checkout`` stands at, read from git's files; None outside a checkout."""
    try:
        folder = checkout / ".git"
        if folder.is_file():  # a linked worktree points to its folder
            folder = checkout / folder.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (folder / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head if COMMIT.fullmatch(head) else None
        common = folder / "commondir"
        shared = folder / common.read_text(encoding="utf-8").strip() if common.is_file() else folder
        return _resolve(shared, head.removeprefix("ref:").strip())
    except (OSError, UnicodeDecodeError):
        return None


def _resolve(folder: Path, ref: str) -> str | None:
    loose, packed = folder / ref, folder / "packed-refs"
    if loose.is_file():
        found = loose.read_text(encoding="utf-8").strip()
        return found if COMMIT.fullmatch(found) else None
    for line in packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else ():
        commit, _, name = line.partition(" ")
        if name == ref and COMMIT.fullmatch(commit):
            return commit
    return None
