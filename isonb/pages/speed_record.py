"""A record of ``make bench`` or ``make bench-gpu``: read, or empty if none is published; growth and its exponent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isonb.pages.errors import PageError
from isonb.runtime.places import RECORDINGS_FOLDER

__all__ = [
    "CARD",
    "FLOORS",
    "NOTHING",
    "PEERS",
    "STARTS",
    "Bench",
    "aims",
    "exponent",
    "furthest",
    "grown",
    "load",
    "spent",
]

CARD = RECORDINGS_FOLDER / "bench_gpu.json"
NOTHING = "nothing is recorded"
GROWTH = "growth"  # how names of suites begin that measure it
STARTING = "starting"  # the suite of fresh processes
PEERS, FLOORS, STARTS = "other code for the same numbers", "floors", "starting a process"


@dataclass(frozen=True)
class Bench:
    """``rows``: one a comparison; ``memory``: one a measured peak; ``about``: what it was measured on."""

    rows: pd.DataFrame
    memory: pd.DataFrame
    about: Mapping[str, Any]

    @property
    def compared(self) -> pd.DataFrame:
        """The rows that stand for themselves, with ``faster``, the time of the other over ours, and their ``kind``."""
        rows = self.rows[~self.rows["suite"].str.startswith(GROWTH)]
        kind = rows["yardstick"].map({True: FLOORS, False: PEERS}).where(rows["suite"] != STARTING, STARTS)
        return rows.assign(faster=rows["peer_ms"] / rows["ours_ms"], kind=kind)


COLUMNS = ("what", "size", "peer", "goal", "error", "allowed", "yardstick", "limit", "suite", "parts")
TIMES = ("ours_ms", "peer_ms", "ratio", "verdict", "ours_rounds_ms", "peer_rounds_ms")
PEAKS = ("what", "size", "mb", "bound_mb", "error", "allowed", "limit", "suite", "verdict")


def load(path: Path | None = None) -> Bench:
    """The published record, or an empty one if there is none.

    Raises :class:`~isonb.pages.PageError` for a file that is no record.

    >>> load(Path("no such file")).rows.empty
    True
    """
    path = RECORDINGS_FOLDER / "bench.json" if path is None else path
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        rows = pd.DataFrame(found.pop("rows", []), columns=[*COLUMNS, *TIMES])
        peaks = pd.DataFrame(found.pop("memory", []), columns=[*PEAKS])
    except (ValueError, AttributeError, TypeError) as error:
        raise PageError(f"{path.name} must be a record of make bench; got {error}. Publish it again.") from error
    return Bench(rows.astype({"suite": str, "yardstick": bool}), peaks, found)


def furthest(bench: Bench) -> pd.DataFrame:
    """The compared rows that have a goal, those furthest from it first."""
    rows = bench.compared
    rows = rows[rows["verdict"].isin(["reached", "missed"])]
    lead = np.where(rows["yardstick"], rows["goal"] / rows["ratio"], rows["ratio"] / rows["goal"]).astype(float)
    return rows.assign(lead=lead).sort_values("lead", kind="stable")


def aims(row: Mapping[str, Any]) -> dict[str, str]:
    """The cells that say what is compared with what, which ratio is wanted, and which came."""
    return {
        "comparison": f"{row['what']}, {row['size']}",
        "against": row["peer"],
        "goal": f"{'≤' if row['yardstick'] else '≥'} {row['goal']:g}",
        "ratio": f"{row['ratio']:.3g}",
    }


def spent(rounds: list[float]) -> str:
    """Least time of the rounds, their median and their range.

    >>> spent([2.0, 1.0, 4.0])
    '1 ms (median 2, range 1 to 4)'
    """
    return f"{min(rounds):.3g} ms (median {np.median(rounds):.3g}, range {min(rounds):.3g} to {max(rounds):.3g})"


def grown(bench: Bench) -> pd.DataFrame:
    """Least times by size: measure, n, d, error, by ("isonb" or "peer"), name (of the peer), ms, rounds (in words)."""
    rows = bench.rows[bench.rows["suite"].str.startswith(GROWTH)]
    found = []
    for row in rows.to_dict("records"):
        n, d = map(int, row["size"].split(" x "))
        same = {"measure": row["what"], "n": n, "d": d, "error": row["error"]}
        for by, name, part in (("isonb", "isonb", "ours"), ("peer", row["peer"], "peer")):
            told = {"ms": row[f"{part}_ms"], "rounds": spent(row[f"{part}_rounds_ms"])}
            found.append(same | {"by": by, "name": name} | told)
    return pd.DataFrame(found, columns=["measure", "n", "d", "error", "by", "name", "ms", "rounds"])


def exponent(part: pd.DataFrame, by: str) -> float | None:
    """The slope of log ms on log n over the larger half of the sizes; None for fewer than two.

    >>> frame = pd.DataFrame({"by": "isonb", "n": [1, 2, 4, 8], "ms": [5.0, 5.0, 20.0, 80.0]})
    >>> exponent(frame, "isonb")
    2.0
    """
    mine = part[part["by"] == by].sort_values("n")
    late = mine.iloc[len(mine) // 2 :] if len(mine) > 3 else mine
    if len(late) < 2:
        return None
    return round(float(np.polyfit(np.log(late["n"].astype(float)), np.log(late["ms"].astype(float)), 1)[0]), 3)
