"""The matched control of a run: the run that differs from it in its method alone."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from isonb.errors import InputError
from isonb.lab.methods import method_class
from isonb.lab.methods.base import Method

# What the run's own settings call the options of contrastive tuning.
TUNING = {
    "steps": "tuning_steps",
    "batch_size": "tuning_batch",
    "learning_rate": "tuning_rate",
    "temperature": "temperature",
    "max_length": "tuning_length",
}


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


def _kind(name: str) -> type[Method]:
    """The class of a method; that of none where the file of a user's own method is gone."""
    with contextlib.suppress(InputError):
        return method_class(name)
    return Method
