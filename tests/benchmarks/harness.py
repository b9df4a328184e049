"""Side-by-side timing: the functions of a row take turns in one process, and no ratio comes without its error."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor


@dataclass(frozen=True)
class Row:
    """One comparison: milliseconds of ours and of the peer, the goal for their ratio, and the largest disagreement."""

    what: str
    size: str
    peer: str
    ours_ms: float
    peer_ms: float
    goal: float | None  # wanted ratio peer/ours; a yardstick row wants ours/peer at most this
    error: float
    allowed: float
    yardstick: bool = False
    limit: str = ""  # what holds ours back, told where the goal is missed

    @property
    def ratio(self) -> float:
        """How many times faster than the peer; for a yardstick, how many times its cost."""
        return self.ours_ms / self.peer_ms if self.yardstick else self.peer_ms / self.ours_ms

    @property
    def verdict(self) -> str:
        """Whether the goal is reached; a row whose results disagree is wrong, however fast."""
        if self.error > self.allowed:
            return "WRONG"
        if self.goal is None:
            return ""
        reached = self.ratio <= self.goal if self.yardstick else self.ratio >= self.goal
        return "reached" if reached else "missed"


def best_times(*functions: Callable[[], object], rounds: int = 7, least: float = 0.02) -> list[float]:
    """Seconds per call of each function: the least over ``rounds`` turns, so that another process's load drops out."""
    repeats = []
    for function in functions:
        function()  # warm-up: allocation, lazy imports, thread pools
        start = time.perf_counter()
        function()
        repeats.append(max(1, int(least / max(time.perf_counter() - start, 1e-7))))
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            for _ in range(repeats[i]):
                function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            best[i] = min(best[i], (time.perf_counter() - start) / repeats[i])
    return best


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
) -> list[Row]:
    """One row a peer, given as (name, function, error measured beforehand, goal)."""
    peers = list(peers)
    first, *rest = best_times(ours, *(call for _, call, _, _ in peers), rounds=rounds)
    return [
        Row(what, size, name, first * 1e3, seconds * 1e3, goal, error, allowed, limit=limit)
        for (name, _, error, goal), seconds in zip(peers, rest, strict=True)
    ]


def table(rows: Iterable[Row]) -> str:
    """The rows as a table of fixed columns."""
    head = ("what", "size", "against", "ours ms", "theirs ms", "ratio", "goal", "", "max error")
    body = [head]
    for r in rows:
        goal = "" if r.goal is None else f"{'<=' if r.yardstick else '>='} {r.goal:g}x"
        numbers = (f"{r.ours_ms:.3g}", f"{r.peer_ms:.3g}", f"{r.ratio:.2f}x", goal, r.verdict, f"{r.error:.1e}")
        body.append((r.what, r.size, r.peer, *numbers))
    widths = [max(len(line[i]) for line in body) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in body]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def limits(rows: Iterable[Row]) -> str:
    """A line for each comparison that misses its goal: what the limit is."""
    missed = dict.fromkeys(f"{row.what}, {row.size}: {row.limit}" for row in rows if row.verdict == "missed")
    return "\n".join(["Goals missed, and what the limit is:", *(f"- {line}" for line in missed)]) if missed else ""


def write(rows: list[Row], path: Path) -> None:
    """The rows and what they were measured on, as JSON."""
    record = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "processor": processor(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "rows": [asdict(row) | {"ratio": row.ratio, "verdict": row.verdict} for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def processor() -> str:
    """The processor's model name where the system says it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
