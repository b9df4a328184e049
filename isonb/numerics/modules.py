"""Modules whose options are the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from isonb.options import Options, describe, in_words


class OptionModule(Options, nn.Module):
    """Base of ``@dataclass(eq=False, repr=False)`` modules with fields made by :func:`isonb.options.option`."""

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """A module that is one before its fields are set: a field may hold a module."""
        module = super().__new__(cls)
        nn.Module.__init__(module)
        return module

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """A move or a cast; buffers stay float32 where the module goes to half precision, which holds no running mean:
        its steps are too small to be added there.
        """
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in before.items():
            now = self._buffers[name]
            if now is not None and now.dtype in (torch.float16, torch.bfloat16):
                self._buffers[name] = buffer.to(now.device, torch.float32)
        return self

    def extra_repr(self) -> str:
        """Every option; of one that is trained, its value now."""
        values = describe(self)
        current = {name: float(f"{value.item():.4g}") for name, value in values.items() if isinstance(value, Tensor)}
        return in_words(values | current)
