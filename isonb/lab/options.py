"""Typed options: a frozen dataclass whose fields say type, range and meaning, and the one check of what is given.

Run configurations and methods are such dataclasses. Options come from YAML files, notebooks and command lines, so they
are checked once, before any work starts.

>>> @dataclass(frozen=True)
... class Bake(Options):
...     minutes: float = option(30.0, "time in the oven", low=1, high=600)
...     crust: str = option("thin", "kind of crust", choices=("thin", "thick"))
>>> build(Bake, {"minutes": 12}, "bake")
Bake(minutes=12.0, crust='thin')
"""

from __future__ import annotations

import difflib
import functools
import math
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from isonb.errors import InputError, fail

__all__ = [
    "OptionError",
    "Options",
    "build",
    "describe",
    "known_name",
    "option",
    "rules",
    "shown",
    "writable",
]


class OptionError(InputError):
    """An option that doesn't exist, of another type or out of its range; nothing has been started."""


@dataclass(frozen=True)
class Options:
    """Base of dataclasses whose fields were made by :func:`option`."""


T = TypeVar("T", bound=Options)
LONGEST = 80  # letters of a value in an error
_hints: Any = functools.cache(typing.get_type_hints)  # a grid builds hundreds of the same few kinds


def option(
    default: Any, help: str, *, low: float | None = None, high: float | None = None, choices: tuple[Any, ...] = ()
) -> Any:
    """A field with its meaning and the values it takes. ``low`` and ``high`` belong to the range."""
    return field(default=default, metadata={"help": help, "low": low, "high": high, "choices": choices})


def build(kind: type[T], given: Mapping[str, Any], where: str, also: Iterable[str] = ()) -> T:
    """A ``kind`` with the values ``given``, the rest by default; None takes the default of an option that allows None.

    A whole number passes for a float, and text such as "1e-5", which YAML reads as text, for a number. ``also``: names
    that are taken elsewhere, for the error alone. Raises :class:`OptionError`, which names ``where``, the option, its
    rule and what came.
    """
    known = {part.name: part for part in fields(kind)}
    for name in given:
        known_name(name, known, where, also)
    hints = _hints(kind)
    values = {
        name: _checked(given[name], hints[name], part, f"{name} of {where}")
        for name, part in known.items()
        if name in given
    }
    return kind(**values)


def known_name(name: object, known: Iterable[str], where: str, also: Iterable[str] = ()) -> None:
    """Raise :class:`OptionError`, with the nearest name, unless ``name`` is one of those ``known``."""
    if name not in (known := list(known)):
        names = [*also, *known]
        close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
        fix = (f"Did you mean {close[0]!r}? " if close else "") + f"Options: {', '.join(names) or 'none'}."
        fail(OptionError, f"{where} must be given options it has", shown(name), fix)


def shown(value: object) -> str:
    """A value as an error shows it, on one short line whatever it is.

    >>> shown("a" * 1000)[-5:], shown(10**5000)
    ('aa...', 'a number of thousands of digits')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes out no whole number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def writable(text: str) -> bool:
    """Whether a file can hold the text: half of a character (a lone surrogate, as odd file names give) fits into none.

    >>> writable("a" + chr(0x1F600)), writable(chr(0xDC80))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def describe(options: Options) -> dict[str, Any]:
    """All options by name, defaults written out: what a run id is made of.

    >>> describe(Options())
    {}
    """
    return {part.name: getattr(options, part.name) for part in fields(options)}


def rules(kind: type[Options]) -> dict[str, str]:
    """Each option's type, range and meaning in words, by name: for help texts and errors."""
    hints = _hints(kind)
    return {part.name: f"{_rule(hints[part.name], part)}: {part.metadata['help']}" for part in fields(kind)}


def _allowed(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _rule(hint: Any, part: Any) -> str:
    low, high, choices = (part.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return "one of " + ", ".join(map(str, choices))
    names = [kind.__name__ for kind in _allowed(hint) if kind is not type(None)]
    words = " or ".join(names)
    if low is not None or high is not None:
        words += f" {'' if low is None else f'{low:g}'}..{'' if high is None else f'{high:g}'}"
    return words + (" or nothing" if type(None) in _allowed(hint) else "")


def _checked(value: Any, hint: Any, part: Any, where: str) -> Any:
    found = _typed(value, _allowed(hint))
    low, high, choices = (part.metadata[name] for name in ("low", "high", "choices"))
    number = isinstance(found, int | float) and not isinstance(found, bool)
    odd = isinstance(found, float) and not math.isfinite(found)
    inside = not number or (not odd and (low is None or low <= found) and (high is None or found <= high))
    if found is _NO or not inside or (choices and found is not None and found not in choices):
        fail(OptionError, f"{where} must be {_rule(hint, part)}", shown(value), f"It means: {part.metadata['help']}.")
    if isinstance(found, str) and not writable(found):
        fail(OptionError, f"{where} must be text that a file can hold", shown(value), "Take the half character out.")
    return found


_NO: Any = object()


def _typed(value: Any, allowed: tuple[Any, ...]) -> Any:
    """``value`` as one of the ``allowed`` types, or _NO."""
    if value is None:
        return None if type(None) in allowed else _NO
    for kind in allowed:
        if kind is type(None):
            continue
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
    if isinstance(value, bool):
        return _NO
    if float in allowed and isinstance(value, int):
        return float(value) if abs(value) <= sys.float_info.max else _NO
    if int in allowed and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and (float in allowed or int in allowed):
        try:
            number = float(value)
        except ValueError:
            return _NO
        return _typed(int(number) if number.is_integer() and int in allowed else number, allowed)
    return _NO
