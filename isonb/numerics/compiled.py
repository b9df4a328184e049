"""Loops as machine code for the CPU, where numba is installed. It is loaded by the first loop that a process needs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["ANY_ORDER", "IN_ORDER", "can_compile", "run", "squares_between"]

IN_ORDER = ("nnan", "nsz")  # no NaN gets there, and the order in which minima are taken changes nothing
ANY_ORDER = (*IN_ORDER, "reassoc", "contract")  # sums too: of many dimensions, several are added side by side


def can_compile(x: Tensor) -> bool:
    """Whether loops over ``x`` run as machine code: on the CPU, with numba, and not while a compiler traces."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling() and _numba() is not None


@functools.cache
def _numba() -> Any:
    try:
        import numba
    except ImportError:
        return None
    return numba


@functools.cache
def _machine_code(loop: Callable[..., None], flags: tuple[str, ...]) -> Callable[..., None]:
    """The loop compiled for the types it is called with, kept on disk for the next process where a folder allows it."""
    options: dict[str, Any] = {"nogil": True, "fastmath": set(flags), "error_model": "numpy"}
    try:
        made: Callable[..., None] = _numba().njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder
        made = _numba().njit(**options)(loop)
    return made


def run(loop: Callable[..., None], flags: tuple[str, ...], *parts: Tensor | int) -> None:
    """Run a loop, which writes into some of its tensors."""
    _machine_code(loop, flags)(*(part.numpy() if isinstance(part, Tensor) else part for part in parts))


def squares_between(x: Tensor, edges: Tensor) -> Tensor:
    """Squared lengths (m,) in float64 of edges (m, 2) between rows (n, d)."""
    squares = torch.empty(len(edges), dtype=torch.float64)
    gaps = squares.new_empty(x.shape[-1])
    run(_squares, ANY_ORDER, x.detach().contiguous(), edges.contiguous(), gaps, squares)
    return squares


def _squares(x: Any, edges: Any, gaps: Any, squares: Any) -> None:
    """A sum of float64 gaps, so that float32 points give the sum of the same points in float64 to the last bit."""
    for k in range(len(edges)):
        start, end, total = x[edges[k, 0]], x[edges[k, 1]], 0.0
        for t in range(len(start)):
            gaps[t] = 1.0 * start[t] - end[t]  # in float64
        for t in range(len(start)):
            total += gaps[t] * gaps[t]
        squares[k] = total
