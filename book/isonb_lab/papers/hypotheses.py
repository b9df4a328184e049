"""What runs say of a hypothesis of a plan, in the same words for all plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from isonb_lab.statistics.seeds import Interval

HOLDS, CONTRADICTED, OPEN = "holds", "contradicted", "open"
NOT_RUN = "not run yet"
Table = TypeVar("Table")
Judged = tuple[bool, bool, str]  # whether a hypothesis is contradicted, whether it holds, and the numbers


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


def answers_by(rules: Mapping[str, Callable[[Table], Judged | None]], table: Table, holds: str = HOLDS) -> list[Answer]:
    """Each hypothesis by its rule; open where none of its rows is there. ``holds``: the word for one that does."""
    results = []
    for name, rule in rules.items():
        contradicted, as_said, why = rule(table) or (False, False, NOT_RUN)
        word = outcome(contradicted, as_said)
        results.append(Answer(name, holds if word == HOLDS else word, why))
    return results


def rows_with(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows of a table whose columns have these values."""
    expected = pd.Series(values)
    return table[(table[list(values)] == expected).all(axis=1)]
