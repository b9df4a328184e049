"""What runs say of a hypothesis of a plan, in the same words for all plans."""

from __future__ import annotations

from dataclasses import dataclass

from isonb_lab.statistics.seeds import Interval

HOLDS, CONTRADICTED, OPEN = "holds", "contradicted", "open"
NOT_RUN = "not run yet"


@dataclass(frozen=True)
class Answer:
    """A hypothesis: ``outcome`` "holds", "contradicted" or "open", and ``why``, the numbers it rests on."""

    name: str
    outcome: str
    why: str


def outcome(contradicted: bool, holds: bool) -> str:
    """Contradicted where something speaks against it, else whether it holds; open where the numbers say neither."""
    return CONTRADICTED if contradicted else HOLDS if holds else OPEN


def with_ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    """An estimate as three columns of a table: itself, and the ends of its interval."""
    numbers = (None,) * 3 if interval is None else interval.ends
    return dict(zip((name, f"{name} low", f"{name} high"), numbers, strict=True))
