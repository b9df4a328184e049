"""Isotropy of embedding spaces: every measure, loss, layer and transform of four papers, on tensors, with torch alone.

Points are rows: a cloud is a tensor ``(..., n, d)``, with an optional mask ``(..., n)`` that marks the real rows; numpy
arrays are taken too. Bad input raises one of the errors of :mod:`isonb.errors`. ``isonb.metrics`` (torchmetrics
classes), ``isonb.training``, ``isonb.lab`` and ``isonb.pages`` are imported by name and bring the libraries they
need.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isonb.public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """A submodule, or a public name: those bring torch, and the command line often answers without it."""
    if name == "__all__" or not name.startswith("_"):
        if importlib.util.find_spec(f"{__name__}.{name}"):
            return importlib.import_module(f"{__name__}.{name}")
        public = importlib.import_module(f"{__name__}.public")
        globals().update({each: getattr(public, each) for each in public.__all__}, __all__=public.__all__)
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """For tab completion."""
    return sorted({*globals(), *__getattr__("__all__")})
