"""Names that moved: the laboratory was ``isonb.lab`` and ``isonb.pages``; they stay one release, with a warning.

Those of the laboratory work where isonb-lab is installed. Nothing here imports it before somebody asks for an old name.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ENCODERS = ("catalogue", "loading", "locate", "module_list", "sentence_models", "text_models")
MOVED = {
    **{f"isonb.lab.encoders.{name}": f"isonb.models.{name}" for name in ENCODERS},
    "isonb.lab.studies": "isonb_lab.claims",
    "isonb.lab.options": "isonb.options",
    "isonb.lab": "isonb_lab",
    "isonb.neighbors": "isonb.measures.neighbors",
    "isonb.pages": "isonb_lab.pages",
    "isonb.runtime.leash": "isonb_lab.runtime.supervised",
    "isonb.runtime.locks": "isonb_lab.runtime.locks",
    "isonb.runtime.places": "isonb_lab.places",
}


def new_name(name: str) -> str | None:
    """Where a module is now, or None for one that didn't move.

    >>> new_name("isonb.neighbors"), new_name("isonb.lab.runs.record"), new_name("isonb.losses")
    ('isonb.measures.neighbors', 'isonb_lab.runs.record', None)
    """
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


class MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old names: the same objects, imported by the new ones."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec for what moved."""
        if not name.startswith("isonb.") or new_name(name) is None:
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module by its new name, whose own spec is kept."""
        new = new_name(spec.name) or spec.name
        warnings.warn(f"{spec.name} is {new} now; the old name goes with the next release", DeprecationWarning, 2)
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: it is executed already."""
        state = None if module.__spec__ is None else module.__spec__.loader_state
        if isinstance(state, ModuleSpec):
            module.__spec__ = state
