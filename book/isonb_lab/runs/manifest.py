"""What a number depends on besides its configuration: versions, hardware, code, data, seed and time.

A manifest is a dictionary of plain JSON values, its keys sorted. It names no host, user or folder, but the processor:
one without instructions for bfloat16 emulates it, tens of times slower, and a float sum depends on the order of its
terms, which the libraries choose by the processor, so that the same run ends elsewhere on another one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import isonb
from isonb.errors import FitWarning
from isonb_lab.runtime import machine

if TYPE_CHECKING:
    import pandas as pd
    import torch

# that can change a number
PACKAGES = (
    "accelerate datasets giotto-ph gudhi isonb numpy pandas safetensors scikit-learn scipy sentence-transformers "
    "tokenizers torch torchmetrics transformers"
)

DRAWING = ("figures", "pages")  # of isonb_lab: they show runs and make none


@dataclass(frozen=True)
class Clock:
    """Started when it is made: the time of day for the manifest, a monotonic counter for the duration."""

    utc: datetime = field(default_factory=lambda: datetime.now(UTC))
    tick: float = field(default_factory=time.perf_counter)
    measured: list[float] = field(default_factory=list)  # seconds of each stretch that only measures
    warned: list[str] = field(default_factory=list)  # what was learned from too few rows or passes

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
        """What is fitted inside on too few rows or passes says so in the manifest, not on the screen."""
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


def manifest(*, seed: int, data: str | Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """The manifest of a run that ends now. Start a :class:`Clock` before the run and pass it.

    ``data`` is the fingerprint of the data: text, or one entry for each split (JSON values). ``measuring`` is
    there when the clock has seen some: the seconds it took; and ``warnings`` when something was fitted on too few rows
    or passes: a list of sentences.

    >>> list(manifest(seed=3, data="embedded", clock=Clock()))
    ['code', 'data', 'hardware', 'seconds', 'seed', 'started', 'versions']
    """
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
    """:func:`isonb_lab.runtime.machine.hardware`, and whether bfloat16 is bfloat16 here."""
    import torch

    return {"bfloat16": bfloat16_pays("cuda" if torch.cuda.is_available() else "cpu")} | machine.hardware()


@functools.cache
def code_version() -> dict[str, str | None]:
    """``sha256`` of the Python sources that a run may go through, and the git ``commit`` in a checkout (else None).

    These are isonb and isonb_lab, but for what draws. The hash is what counts: it sees changes that were never
    committed, and it is the same for a wheel and a checkout, whose line ends may differ.
    """
    root, lab, commit = Path(isonb.__file__).parent, Path(__file__).parents[1], None
    if (root.parent / ".git").exists():
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            command = ["git", "-C", str(root.parent), "rev-parse", "HEAD"]
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return {"commit": commit, "sha256": sources_digest(root, lab)}


def sources_digest(*packages: Path) -> str:
    """sha256 of the Python sources in the folders of some packages, those of :data:`DRAWING` left out."""
    named = {
        path.relative_to(package.parent).as_posix(): path
        for package in packages
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] not in DRAWING
    }
    digest = hashlib.sha256()
    for name, path in sorted(named.items()):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()


def bfloat16_pays(device: str | torch.device = "cpu") -> bool:
    """Whether bfloat16 autocast is done by the device itself; runs that ask for it use float32 where it isn't.

    True of every accelerator (one without bfloat16 is refused before a run) and of processors where oneDNN has kernels
    for it (AVX-512 or ARM's bfloat16). The rounding of float32 is finer, so a run that falls back loses nothing but
    the last digits' likeness to one that doesn't; manifests tell which (``hardware.bfloat16``).

    >>> bfloat16_pays("cuda")
    True
    """
    import torch

    return torch.device(device).type != "cpu" or _processor()


@functools.cache
def _processor() -> bool:
    import torch

    built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def processor_kinds(runs: pd.DataFrame) -> pd.Series[Any]:
    """The kind of processor of each run of a table (:func:`isonb_lab.runs.table.table`), indexed like it.

    The names of its GPUs; without GPUs that of its processor, and whether that has bfloat16, since one name stands for
    several generations. "not recorded" where the record doesn't say.

    >>> import pandas as pd
    >>> hardware = {"cpu": ["AMD EPYC", None], "bfloat16": [True, None], "gpus": ["[]", '["NVIDIA A100"]']}
    >>> processor_kinds(pd.DataFrame(hardware).add_prefix("manifest.hardware.")).tolist()
    ['AMD EPYC with bfloat16', 'NVIDIA A100']
    """
    import pandas as pd

    kinds = []
    columns = runs.reindex(columns=[f"manifest.hardware.{name}" for name in ("gpus", "cpu", "bfloat16")])
    for gpus, cpu, bfloat16 in columns.itertuples(index=False):
        names = json.loads(gpus) if isinstance(gpus, str) else []
        plain = (
            (f"{cpu} with bfloat16" if bfloat16 in (True, "True") else cpu) if isinstance(cpu, str) else "not recorded"
        )
        kinds.append(", ".join(sorted(set(names))) or plain)
    return pd.Series(kinds, index=runs.index, dtype="object")


def mixed_processors(runs: pd.DataFrame) -> str:
    """What to say beside numbers from these runs: nothing if they are from processors of one kind, else a warning.

    Runs whose record doesn't tell count as a kind of their own: they may be of any.
    """
    counts = processor_kinds(runs).value_counts().sort_index()
    if len(counts) < 2:
        return ""
    counted = ", ".join(f"{kind} ({count})" for kind, count in counts.items())
    return (
        f"These {len(runs)} runs are from {len(counts)} kinds of processor: {counted}. The same run ends elsewhere on "
        "another kind, so a difference between two kinds is not the method's alone."
    )
