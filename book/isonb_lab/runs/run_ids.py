"""A run's name follows from its configuration alone, so every grid that asks for a run meets the same record."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import re
from collections.abc import Mapping
from decimal import Context, Decimal
from pathlib import PurePath
from typing import Any

from isonb.errors import InputError
from isonb.options import shown

NAMED = ("task", "model", "method", "seed", "inputs")  # the keys that make the readable part of an id
NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")
EXACT = Context(prec=100)


class ConfigError(InputError):
    """A configuration that can't be written as JSON without loss."""


def run_id(config: Mapping[str, Any]) -> str:
    """The id of the run that ``config`` describes: a readable part and twelve hexadecimal digits of a sha256.

    The readable part comes from task, model, method, seed and inputs where they are given; the digits from every key
    (see :func:`canonical`). Fill in defaults before (:func:`~isonb_lab.runs.settings.plan`): a default that is left
    out and the same value written out are two configurations.

    >>> a = run_id({"task": "cola", "model": "minilm", "method": "istar", "seed": 1, "lr": 1e-5})
    >>> a == run_id({"lr": "0.00001", "seed": 1.0, "method": "istar", "model": "minilm", "task": "cola"}), a
    (True, 'cola-minilm-istar-s1-abe677a1aa81')
    """
    digits = hashlib.sha256(canonical(config).encode()).hexdigest()[:12]
    parts = [_word(key, config[key]) for key in NAMED if config.get(key) is not None]
    return "-".join([*filter(None, parts), digits]) if any(parts) else f"run-{digits}"


def canonical(config: Mapping[str, Any]) -> str:
    """One text for all ways of writing the same configuration.

    Keys are sorted at every level and a key that is None counts as absent. Numbers are exact decimals, and text that
    reads as a number is that number: 1 = 1.0 = "1", 1e-5 = 0.00001 = "1e-5" (YAML reads the last as text). Lists and
    tuples are alike. Raises :class:`ConfigError` for NaN and infinity, keys that aren't text and values that aren't
    JSON.

    >>> canonical({"b": (1.0, True), "a": None, "c": "1e-5"})
    '{"b":["1",true],"c":"0.00001"}'
    """
    plain = _plain(config, "config")
    if not isinstance(plain, dict):
        got = type(config).__name__
        raise ConfigError(f"a configuration must be a mapping from names to values; got {got}. Pass a dict.")
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def _plain(value: Any, where: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _decimal(value) if NUMBER.fullmatch(value) else value
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise ConfigError(f"{where} must be a finite number; got {value}. Leave the key out, or name the case.")
        return _decimal(str(int(value)) if isinstance(value, numbers.Integral) else repr(float(value)))
    if isinstance(value, Mapping):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise ConfigError(f"keys of {where} must be text; got {odd[0]!r}. Write the key in quotes.")
        return {key: _plain(inner, f"{where}.{key}") for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(inner, f"{where}[{i}]") for i, inner in enumerate(value)]
    got = f"{type(value).__name__} {shown(value)}"
    raise ConfigError(f"{where} must be text, a number, true/false, a list or a mapping; got {got}. Convert it first.")


def _decimal(text: str) -> str:
    number = Decimal(text)
    return "0" if number == 0 else format(EXACT.normalize(number), "f")


def _word(key: str, value: Any) -> str:
    """A short, file-safe word for one value: the name of a mapping, the last part of a path or hub id."""
    if isinstance(value, Mapping):
        value = value.get("name", "")
    value = _plain(value, key)
    if not isinstance(value, str):
        return ""
    word = re.sub(r"[^a-z0-9]+", "-", PurePath(value).name.lower()).strip("-")[:24].strip("-")
    return f"s{word}" if word and key == "seed" else word
