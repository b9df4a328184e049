"""Old names of :mod:`isonb.transforms.graded`, for code and pickles that have them; they go with the next release."""

import warnings
from typing import Any

from isonb.transforms import graded
from isonb.transforms.base import RENAMED


def renamed(name: str, stacklevel: int) -> Any:
    """What a name stands for now; AttributeError for one that never was."""
    if name.startswith("_") or not hasattr(graded, RENAMED.get(name, name)):
        raise AttributeError(f"isonb.transforms has no attribute {name!r}")
    if name in RENAMED:
        message = f"isonb.{name} is now isonb.{RENAMED[name]}"
        warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)
    return getattr(graded, RENAMED.get(name, name))


def __getattr__(name: str) -> Any:
    return renamed(name, 2)
