"""Loops as machine code for the CPU, where numba is installed. It is loaded by the first loop that a process needs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["ANY_ORDER", "IN_ORDER", "can_compile", "run", "squares_between"]

IN_ORDER = ("nnan", "nsz")  # no NaN gets there, and the order in which minima are taken changes nothing
SIDE_BY_SIDE = 16  # edges whose lengths are summed together
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
    gaps = squares.new_zeros(x.shape[-1] + 1, SIDE_BY_SIDE)
    run(_squares, IN_ORDER, x.detach().contiguous(), edges.contiguous(), gaps, squares)
    return squares


def _squares(x: Any, edges: Any, gaps: Any, squares: Any) -> None:
    """Each sum in the order of the coordinates, so that equal gaps give equal squares; several edges side by side."""
    d, total = x.shape[1], gaps[x.shape[1]]
    for first in range(0, len(edges), SIDE_BY_SIDE):
        m = min(SIDE_BY_SIDE, len(edges) - first)
        for e in range(m):
            start, end = x[edges[first + e, 0]], x[edges[first + e, 1]]
            for t in range(d):
                gaps[t, e] = 1.0 * start[t] - end[t]  # in float64
        total[:] = 0.0
        for t in range(d):
            for e in range(SIDE_BY_SIDE):
                total[e] += gaps[t, e] * gaps[t, e]
        squares[first : first + m] = total[:m]
