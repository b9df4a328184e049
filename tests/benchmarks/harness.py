"""Side-by-side timing: the functions of a row take turns in one process, and no ratio comes without its error."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from isonb.runtime.machine import hardware, versions
from tests.benchmarks.peers import PACKAGES
from tests.benchmarks.pieces import Part, Piece, parts_of, told

Times = tuple[float, ...]
"""Milliseconds of a call, one number a round."""


@dataclass(frozen=True)
class Row:
    """One comparison: times of ours and of the peer, the goal for their ratio, and the largest disagreement."""

    what: str
    size: str
    peer: str
    ours: Times
    theirs: Times
    goal: float | None  # wanted ratio peer/ours; a yardstick row wants ours/peer at most this
    error: float
    allowed: float
    yardstick: bool = False
    limit: str = ""  # what holds ours back, told where the goal is missed and no part is measured
    suite: str = ""
    parts: tuple[Part, ...] = ()  # what ours is made of, as far as it is measured

    @property
    def ours_ms(self) -> float:
        """Our least time."""
        return min(self.ours)

    @property
    def peer_ms(self) -> float:
        """The peer's least time."""
        return min(self.theirs)

    @property
    def ratio(self) -> float:
        """How many times faster than the peer, by least times; for a yardstick, how many times its cost."""
        return self.ours_ms / self.peer_ms if self.yardstick else self.peer_ms / self.ours_ms

    @property
    def verdict(self) -> str:
        """Whether the goal is reached; a row whose results disagree is wrong, however fast."""
        if not self.error <= self.allowed:
            return "WRONG"
        if self.goal is None:
            return ""
        reached = self.ratio <= self.goal if self.yardstick else self.ratio >= self.goal
        return "reached" if reached else "missed"


@dataclass(frozen=True)
class Peak:
    """The memory that one call needs beside its input, and the bound for it."""

    what: str
    size: str
    mb: float
    bound_mb: float
    error: float
    allowed: float
    limit: str = ""
    suite: str = ""

    @property
    def verdict(self) -> str:
        """Whether it stays within the bound; a wrong result is wrong, however small."""
        if not self.error <= self.allowed:
            return "WRONG"
        return "reached" if self.mb <= self.bound_mb else "missed"


def taken(*functions: Callable[[], object], rounds: int = 7, least: float = 0.02) -> list[Times]:
    """Milliseconds per call of each function in each of ``rounds`` turns: load of other processes meets all alike.

    Calls are repeated until a turn lasts ``least`` seconds. With ``least=0`` nothing is warmed up or repeated.
    """
    repeats = [1] * len(functions)
    for i, function in enumerate(functions if least else ()):
        function()  # warm-up: allocation, lazy imports, thread pools
        start = time.perf_counter()
        function()
        repeats[i] = max(1, int(least / max(time.perf_counter() - start, 1e-7)))
    found: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(repeats[i]):
                function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            found[i].append((time.perf_counter() - start) / repeats[i] * 1e3)
    return [tuple(times) for times in found]


def relative_error(ours: Tensor, reference: Tensor) -> float:
    """Largest difference over the largest size of the reference."""
    ours, reference = ours.detach().double().cpu(), reference.detach().double().cpu()
    return float((ours - reference).abs().max() / reference.abs().max().clamp_min(1e-300))


def compare(
    what: str,
    size: str,
    ours: Callable[[], object],
    peers: Iterable[tuple[str, Callable[[], object], float, float | None]],
    *,
    allowed: float,
    rounds: int = 7,
    limit: str = "",
    pieces: Sequence[Piece] = (),
    yardstick: bool = False,
) -> list[Row]:
    """One row a peer, given as (name, function, error measured beforehand, goal); pieces of ours take turns as well."""
    peers = list(peers)
    calls = [call for _, call, _, _ in peers], [piece.call for piece in pieces]
    first, *rest = taken(ours, *calls[0], *calls[1], rounds=rounds)
    parts = parts_of(pieces, rest[len(peers) :])
    return [
        Row(what, size, name, first, times, goal, error, allowed, yardstick, limit, parts=parts)
        for (name, _, error, goal), times in zip(peers, rest, strict=False)
    ]


def table(rows: Iterable[Row]) -> str:
    """The rows as a table of fixed columns."""
    head = ("what", "size", "against", "ours ms", "median", "theirs ms", "median", "ratio", "goal", "", "max error")
    body = []
    for r in rows:
        goal = "" if r.goal is None else f"{'<=' if r.yardstick else '>='} {r.goal:g}x"
        times = (f"{t:.3g}" for t in (r.ours_ms, middle(r.ours), r.peer_ms, middle(r.theirs)))
        body.append((r.what, r.size, r.peer, *times, f"{r.ratio:.2f}x", goal, r.verdict, f"{r.error:.1e}"))
    return _aligned(head, body)


def peaks_table(peaks: Iterable[Peak]) -> str:
    """The memory as a table of fixed columns."""
    head = ("memory beside the input", "size", "MB", "at most", "", "max error")
    body = [(p.what, p.size, f"{p.mb:.0f}", f"{p.bound_mb:.0f}", p.verdict, f"{p.error:.1e}") for p in peaks]
    return _aligned(head, body)


def middle(times: Sequence[float]) -> float:
    """The median."""
    return float(torch.tensor(times, dtype=torch.float64).quantile(0.5))


def _aligned(head: tuple[str, ...], body: list[tuple[str, ...]]) -> str:
    widths = [max(len(line[i]) for line in (head, *body)) for i in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *body)
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def limits(rows: Iterable[Row | Peak]) -> str:
    """A line for each comparison that misses its goal: what the limit is."""
    missed = dict.fromkeys(f"{one.what}, {one.size}: {_held_back(one)}" for one in rows if one.verdict == "missed")
    return "\n".join(["Goals missed, and what the limit is:", *(f"- {line}" for line in missed)]) if missed else ""


def _held_back(one: Row | Peak) -> str:
    return told(one.parts, one.ours_ms) if isinstance(one, Row) and one.parts else one.limit


def surroundings() -> dict[str, object]:
    """What it is measured on: versions, processor, memory, and how busy the machine is; no names, folders or dates."""
    found, installed = hardware(), versions(["torch", *PACKAGES])
    return {
        "python": installed.pop("python"),
        "torch": torch.__version__,
        "threads": found["threads"],
        "processor": found["cpu"],
        "cores": found["cores"],
        "memory_gib": found["memory_gib"],
        "system": found["system"],
        "machine": found["machine"],
        "load": round(os.getloadavg()[0], 2),
        "accelerator": found["gpus"][0] if found["gpus"] else None,
        "packages": {name: installed[name] for name in PACKAGES if installed[name]},
        "absent": [name for name in PACKAGES if not installed[name]],
    }


def write(found: Sequence[Row | Peak], about: dict[str, object], path: Path) -> None:
    """The rows and what they were measured on, as JSON."""
    record = about | {
        "rows": [_told(one) for one in found if isinstance(one, Row)],
        "memory": [asdict(one) | {"verdict": one.verdict} for one in found if isinstance(one, Peak)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_plain(record), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _told(row: Row) -> dict[str, object]:
    told = {key: value for key, value in asdict(row).items() if key not in ("ours", "theirs")}
    told |= {"ours_ms": row.ours_ms, "peer_ms": row.peer_ms, "ratio": row.ratio, "verdict": row.verdict}
    return told | {"ours_rounds_ms": row.ours, "peer_rounds_ms": row.theirs}


def _plain(value: object) -> object:
    """Numbers with six digits, and none where there is no number: JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
