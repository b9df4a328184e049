"""The methods of the four papers and their baselines, one file a paper, one small object a method.

>>> method_from({"name": "none"})
Method()
>>> resolved(method_from("none"))
{'name': 'none'}
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from isonb.checks import InputError, fail
from isonb.lab.methods.base import Contrast, Method, SecondPhase, Site
from isonb.lab.options import build, describe

__all__ = ["METHODS", "Contrast", "Method", "MethodError", "SecondPhase", "Site", "method_from", "resolved"]


class MethodError(InputError):
    """A method that doesn't exist or isn't given by name and options."""


METHODS: dict[str, type[Method]] = {kind.name: kind for kind in (Method,)}


def method_from(given: str | Mapping[str, Any]) -> Method:
    """The method given by its name, or by a mapping with ``name`` and options; every option is checked.

    Raises :class:`MethodError` for an unknown name, :class:`~isonb.lab.options.OptionError` for an option that doesn't
    exist, of another type or out of range.
    """
    values = {"name": given} if isinstance(given, str) else dict(given)
    name = values.pop("name", None)
    if name not in METHODS:
        close = difflib.get_close_matches(str(name), METHODS, n=1, cutoff=0.5)
        fix = (f"Did you mean {close[0]!r}? " if close else "") + f"Methods: {', '.join(METHODS)}."
        fail(MethodError, "the method must be one of isonb's", repr(name), fix)
    return build(METHODS[name], values, f"method {name}")


def resolved(method: Method) -> dict[str, Any]:
    """Name and every option, defaults written out: the method's part of a run's configuration."""
    return {"name": method.name, **describe(method)}
