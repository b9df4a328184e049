"""Which files hold a model's weights: ``model.safetensors``, or the shards that its index names, and nothing else.

transformers loads whatever an index names, pickles and files of other folders too. So every entry is looked at here,
before a file is opened, and a digest is of the files that are loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path

__all__ = ["INDEX", "WHOLE", "lacking", "weight_names"]

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD = re.compile(r"[\w.-]+\.safetensors")


def lacking(folder: Path, files: Collection[str]) -> str:
    """Why the weights in ``folder`` can't be used, in words; empty: they can.

    ``files``: the names that are there, in the folder or still on the hub. The index is read from the folder.
    """
    try:
        names = weight_names(folder, files)
    except ValueError as error:
        return f"has an index of weights ({INDEX}) that {error}"
    if not names:
        return "has no safetensors weights (model.safetensors, or all its shards); convert the model first"
    if missing := sorted(set(names) - set(files)):
        return f"has no safetensors weights {missing[0]} (all its shards must be there); copy the model again"
    return ""


def weight_names(folder: Path, files: Collection[str]) -> list[str]:
    """The names of the files that are loaded, sorted. ValueError for an index that names anything but shards."""
    if WHOLE in files:
        return [WHOLE]
    if INDEX not in files:
        return []
    try:
        entries = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("must map weights to shards") from error
    for entry in entries:
        if not isinstance(entry, str) or not SHARD.fullmatch(entry):
            raise ValueError(f"names {entry!r}; it may name safetensors files beside it alone")
    return sorted(set(entries))
