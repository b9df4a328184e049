"""Side-by-side timing: the functions of a comparison take turns, and no ratio comes without its error."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import torch

from isonb_lab.runtime.machine import hardware, versions
from tests.benchmarks.peers import PACKAGES
from tests.benchmarks.peers import relative_error as relative_error

Call = Callable[[], object]
LONGEST = 4.0  # seconds of the turns of a comparison
Times = tuple[float, ...]
"""Milliseconds of a call, one number a round."""


class Peer(NamedTuple):
    """Other code for the same numbers; a floor is a step that no code can do without, wanted at most ``goal`` times."""

    name: str
    call: Call
    error: float
    goal: float | None = None
    floor: bool = False


class Piece(NamedTuple):
    """A part of our call as a call of its own; ``needed`` where the same numbers can't be had without it."""

    what: str
    call: Call
    needed: bool = False


class Judged:
    """What was measured: what it says of its goal, and ``WRONG`` where results disagree, however fast or small."""

    reached = ""

    @property
    def verdict(self):
        return self.reached if self.error <= self.allowed else "WRONG"

    def record(self):
        return asdict(self) | {"verdict": self.verdict}


@dataclass(frozen=True)
class Row(Judged):
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
    parts: tuple[dict[str, object], ...] = ()  # the pieces of ours as measured, by their least times

    @property
    def ratio(self):
        """How many times faster than the peer, by least times; for a yardstick, how many times its cost."""
        ours, theirs = min(self.ours), min(self.theirs)
        return ours / theirs if self.yardstick else theirs / ours

    @property
    def reached(self):
        if self.goal is None:
            return ""
        return "reached" if (self.ratio <= self.goal if self.yardstick else self.ratio >= self.goal) else "missed"

    def record(self):
        entry = super().record()
        rounds = {"ours_rounds_ms": entry.pop("ours"), "peer_rounds_ms": entry.pop("theirs")}
        return entry | {"ours_ms": min(self.ours), "peer_ms": min(self.theirs), "ratio": self.ratio} | rounds


@dataclass(frozen=True)
class Peak(Judged):
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
    def reached(self):
        return "reached" if self.mb <= self.bound_mb else "missed"


@dataclass(frozen=True)
class Reading(Judged):
    """What is measured with no peer beside it, as a line of a table: values by column, and how wrong the result is."""

    values: dict[str, object]
    error: float = 0.0
    allowed: float = 0.0
    suite: str = ""

    def record(self):
        return self.values | {"error": self.error, "suite": self.suite, "verdict": self.verdict}


@dataclass(frozen=True)
class Comparison:
    """Our call and its peers, to be timed in turns with the pieces of ours: one row a peer."""

    what: str
    size: str
    ours: Call
    peers: Sequence[Peer]
    allowed: float
    rounds: int = 7
    pieces: Callable[[], Sequence[Piece]] = tuple
    limit: str = ""
    least: float = 0.02
    clock: Callable[[], float] = time.process_time  # on one thread that of an idle core, whoever else is at work

    def rows(self, small=False):
        """Timed; of the smallest sizes one call each, which measures nothing."""
        pieces, peers = list(self.pieces()), list(self.peers)
        calls = [self.ours, *(peer.call for peer in peers), *(piece.call for piece in pieces)]
        effort = {"rounds": 1, "least": 0.0} if small else {"rounds": self.rounds, "least": self.least}
        ours, *rest = taken(*calls, clock=self.clock, **effort)
        spent = zip(pieces, rest[len(peers) :], strict=True)
        parts = tuple({"what": piece.what, "ms": min(times), "needed": piece.needed} for piece, times in spent)
        about = {"allowed": self.allowed, "limit": self.limit, "parts": parts}
        return [
            Row(self.what, self.size, p.name, ours, theirs, p.goal, p.error, yardstick=p.floor, **about)
            for p, theirs in zip(peers, rest, strict=False)
        ]


KINDS = {"rows": Row, "memory": Peak, "readings": Reading}
"""The lists of a record, and what stands in each."""


def taken(*functions, rounds=7, least=0.0, clock=time.process_time):
    """Milliseconds per call of each function in each of ``rounds`` turns: load of other processes meets all alike.

    Calls are repeated until a turn lasts ``least`` seconds. With ``least=0`` nothing is warmed up or repeated. There
    are fewer turns, at least three, where they take longer than ``LONGEST`` seconds.
    """
    clock = time.perf_counter if torch.cuda.is_available() else clock
    repeats, turn = [1] * len(functions), 0.0
    for i, function in enumerate(functions if least else ()):
        for _ in range(2):  # the first is a warm-up: allocation, lazy imports, thread pools
            start = clock()
            function()
            spent = clock() - start
            if spent > 1:
                break
        repeats[i] = max(1, int(least / max(spent, 1e-7)))
        turn += repeats[i] * spent
    rounds = min(rounds, max(3, int(LONGEST / turn))) if turn else rounds
    found = [[] for _ in functions]
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = clock()
            for _ in range(repeats[i]):
                function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            found[i].append((clock() - start) / repeats[i] * 1e3)
    return [tuple(times) for times in found]


def gaussian(*shape, seed=0, mean=0.0, device="cpu"):
    """Seeded standard normal points."""
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) + mean).to(device)


def size_of(x):
    return " x ".join(map(str, x.shape))


def gradient_of(function, x):
    x = x.detach().requires_grad_()
    return lambda: torch.autograd.grad(function(x), x)[0]


def surroundings():
    """What it is measured on: versions, processor, memory, and how busy the machine is; no names, folders or dates."""
    found, installed = hardware(), versions(PACKAGES)
    told = {key: found[key] for key in ("threads", "cores", "memory_gib", "system", "machine")}
    return told | {
        "python": installed["python"],
        "torch": torch.__version__,
        "processor": found["cpu"],
        "load": round(os.getloadavg()[0], 2),
        "accelerator": found["gpus"][0] if found["gpus"] else None,
        "packages": {name: installed[name] for name in PACKAGES if installed[name]},
        "absent": [name for name in PACKAGES if not installed[name]],
    }


def write(parts, about, path):
    """The rows by kind and what they were measured on, as JSON: numbers with six digits, and null for infinity."""
    text = json.dumps(about | dict(parts))
    short = json.loads(text, parse_float=lambda digits: float(f"{float(digits):.6g}"), parse_constant=lambda _: None)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(short, indent=1) + "\n", encoding="utf-8")
