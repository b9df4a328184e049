"""The command that makes a run again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from isonb.lab.runs.settings import resolve

__all__ = ["command"]


def command(config: Mapping[str, Any]) -> str:
    """``isonb run ...`` for a configuration that :func:`~isonb.lab.runs.settings.resolve` has written out.

    Only what the protocol ``small`` and the method's defaults don't say is named.

    >>> config = resolve({"task": "sst2", "model": "minilm", "method": {"name": "istar", "weight": -0.3}, "seed": 2})
    >>> command(config)
    'isonb run --task sst2 --model minilm --method istar -o weight=-0.3 --seed 2'
    """
    named = {key: config[key] for key in ("task", "model", "seed")}
    name = config["method"]["name"]
    usual = resolve(named | {"method": name})
    options = [f"-o {key}={_word(value)}" for key, value in config["method"].items() if value != usual["method"][key]]
    apart = (*named, "method", "inputs", "experiment")
    others = [f"--set {k}={_word(v)}" for k, v in config.items() if k not in apart and v != usual[k]]
    words = [*(f"--{key} {_word(named[key])}" for key in ("task", "model")), f"--method {_word(name)}", *options]
    return " ".join(["isonb run", *words, f"--seed {named['seed']}", *others])


def _word(value: object) -> str:
    """A value as the command line reads it."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"
    return shlex.quote(text)
