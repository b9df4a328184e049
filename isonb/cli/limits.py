"""Limits that a build can fail on: "accuracy<0.8" is passed where accuracy is below 0.8, or is no number."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isonb.errors import InputError, fail
from isonb.runtime.terminal import printable

LIMIT = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>[<>])\s*(?P<value>[-+]?(\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
NEAR = 5  # names that an error offers


class LimitError(InputError):
    """A limit that makes no sense, or that names nothing that was measured."""


@dataclass(frozen=True)
class Limit:
    """Broken where the value of ``name`` lies on the side ``sign`` of ``value``; ``text`` as it was given."""

    text: str
    name: str
    sign: str
    value: float

    def broken_by(self, value: float | None) -> bool:
        """Whether a value breaks the limit; what is undefined or no number does."""
        if value is None:
            return True
        return not value <= self.value if self.sign == ">" else not value >= self.value


def limit(text: str, example: str) -> Limit:
    """The limit of ``--fail-on``; an error shows the ``example``.

    >>> highest = limit("mean cosine > 0.5", "x<1")
    >>> highest.broken_by(0.6), highest.broken_by(0.5), highest.broken_by(None)
    (True, False, True)
    """
    match = LIMIT.fullmatch(text)
    if match is None:
        fail(LimitError, f"--fail-on must be {example}", repr(text), "Write it so.")
    return Limit(text, match["name"], match["sign"], float(match["value"]))


def check_names(limits: Sequence[Limit], values: Mapping[str, float | None], also: Sequence[str] = ()) -> None:
    """Raise :class:`LimitError`, with the nearest ones, for a limit whose name isn't among the values.

    ``also`` are words that stand beside limits.
    """
    for rule in limits:
        if rule.name not in values:
            near = ", ".join(difflib.get_close_matches(rule.name, [*also, *values], NEAR, 0.0))
            fail(LimitError, "a rule must name one of what was measured", repr(rule.name), f"The nearest are {near}.")


def broken(limits: Sequence[Limit], values: Mapping[str, float | None]) -> bool:
    """Whether any limit is broken; each one that is, is told on stderr with its value."""
    passed = [rule for rule in limits if rule.broken_by(values[rule.name])]
    for rule in passed:
        value = values[rule.name]
        print(
            printable(f"broken    {rule.text} (it is {'undefined' if value is None else f'{value:.6g}'})"),
            file=sys.stderr,
        )
    return bool(passed)
