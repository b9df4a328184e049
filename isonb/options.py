"""An option is a field: declared once, with its meaning and the values it takes, on the class that has it.

Losses, layers, transforms, methods and the settings of runs are dataclasses of such fields. The check of what is given,
``repr``, the Args of the reference, the lists of the command line and the errors are all made from them. Without torch.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Bake(Options):
...     minutes: float = option(30.0, "time in the oven", low=1, high=600)
...     crust: Literal["thin", "thick"] = option("thin", "kind of crust")
>>> Bake(minutes=12)
Bake(minutes=12.0, crust='thin')
>>> build(Bake, {"minutes": "700"}, "the cake")
Traceback (most recent call last):
...
isonb.errors.OptionError: minutes of the cake must be float from 1 to 600; got '700'. It means: time in the oven.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import numbers
import types
import typing
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import MISSING, Field, InitVar, field, fields
from typing import Any, Literal, NamedTuple, TypeVar

from isonb.errors import OptionError, fail

LONGEST = 80  # letters of a value in an error
SECTIONS = ("Returns:", "Raises:", ">>> ")  # of a docstring, what may stand below Args


def option(default: Any, help: str, **rule: Any) -> Any:
    """A field with its meaning and the values it takes; ``rule`` as in :func:`meaning`."""
    return field(default=default, metadata=meaning(help, **rule))


def meaning(
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] = (),
    idle: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The metadata of an option, for a field that needs more: ``field(metadata=meaning(...))`` has no default.

    ``low`` and ``high`` belong to the range. Values that are named stand in the type, ``Literal["thin", "thick"]``, or
    in ``choices`` where they are computed. ``idle`` names another option and the value of it beside which this one does
    nothing: there it is refused unless it is at its default.
    """
    return {"help": help, "low": low, "high": high, "choices": choices, "idle": idle or {}}


class Options:
    """Base of dataclasses whose fields were made by :func:`option`: checked when they are built, Args written out."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__dict__.get("__doc__"):  # python -OO leaves none
            cls.__doc__ = _with_args(cls)

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]
            if "help" in entry.metadata:
                given = getattr(self, entry.name)
                taken = checked(type(self), entry.name, given)
                if taken is not given:
                    object.__setattr__(self, entry.name, taken)
        check_effect(self)

    @classmethod
    def title(cls) -> str:
        """What an error calls the owner of its options."""
        return cls.__name__


T = TypeVar("T", bound=Options)


def declared(kind: Any) -> dict[str, Field[Any]]:
    """The options of a class by name, those it only starts from (``InitVar``) included."""
    entries: dict[str, Field[Any]] = getattr(kind, "__dataclass_fields__", {})
    return {name: entry for name, entry in entries.items() if "help" in entry.metadata}


def describe(options: Any) -> dict[str, Any]:
    """All options by name, defaults written out: what a run id is made of, and what a transform saves.

    >>> describe(Options())
    {}
    """
    return {name: getattr(options, name) for name in declared(type(options))}


def in_words(values: Mapping[str, Any]) -> str:
    """Options and their values as a call has them.

    >>> in_words({"weight": 1.0, "mode": "code"})
    "weight=1.0, mode='code'"
    """
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def build(kind: type[T], given: Mapping[str, Any], where: str, also: Iterable[str] = ()) -> T:
    """A ``kind`` with the values ``given`` in a file or on a command line, the rest by default.

    Text such as "1e-5", which YAML reads as text, passes for a number, and a number for text where no number is taken.
    ``also``: names that are taken elsewhere, for the error alone. Raises :class:`~isonb.errors.OptionError`, which
    names ``where``, the option, its rule and what came.
    """
    known = declared(kind)
    for name in given:
        known_name(name, known, where, also)
    return kind(**{name: checked(kind, name, value, where, text=True) for name, value in given.items()})


def known_name(name: object, known: Iterable[str], where: str, also: Iterable[str] = ()) -> None:
    """Raise :class:`~isonb.errors.OptionError`, with the nearest name, unless ``name`` is one of those ``known``."""
    if name not in (known := list(known)):
        names = [*also, *known]
        fix = f"{nearest(name, names)}Options: {', '.join(names) or 'none'}."
        fail(OptionError, f"an option of {where} must exist", shown(name), fix)


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
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f" of at most {high:g}"
    return f" of at least {low:g}" if high is None else f" from {low:g} to {high:g}"


class Domain(NamedTuple):
    """The values that an option takes: of some types in a range, or named ones."""

    kinds: tuple[type, ...]
    named: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        span = _span(self.low, self.high)
        parts = [f"{kind.__name__}{span if kind in (int, float) else ''}" for kind in self.kinds]
        parts = [word for word in parts if word != "NoneType"] + [repr(value) for value in self.named]
        parts += ["None"] if type(None) in self.kinds else []
        return " or ".join([", ".join(parts[:-1]), parts[-1]] if parts[1:] else parts)

    def fit(self, value: Any, text: bool = False) -> Any:
        """``value`` in the type it has here, or :data:`UNFIT`; with ``text`` the text of a number is one.

        >>> Domain((float,), low=0).fit("1e-3", text=True), Domain((int,)).fit(3.0), Domain((int,)).fit(True) is UNFIT
        (0.001, 3, True)
        """
        if isinstance(value, str) and value in self.named:
            return value
        numbered = tuple(type(item) for item in self.named if not isinstance(item, str))
        taken = _typed(value, self.kinds + numbered, text)
        if isinstance(taken, int | float) and not isinstance(taken, bool):
            if taken in self.named:
                return taken
            inside = (self.low is None or self.low <= taken) and (self.high is None or taken <= self.high)
            return taken if inside and isinstance(taken, self.kinds) else UNFIT
        return taken


UNFIT: Any = object()


def checked(kind: Any, name: str, value: Any, where: str = "", text: bool = False) -> Any:
    """The value of an option in its type; :class:`~isonb.errors.OptionError` for one that it doesn't take."""
    domain = domains(kind)[name]
    taken = domain.fit(value, text)
    if taken is UNFIT:
        means = f"It means: {declared(kind)[name].metadata['help']}."
        fail(OptionError, f"{name} of {where or kind.title()} must be {domain}", shown(value), means)
    return taken


