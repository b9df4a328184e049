"""Options of a method where they are declared already: in the signature and under the Args of what the method is about.

>>> from isonb.losses import CosRegLoss
>>> options_of(CosRegLoss)["weight"].metadata["help"]
'weight: above 0 lowers the mean cosine, below 0 raises it'
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import sys
import typing
from collections.abc import Callable
from dataclasses import Field, dataclass
from typing import Any, Literal, TypeVar

from isonb.lab.options import option

ENTRY = re.compile(r"^    (\w+): (.+(?:\n {5,}.+)*)", re.MULTILINE)  # of an Args list
RANGE = re.compile(r" In [\[(](\S+), (\S+)[\])]$")
FOREIGN = ("group",)  # of a loss, not of a run

K = TypeVar("K", bound=type[Any])


def options_of(thing: type[Any], without: tuple[str, ...] = ()) -> dict[str, Field[Any]]:
    """The options of a class by name: default and type by its signature, meaning and range by its Args."""
    told = dict(ENTRY.findall((inspect.getdoc(thing) or "").partition("\nArgs:\n")[2].partition("\n\n")[0]))
    return {
        name: _option(one.default, _kinds(one, thing), " ".join(told[name].split()).removesuffix("."))
        for name, one in inspect.signature(thing).parameters.items()
        if name not in (*FOREIGN, *without)
    }


def _option(default: Any, kinds: tuple[list[Any], tuple[Any, ...]], told: str) -> Field[Any]:
    limits = RANGE.search(told)
    low, high = map(float, limits.groups()) if limits else (None, None)
    plain, named = kinds
    meaning = RANGE.sub("", told).removesuffix(".")
    made: Field[Any] = option(default, meaning, low=low, high=high, choices=() if plain else named)
    made.type = functools.reduce(operator.or_, [*plain, *dict.fromkeys(map(type, named))])
    return made


def _kinds(parameter: inspect.Parameter, thing: type[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """The types that a value may have, and the values that its ``Literal`` names."""
    hint = parameter.annotation
    hint = eval(hint, vars(sys.modules[thing.__module__])) if isinstance(hint, str) else hint
    several = typing.get_args(hint) if typing.get_origin(hint) is not Literal else ()
    each = several or (hint,)
    named = [value for kind in each if typing.get_origin(kind) is Literal for value in typing.get_args(kind)]
    return [kind for kind in each if typing.get_origin(kind) is not Literal], tuple(named)


def takes(subject: type[Any], *, without: tuple[str, ...] = (), **defaults: Any) -> Callable[[K], K]:
    """A method with the options of ``subject`` before its own; its ``made()`` is the subject with their values.

    ``defaults`` are those of the method where they differ; ``without`` names options that it settles itself.
    """

    def method(kind: K) -> K:
        options = options_of(subject, without)
        for name, part in options.items():
            part.default = defaults.get(name, part.default)
            setattr(kind, name, part)
        kind.__annotations__ = {name: part.type for name, part in options.items()} | dict(kind.__annotations__)
        kind.subject, kind.taken = staticmethod(subject), tuple(options)
        kinds = {name: _kinds(inspect.signature(subject).parameters[name], subject) for name in options}
        kind.words = kind.words | {name: named for name, (plain, named) in kinds.items() if plain and named}
        return typing.cast(K, dataclass(frozen=True)(kind))

    return method
