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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from isonb.errors import InputError, fail


class OptionError(InputError):
    """An option that doesn't exist, of another type or out of its range; nothing has been started."""


@dataclass(frozen=True)
class Options:
    """Base of dataclasses whose fields were made by :func:`option`.

    ``subject`` is what they are options of, such as a loss or a layer, where that declares some of them: ``taken``.
    """

    subject: ClassVar[Callable[..., Any] | None] = None
    taken: ClassVar[tuple[str, ...]] = ()

    def made(self, *args: Any) -> Any:
        """The subject, with the options that it declares."""
        assert self.subject is not None
        return self.subject(*args, **{name: getattr(self, name) for name in self.taken})


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
    known = {entry.name: entry for entry in fields(kind)}
    for name in given:
        known_name(name, known, where, also)
    hints = _hints(kind)
    values = {
        name: _checked(given[name], hints[name], entry, f"{name} of {where}")
        for name, entry in known.items()
        if name in given
    }
    return kind(**values)


def known_name(name: object, known: Iterable[str], where: str, also: Iterable[str] = ()) -> None:
    """Raise :class:`OptionError`, with the nearest name, unless ``name`` is one of those ``known``."""
    if name not in (known := list(known)):
        names = [*also, *known]
        fix = f"{nearest(name, names)}Options: {', '.join(names) or 'none'}."
        fail(OptionError, f"{where} must be given options it has", shown(name), fix)


def nearest(name: object, known: Iterable[str]) -> str:
    """The question whether the nearest of the names ``known`` was meant; empty where none is near.

    >>> nearest("taget", ["kind", "target"])
    "Did you mean 'target'? "
    """
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f"Did you mean {close[0]!r}? " if close else ""


def shown(value: object) -> str:
    """A value as an error shows it, on one short line whatever it is.

    >>> shown("a" * 1000)[-5:]
    'aa...'
    """
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def describe(options: Options) -> dict[str, Any]:
    """All options by name, defaults written out: what a run id is made of.

    >>> describe(Options())
    {}
    """
    return {entry.name: getattr(options, entry.name) for entry in fields(options)}


def rules(kind: type[Options]) -> dict[str, str]:
    """Each option's type, range and meaning in words, by name: for help texts and errors."""
    hints = _hints(kind)
    return {entry.name: f"{_rule(hints[entry.name], entry)}: {entry.metadata['help']}" for entry in fields(kind)}


def _allowed(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _rule(hint: Any, entry: Any) -> str:
    low, high, choices = (entry.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return "one of " + ", ".join(map(str, choices))
    names = [kind.__name__ for kind in _allowed(hint) if kind is not type(None)]
    words = " or ".join(names)
    if low is not None or high is not None:
        words += f" {'' if low is None else f'{low:g}'}..{'' if high is None else f'{high:g}'}"
    return words + (" or nothing" if type(None) in _allowed(hint) else "")


def _checked(value: Any, hint: Any, entry: Any, where: str) -> Any:
    limits = {name: entry.metadata[name] for name in ("low", "high", "choices")}
    taken = fitted(value, _allowed(hint), **limits)
    if taken is UNFIT:
        fail(OptionError, f"{where} must be {_rule(hint, entry)}", shown(value), f"It means: {entry.metadata['help']}.")
    return taken


UNFIT: Any = object()


def fitted(
    value: Any,
    allowed: tuple[Any, ...],
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
) -> Any:
    """``value`` as one of the ``allowed`` types, inside its range and among its choices; else :data:`UNFIT`.

    >>> fitted("1e-3", (float,), low=0), fitted(3.0, (int,)), fitted(True, (int,)) is UNFIT
    (0.001, 3, True)
    """
    taken = _typed(value, allowed)
    if taken is UNFIT or taken is None:
        return taken
    if choices and taken not in choices:
        return UNFIT
    if isinstance(taken, int | float) and not isinstance(taken, bool):
        inside = (low is None or low <= taken) and (high is None or taken <= high)
        return taken if inside and (isinstance(taken, int) or math.isfinite(taken)) else UNFIT
    return taken


def _typed(value: Any, allowed: tuple[Any, ...]) -> Any:
    """``value`` as one of the ``allowed`` types, or :data:`UNFIT`."""
    if value is None:
        return None if type(None) in allowed else UNFIT
    if isinstance(value, bool):
        return value if bool in allowed else UNFIT
    if isinstance(value, tuple(kind for kind in allowed if kind is not type(None))):
        return value
    if isinstance(value, int) and float in allowed:
        return float(value) if abs(value) <= sys.float_info.max else UNFIT
    if isinstance(value, float) and int in allowed and value.is_integer():
        return int(value)
    if isinstance(value, str) and (float in allowed or int in allowed):
        try:
            number = float(value)
        except ValueError:
            return UNFIT
        return _typed(int(number) if number.is_integer() and int in allowed else number, allowed)
    return UNFIT