def check_effect(options: Any) -> None:
    """Raise :class:`~isonb.errors.OptionError` for an option that is set and does nothing beside another."""
    for name, entry in declared(type(options)).items():
        for other, value in entry.metadata["idle"].items():
            if getattr(options, other) == value and (given := getattr(options, name)) != entry.default:
                want = f"{name} of {options.title()} must be left out with {in_words({other: value})}: it does nothing"
                fail(OptionError, want, shown(given), f"Change {other}, or leave {name} out.")


@functools.cache
def hints(kind: Hashable) -> dict[str, Any]:
    """The type of each option of a class, by name."""
    known = typing.get_type_hints(kind)
    return {name: hint.type if isinstance(hint := known[name], InitVar) else hint for name in declared(kind)}


@functools.cache
def domains(kind: Hashable) -> dict[str, Domain]:
    """What each option of a class takes, by name."""
    return {name: _domain(hints(kind)[name], entry.metadata) for name, entry in declared(kind).items()}


def _domain(hint: Any, rule: Mapping[str, Any]) -> Domain:
    members = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    named = [value for member in members if typing.get_origin(member) is Literal for value in typing.get_args(member)]
    kinds = [typing.get_origin(member) or member for member in members if typing.get_origin(member) is not Literal]
    if rule["choices"]:
        kinds, named = [kind for kind in kinds if kind is type(None)], list(rule["choices"])
    return Domain(tuple(kinds), tuple(named), rule["low"], rule["high"])


def _typed(value: Any, kinds: tuple[type, ...], text: bool) -> Any:
    """``value`` as one of the ``kinds``, or :data:`UNFIT`; a whole number is an int where no float is taken."""
    if isinstance(value, bool):
        return value if bool in kinds else UNFIT
    if isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            return UNFIT
        if not math.isfinite(number):
            return UNFIT
        if int in kinds and number.is_integer():
            return int(value)  # type: ignore[call-overload]
        if float in kinds:
            return number
        return (str(int(value)) if number.is_integer() else repr(number)) if text and str in kinds else UNFIT  # type: ignore[call-overload]
    if isinstance(value, kinds):
        return value
    if text and isinstance(value, str) and (float in kinds or int in kinds):
        try:
            return _typed(int(value) if value.strip().lstrip("+-").isdecimal() else float(value), kinds, False)
        except ValueError:
            return UNFIT
    return UNFIT


def rules(kind: Any) -> dict[str, str]:
    """Each option's values and meaning in words, by name: for help texts and errors."""
    return {name: f"{domain}: {declared(kind)[name].metadata['help']}" for name, domain in domains(kind).items()}


def _with_args(cls: type[Any]) -> str:
    """The docstring of a class with its options as the paragraph Args, in front of what follows there."""
    own = {name: kind for name, kind in inspect.get_annotations(cls).items() if isinstance(vars(cls).get(name), Field)}
    entries = {name: (entry.type, entry) for name, entry in declared(cls).items()}
    entries |= {name: (kind, vars(cls)[name]) for name, kind in own.items() if "help" in vars(cls)[name].metadata}
    args = [_argument(name, kind, entry) for name, (kind, entry) in entries.items()]
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()
    place = next((i for i, line in enumerate(lines) if line.startswith(SECTIONS)), len(lines))
    before = lines[:place] if place < len(lines) else [*lines, ""]
    return "\n".join([*before, "Args:", *args, "", *lines[place:]] if args else lines)


def _argument(name: str, hint: Any, entry: Field[Any]) -> str:
    kind = hint if isinstance(hint, str) else inspect.formatannotation(hint)
    kind = kind[len("InitVar[") : -1] if kind.startswith("InitVar[") else kind
    rule, default = entry.metadata, "" if entry.default is MISSING else f", by default {entry.default!r}"
    return f"    {name}: {rule['help']} ({kind}{_span(rule['low'], rule['high'])}{default})."
