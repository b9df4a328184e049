"""The product of a matrix with its own transpose, at two thirds of the price."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = ["add_upper_gram", "gram"]

_BLOCK = 192  # most rows of the result computed together
_PARTS = 4  # fewest blocks; of four, five eighths of the product are computed
_WORTH = 64, 128, 2**24  # fewest rows, columns and multiplications for which cutting the product pays


def _cuts(x: Tensor) -> Iterator[tuple[slice, slice]]:
    """Row blocks, each with the columns from its first on; one block of everything where cutting doesn't pay."""
    n, d = x.shape[-2:]
    cut = x.device.type == "cpu" and n >= _WORTH[0] and d >= _WORTH[1] and n * x.numel() >= _WORTH[2]
    size = min(_BLOCK, -(-n // _PARTS)) if cut else max(n, 1)
    return ((slice(i, min(i + size, n)), slice(i, None)) for i in range(0, n, size))


def gram(x: Tensor) -> Tensor:
    """The Gram matrix ``x x^T`` of rows (..., n, d), shape (..., n, n); ``gram(x.mT)`` is the scatter ``x^T x``.

    On the CPU a large one is computed on and above the diagonal, a block of rows at a time, and mirrored.
    """
    recorded = x.requires_grad and torch.is_grad_enabled()
    cuts = [] if recorded else list(_cuts(x))
    if len(cuts) < 2:
        return x @ x.mT
    out = x.new_empty(*x.shape[:-1], x.shape[-2])
    for rows, columns in cuts:
        out[..., rows, columns] = x[..., rows, :] @ x[..., columns, :].mT
        out[..., rows.stop :, rows] = out[..., rows, rows.stop :].mT
    return out


def add_upper_gram(out: Tensor, x: Tensor) -> None:
    """Add ``x x^T`` of x (n, d) to ``out`` (n, n) in place; below the diagonal ``out`` is left without meaning."""
    for rows, columns in _cuts(x):
        out[rows, columns].addmm_(x[rows], x[columns].mT)
