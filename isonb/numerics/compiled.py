"""Loops as machine code for the CPU, where numba is installed; and the one for lengths of edges.

numba is loaded by the first loop that a process needs, which takes about a second.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["compiled_lengths", "machine_code"]

Lengths = Callable[[Tensor, Tensor], Tensor]


def machine_code(loop: Callable[..., None], fastmath: set[str]) -> Callable[..., None] | None:
    """The loop compiled for the types it is called with, None where numba isn't installed.

    The machine code is kept on disk for the next process, unless no folder for it can be written.
    """
    try:
        import numba
    except ImportError:
        return None
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath}
    try:
        made: Callable[..., None] = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder
        made = numba.njit(**options)(loop)
    return made


def compiled_lengths() -> Lengths | None:
    """The compiled loop: float32 rows (n, d), edges (m, 2) -> lengths (m,). None without numba, or for a compiler."""
    return None if torch.compiler.is_compiling() else _load()


@functools.cache
def _load() -> Lengths | None:
    measure = machine_code(_measure, {"nsz", "reassoc", "contract"})
    return None if measure is None else functools.partial(_run, measure)


def _run(measure: Callable[..., None], x: Tensor, edges: Tensor) -> Tensor:
    lengths = x.new_empty(len(edges))
    measure(*(part.numpy() for part in (x.contiguous(), edges.contiguous(), lengths)))
    return lengths


def _measure(x: Any, edges: Any, lengths: Any) -> None:
    for k in range(len(edges)):
        start, end = x[edges[k, 0]], x[edges[k, 1]]
        total = 0.0
        for j in range(len(start)):
            gap = 1.0 * start[j] - end[j]  # in float64
            total += gap * gap
        lengths[k] = total**0.5
