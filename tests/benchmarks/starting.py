"""How long one waits before anything is computed: imports and the command line, each in a fresh process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.harness import Row, taken

ROOT = Path(__file__).resolve().parents[2]
COMMANDS: dict[str, tuple[list[str], str]] = {
    "bare Python": (["-c", "print('up')"], "up"),
    "import torch": (["-c", "import torch; print(torch.__name__)"], "torch"),
    "import isonb": (["-c", "import isonb; print(isonb.__name__)"], "isonb"),
    "import isonb, use one name": (["-c", "import isonb; print(isonb.isoscore.__name__)"], "isoscore"),
    "isonb --help": (["-m", "isonb", "--help"], "usage: isonb"),
}
"""What is started, and what it must print."""
FLOORS = {"import isonb, use one name": "import torch", "import isonb": "bare Python", "isonb --help": "bare Python"}


def started(name: str) -> str:
    """What a fresh process printed."""
    command = [sys.executable, *COMMANDS[name][0]]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def starting(small: bool = False) -> list[Row]:
    """Against the import of torch, and against what can't be avoided: the interpreter, or torch where it is needed."""
    printed: dict[str, str] = {}
    calls = [lambda name=name: printed.update({name: started(name)}) for name in COMMANDS]
    times = taken(*calls, rounds=1, least=0.0) if small else taken(*calls, rounds=7)
    spent = dict(zip(COMMANDS, times, strict=True))
    wrong = {name: float(COMMANDS[name][1] not in printed[name]) for name in FLOORS}

    def row(name: str, peer: str, floor: bool) -> Row:
        return Row(name, "a fresh process", peer, spent[name], spent[peer], None, wrong[name], 0.0, floor)

    faster = [row(name, "import torch", False) for name in ("import isonb", "isonb --help")]
    return faster + [row(name, peer, True) for name, peer in FLOORS.items()]


SUITES = {"starting": starting}
