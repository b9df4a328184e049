"""Isotropy of embedding spaces: every measure, loss, layer and transform of four papers, on tensors, with torch alone.

Points are rows: a cloud is a tensor ``(..., n, d)``, with an optional mask ``(..., n)`` that marks the real rows; numpy
arrays are taken too. Bad input raises one of the errors of :mod:`isonb.errors`. ``isonb.metrics`` (torchmetrics
classes), ``isonb.integrations`` and ``isonb.models`` are imported by name and bring the libraries they need.

The public names are those of :mod:`isonb.api` and of :mod:`isonb.auditing`. They come with their first use: the command
line often answers without torch, and the audit needs numpy.
"""

import sys
from typing import TYPE_CHECKING, Any

from isonb.moved import MovedModules

__version__ = "0.1.0"

AUDIT = ("Audit", "audit", "compare")
sys.meta_path.insert(0, MovedModules())  # before the finder of files, which would import a moved module a second time

if TYPE_CHECKING:
    from isonb.api import *  # noqa: F403
    from isonb.auditing import Audit as Audit
    from isonb.auditing import audit as audit
    from isonb.auditing import compare as compare
else:  # a type checker would take every misspelt name for one of these

    def __getattr__(name: str) -> Any:
        """A public name, the list of these, or a submodule."""
        from importlib import import_module
        from importlib.util import find_spec

        if name.startswith("_") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if find_spec(f"{__name__}.{name}"):
            return import_module(f"{__name__}.{name}")
        from isonb import api

        if name == "__all__":
            return sorted({*(one for one in vars(api) if not one.startswith("_")), *AUDIT})
        source = import_module("isonb.auditing") if name in AUDIT else api
        if not hasattr(source, name):
            from isonb.transforms.turns import RENAMED, renamed

            if name in RENAMED:
                return renamed(name, 2)
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(source, name)
        return globals()[name]

    def __dir__() -> list[str]:
        """For tab completion: the public names."""
        return sorted({*(name for name in globals() if name.startswith("__")), *__getattr__("__all__")})
