"""Lengths of edges as one compiled loop for the CPU, where numba is installed: no difference is stored.

Squares of float32 differences are summed in float64, as the plain form (:mod:`isonb.numerics.distances`) sums them:
their order changes the sum far below the last digit of the length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from isonb.numerics.compiled_prim import machine_code

__all__ = ["compiled_lengths"]

Lengths = Callable[[Tensor, Tensor], Tensor]


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
