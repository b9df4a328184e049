"""What part of a call each of its pieces takes: a suite names them, they are timed in turns with the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Piece(NamedTuple):
    """A part of our call as a call of its own; ``needed`` where the same numbers can't be had without it."""

    what: str
    call: Callable[[], object]
    needed: bool = False


@dataclass(frozen=True)
class Part:
    """A piece as measured, milliseconds by its least time."""

    what: str
    ms: float
    needed: bool


def parts_of(pieces: Sequence[Piece], times: Sequence[Sequence[float]]) -> tuple[Part, ...]:
    """The pieces with the least of the times of each."""
    return tuple(Part(one.what, min(spent), one.needed) for one, spent in zip(pieces, times, strict=True))


def told(parts: Sequence[Part], whole_ms: float) -> str:
    """Shares of the whole in words.

    >>> told([Part("product", 3.0, True), Part("choice", 1.0, False)], 5.0)
    'product 60%, choice 20%'
    """
    return ", ".join(f"{part.what} {part.ms / whole_ms:.0%}" for part in parts)
