"""Rules that a build can fail on: "accuracy<0.8" is broken where accuracy is below 0.8, or is no number."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isonb.errors import InputError, fail

__all__ = ["Gate", "GateError", "broken", "check_names", "gate", "under"]

RULE = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>[<>])\s*(?P<value>[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")
NEAR = 5  # names that an error offers


class GateError(InputError):
    """A rule that makes no sense, or that names nothing that was measured."""


@dataclass(frozen=True)
class Gate:
    """A rule: broken where the value of ``name`` lies on the side ``sign`` of ``limit``; ``text`` as it was given."""

    text: str
    name: str
    sign: str
    limit: float

    def broken_by(self, value: float | None) -> bool:
        """Whether a value breaks the rule; what is undefined or no number does."""
        if value is None:
            return True
        return not value <= self.limit if self.sign == ">" else not value >= self.limit


def gate(text: str, example: str) -> Gate:
    """The rule of ``--fail-on``; an error shows the ``example``.

    >>> rule = gate("mean cosine > 0.5", "x<1")
    >>> rule.broken_by(0.6), rule.broken_by(0.5), rule.broken_by(None)
    (True, False, True)
    """
    found = RULE.fullmatch(text)
    limit = None if found is None else _number(found["value"])
    if found is None or limit is None:
        fail(GateError, f"--fail-on must be {example}", repr(text), "Write it so.")
    return Gate(text, found["name"], found["sign"], limit)


def under(text: str) -> Gate:
    """The rule of ``--fail-under NAME=VALUE``.

    >>> under("accuracy=0.8").broken_by(0.7)
    True
    """
    name, mark, value = text.partition("=")
    limit = _number(value)
    if not mark or not name.strip() or limit is None:
        fail(GateError, "--fail-under must be NAME=NUMBER", repr(text), "Write --fail-under accuracy=0.8, say.")
    return Gate(f"{name.strip()}<{value.strip()}", name.strip(), "<", limit)


def check_names(gates: Sequence[Gate], values: Mapping[str, float | None], also: Sequence[str] = ()) -> None:
    """Raise :class:`GateError`, with the nearest ones, for a rule whose name isn't among the values.

    ``also`` are words that stand beside rules.
    """
    for one in gates:
        if one.name not in values:
            near = ", ".join(difflib.get_close_matches(one.name, [*also, *values], NEAR, 0.0))
            fail(GateError, "a rule must name one of what was measured", repr(one.name), f"The nearest are {near}.")


def broken(gates: Sequence[Gate], values: Mapping[str, float | None]) -> bool:
    """Whether any rule is broken; each one that is, is told on stderr with its value."""
    found = [one for one in gates if one.broken_by(values[one.name])]
    for one in found:
        value = values[one.name]
        print(f"broken    {one.text} (it is {'undefined' if value is None else f'{value:.6g}'})", file=sys.stderr)
    return bool(found)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
