"""Modules whose options are the fields of a dataclass."""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor, nn

from isonb.options import Options, describe, in_words


class OptionModule(Options, nn.Module):
    """Base of ``@dataclass(eq=False, repr=False)`` modules with fields made by :func:`isonb.options.option`."""

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """A module that is one before its fields are set: a field may hold a module."""
        module = super().__new__(cls)
        nn.Module.__init__(module)
        return module

    def extra_repr(self) -> str:
        """Every option; of one that is trained, its value now."""
        values = describe(self)
        current = {name: float(f"{value.item():.4g}") for name, value in values.items() if isinstance(value, Tensor)}
        return in_words(values | current)
