"""The methods of the four papers and their baselines, one file a paper, one small object a method.

>>> method_from({"name": "none"})
Method()
>>> resolved(method_from("none"))
{'name': 'none'}
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pkgutil
from collections.abc import Collection, Mapping
from typing import Any

from isonb.errors import InputError, fail
from isonb.options import build, describe, nearest, rules, shown
from isonb_lab.methods import own
from isonb_lab.methods.base import Contrast as Contrast
from isonb_lab.methods.base import Method as Method
from isonb_lab.methods.base import MethodError as MethodError
from isonb_lab.methods.base import SecondPhase as SecondPhase
from isonb_lab.methods.base import Site as Site

_KNOWN: dict[str, type[Method]] = {Method.name: Method}

# What the run's own settings call the options of contrastive tuning.
TUNING = {
    "steps": "tuning_steps",
    "batch_size": "tuning_batch",
    "learning_rate": "tuning_rate",
    "temperature": "temperature",
    "max_length": "tuning_length",
}


@functools.cache
def methods() -> dict[str, type[Method]]:
    """Every method by its name: none, and what the files of this folder list as their ``METHODS``; they bring torch."""
    for file in pkgutil.iter_modules(__path__):
        listed = getattr(importlib.import_module(f"{__name__}.{file.name}"), "METHODS", ())
        _KNOWN.update({kind.name: kind for kind in listed})
    return _KNOWN


def method_class(name: object) -> type[Method]:
    """The class of a method, by its name, or by ``my_method.py:MyMethod`` for one of a file of the user's own.

    Raises :class:`MethodError` for an unknown name.
    """
    if isinstance(name, str) and own.is_own(name):
        return own.own_method(name)
    kind = (_KNOWN.get(name) or methods().get(name)) if isinstance(name, str) else None
    if kind is None:
        fix = f"{nearest(name, methods())}Methods: {', '.join(methods())}; or FILE.py:CLASS."
        fail(MethodError, "the method must be one of isonb's", shown(name), fix)
    return kind


def method_from(method_or_name: str | Mapping[str, Any]) -> Method:
    """The method given by its name, or by a mapping with ``name`` and options; every option is checked.

    Raises as :func:`method_class`, and :class:`~isonb.errors.OptionError` for an option that doesn't exist, of
    another type or out of range.
    """
    values = dict(method_or_name) if isinstance(method_or_name, Mapping) else {"name": method_or_name}
    name = values.pop("name", None)
    return build(method_class(name), values, f"method {name}")


def resolved(method: Method) -> dict[str, Any]:
    """Name and every option, defaults written out: the method's part of a run's configuration."""
    return {"name": method.name, **describe(method)}


def label(method: Mapping[str, Any], options: Collection[str] | None = None) -> str:
    """The name of a method and the values of some ``options``, by default of those that aren't at their defaults.

    >>> label({"name": "istar", "weight": -3.0, "zeta": 0.2})
    'istar weight=-3'
    >>> label({"name": "istar", "weight": -3.0, "zeta": 0.2}, ["zeta"])
    'istar zeta=0.2'
    """
    if options is None:
        usual = describe(_kind(method["name"])())
        options = [name for name, value in method.items() if name != "name" and value != usual.get(name)]
    return " ".join([method["name"], *(f"{name}={plain_value(method[name])}" for name in method if name in options)])


def plain_value(value: Any) -> Any:
    """A value of a table as Python has it; a whole number is one also where its column is float.

    >>> plain_value(3.0), plain_value(True), plain_value("auto")
    (3, True, 'auto')
    """
    value = getattr(value, "item", lambda: value)()
    return int(value) if isinstance(value, float) and value.is_integer() else value


# The hooks by which a method takes part in a stage.
_STAGES = {
    "contrast": ("contrast",),
    "training": ("penalty", "layer"),
    "second": ("second",),
    "similarity": ("pool", "fit_tokens", "transform"),
}


def catalogue() -> list[dict[str, Any]]:
    """Every method for help texts and reference pages: name, source, about, stages and options.

    ``about`` is what it does in a sentence or two, ``stages`` those of "contrast", "training", "second" and
    "similarity" that it takes part in by hooks of its own. Options map their names to a default and a rule in words.

    >>> entry = next(entry for entry in catalogue() if entry["name"] == "cosreg")
    >>> entry["stages"], entry["options"]["include_pads"]["default"]
    (['training'], False)
    """
    return [
        {
            "name": name,
            "source": kind.source,
            "about": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
            "stages": [stage for stage, hooks in _STAGES.items() if any(_own(kind, hook) for hook in hooks)],
            "options": {
                option: {"default": default, "rule": rules(kind)[option]}
                for option, default in describe(kind()).items()
            },
        }
        for name, kind in methods().items()
    ]


def _own(kind: type[Method], hook: str) -> bool:
    return getattr(kind, hook) is not getattr(Method, hook)


def control_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The method of the matched control of a run, by name and options.

    In fine-tuning it is "none". In similarity a method with a penalty or a layer needs a loss to act on, and the
    encoder is tuned by SimCSE with the run's settings: the control is that tuning alone, "simcse" with these settings,
    and not the untrained vectors.

    >>> control_of({"experiment": "finetune", "method": {"name": "istar"}})
    {'name': 'none'}
    >>> tuned = {"experiment": "similarity", "tuning_steps": 50, "method": {"name": "istar"}}
    >>> control_of(tuned)
    {'name': 'simcse', 'steps': 50}
    >>> control_of(tuned | {"method": {"name": "whitening"}})
    {'name': 'none'}
    """
    kind = _kind(config["method"]["name"])
    trains = kind.penalty is not Method.penalty or kind.layer is not Method.layer
    if config.get("experiment") != "similarity" or kind.post_hoc or not trains:
        return {"name": Method.name}
    return {"name": "simcse"} | {ours: config[theirs] for ours, theirs in TUNING.items() if theirs in config}


def acting_place(method: str, experiment: str = "finetune") -> str:
    """The vectors that a method changes, as a record names their measures: "cls", "tokens", "features", "second".

    >>> acting_place("istar"), acting_place("istar", "similarity")
    ('tokens', 'features')
    """
    return "features" if experiment == "similarity" else _kind(method).acts_on


def reading_place(method: str, head: str = "pooler", experiment: str = "finetune") -> str:
    """The vectors that a classifier reads, or a cosine in similarity, as a record names their measures.

    Empty where no record has them: a pooler stands between them and a second stage that keeps the fine-tuned head.

    >>> reading_place("istar"), reading_place("isolayer", "linear"), reading_place("isolayer", "pooler")
    ('features', 'second', '')
    >>> reading_place("whitening", experiment="similarity")
    'features'
    """
    kind = _kind(method)
    if experiment == "similarity":
        return "features"
    return "" if kind.keeps_head and head == "pooler" else kind.read_by


def _kind(name: str) -> type[Method]:
    """The class of a method; that of none where the file of a user's own method is gone."""
    with contextlib.suppress(InputError):
        return method_class(name)
    return Method
