"""Loops as machine code for the CPU, where numba is installed. It is loaded by the first loop that a process needs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import numpy as np
except ImportError:  # only the loops use it, which run where numba is, and numba needs it
    np = None  # type: ignore[assignment]

__all__ = ["ANY_ORDER", "IN_ORDER", "LOOKED_AT", "can_compile", "np", "run"]

IN_ORDER = ("nnan", "nsz")  # no NaN gets there, and the order in which minima are taken changes nothing
ANY_ORDER = (*IN_ORDER, "reassoc", "contract")  # sums too: of many dimensions, several are added side by side
LOOKED_AT = ("nsz", "reassoc", "contract")  # the same where what isn't a number shows in a sum


def can_compile(x: Tensor) -> bool:
    """Whether loops over ``x`` run as machine code: on the CPU, with numba, and not while a compiler traces."""
    return x.is_cpu and not torch.compiler.is_compiling() and _numba() is not None


@functools.cache
def _numba() -> Any:
    try:
        import numba
    except ImportError:
        return None
    return numba


@functools.cache
def _machine_code(loop: Callable[..., Any], flags: tuple[str, ...]) -> Callable[..., Any]:
    """The loop compiled for the types it is called with, kept on disk for the next process where a folder allows it."""
    options: dict[str, Any] = {"nogil": True, "fastmath": set(flags), "error_model": "numpy"}
    try:
        compiled_loop: Callable[..., Any] = _numba().njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder
        compiled_loop = _numba().njit(**options)(loop)
    return compiled_loop


def run(loop: Callable[..., Any], flags: tuple[str, ...], *parts: Any) -> Any:
    """What a loop returns, which writes into some of its tensors."""
    return _machine_code(loop, flags)(*(part.numpy() if isinstance(part, Tensor) else part for part in parts))
