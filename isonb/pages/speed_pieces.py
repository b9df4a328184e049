"""Goals that are missed, and the pieces of the call as ``make bench`` timed them beside the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isonb.pages.evidence import joined
from isonb.pages.speed_record import NOTHING, Bench, aims, furthest

__all__ = ["held_back", "largest"]

Part = Mapping[str, Any]


def held_back(bench: Bench, most: int = 12) -> list[dict[str, str]]:
    """Of each missed goal: the share of our time that each piece takes, and the ratio without all but the needed ones.

    At most ``most``, the furthest from its goal first.
    """
    missed = furthest(bench)
    missed = missed[missed["verdict"] == "missed"].head(most)
    if missed.empty:
        return [{"comparison": "no goal is missed" if len(bench.rows) else NOTHING}]
    return [
        aims(row)
        | {
            "share of each piece": shares(parts_of(row), row["ours_ms"]),
            "needed pieces": joined((part["what"] for part in parts_of(row) if part["needed"]), none="–"),
            "ratio with these alone": alone(row),
        }
        for row in missed.to_dict("records")
    ]


def parts_of(row: Mapping[str, Any]) -> Sequence[Part]:
    """The pieces of a row; none in a record from before there were any."""
    parts = row.get("parts")
    return parts if isinstance(parts, list) else []


def shares(parts: Sequence[Part], whole_ms: float) -> str:
    """Each piece in percent of the whole, and what is left over.

    >>> shares([{"what": "product", "ms": 3.0}, {"what": "choice", "ms": 1.0}], 5.0)
    'product 60%, choice 20%, the rest 20%'
    """
    if not parts:
        return "not measured"
    rest = max(0.0, 1 - sum(part["ms"] for part in parts) / whole_ms)
    return ", ".join([*(f"{part['what']} {part['ms'] / whole_ms:.0%}" for part in parts), f"the rest {rest:.0%}"])


def alone(row: Mapping[str, Any]) -> str:
    """The ratio if all but the needed pieces took no time."""
    needed = sum(part["ms"] for part in parts_of(row) if part["needed"])
    if not needed:
        return "–"
    return f"{needed / row['peer_ms'] if row['yardstick'] else row['peer_ms'] / needed:.3g}"


def largest(row: Mapping[str, Any]) -> str:
    """The piece that takes most of the time, in words; where none is timed, the limit that the suite names.

    >>> largest({"limit": "", "parts": [{"what": "trees", "ms": 1.0}, {"what": "product", "ms": 3.0}], "ours_ms": 4.0})
    'product, 75%'
    """
    parts = parts_of(row)
    if not parts:
        return row["limit"] or "not found out"
    most = max(parts, key=lambda part: part["ms"])
    return f"{most['what']}, {most['ms'] / row['ours_ms']:.0%}"
