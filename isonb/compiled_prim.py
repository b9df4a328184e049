"""Prim's algorithm as one compiled loop for the CPU, where numba is installed: tie for tie the edges of the plain one.

The plain one (:mod:`isonb.trees`) starts three short torch kernels a step, which is most of the time of a small cloud.
To load numba takes about as long as :data:`PATIENCE` of those steps, so that a few barcodes never wait for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["PATIENCE", "compiled_prim", "load", "loaded", "machine_code"]

PATIENCE = 2**17  # plain steps that a process takes before the compiled loop is loaded: about half a second
Prim = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
_taken = [0]  # plain steps so far, in this process
_made = [0]  # loops that this process has as machine code


def compiled_prim(steps: int) -> Prim | None:
    """The compiled loop, or None while it isn't worth loading: ``steps`` more are then counted as plain ones."""
    if torch.compiler.is_compiling():
        return None
    if _taken[0] > PATIENCE or load.cache_info().currsize:
        return load()
    _taken[0] += steps
    return None


@functools.cache
def load() -> Prim | None:
    """The compiled loop at once; None where numba isn't installed.

    Its machine code is kept on disk for the next process, unless no folder for it can be written.
    """
    # no NaN gets here, and the order in which minima are taken changes nothing
    grow = machine_code(_grow, {"nnan", "nsz"})
    return None if grow is None else functools.partial(_run, grow)


def loaded() -> bool:
    """Whether this process has come to compiled loops: one that has not never waits for any."""
    return _made[0] > 0


def machine_code(loop: Callable[..., None], fastmath: set[str]) -> Callable[..., None] | None:
    """The loop compiled for the types it is called with, None where numba isn't installed."""
    try:
        import numba
    except ImportError:
        return None
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath}
    try:
        made: Callable[..., None] = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder
        made = numba.njit(**options)(loop)
    _made[0] += 1
    return made


def _run(grow: Callable[..., None], weights: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """Edges (b, n-1, 2) and their weights (b, n-1) of a batch (b, n, n), which is left as it is."""
    b, n, _ = weights.shape
    edges, lengths = first.new_empty(b, n - 1, 2), weights.new_empty(b, n - 1)
    own = weights.new_empty(3, n)
    grow(*(part.numpy() for part in (weights.contiguous(), first, own, edges, lengths)))
    return edges, lengths


def _grow(weights: Any, first: Any, own: Any, edges: Any, lengths: Any) -> None:
    """The order in which nodes join, then each joined to the nearest of those before it; the lower of equals.

    ``own`` holds three numbers a node: its key, infinity once it has joined, and its place in the order. A minimum and
    the search for it are two loops, because each of them alone runs on whole vectors.
    """
    clouds, n = weights.shape[:2]
    key, joined, place = own
    for c in range(clouds):
        key[:], joined[:] = float("inf"), 0.0
        far, node = key[0], first[c]
        for k in range(n):
            joined[node], place[node] = far, k
            if k > 0:
                edges[c, k - 1, 1] = node
            row, best = weights[c, node], far
            for j in range(n):
                key[j] = min(key[j], row[j])
                best = min(best, key[j] + joined[j])
            for j in range(n):
                if key[j] + joined[j] == best:
                    node = j
                    break
        for k in range(n - 1):
            node = edges[c, k, 1]
            row, before, best = weights[c, node], place[node], far
            for j in range(n):
                best = min(best, row[j] if place[j] < before else far)
            for j in range(n):
                if row[j] == best and place[j] < before:
                    edges[c, k, 0] = j
                    break
            lengths[c, k] = best
