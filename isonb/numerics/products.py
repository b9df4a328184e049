"""The product of a matrix with its own transpose, at two thirds of the price, and the factors that it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from isonb.checks import check_values
from isonb.errors import DegenerateError, fail
from isonb.numerics.scale import precise

_BLOCK = 192  # most rows of the result computed together
_PARTS = 4  # fewest blocks; of four, five eighths of the product are computed
_WORTH = 64, 128, 2**24  # fewest rows, columns and multiplications for which cutting the product pays


def _cuts(x: Tensor) -> Iterator[tuple[slice, slice]]:
    """Row blocks, each with the columns from its first on; one block of everything where cutting doesn't pay."""
    n, d = x.shape[-2:]
    cut = x.device.type == "cpu" and n >= _WORTH[0] and d >= _WORTH[1] and n * x.numel() >= _WORTH[2]
    size = min(_BLOCK, -(-n // _PARTS)) if cut else max(n, 1)
    return ((slice(i, min(i + size, n)), slice(i, None)) for i in range(0, n, size))


Finish = Callable[[Tensor, slice, slice], Tensor]
"""Changes a block of the product, given with its rows and columns: entry by entry, i and j treated alike."""


def gram(x: Tensor, finish: Finish = lambda block, *_: block) -> Tensor:
    """The Gram matrix ``x x^T`` of rows (..., n, d), shape (..., n, n); ``gram(x.mT)`` is the scatter ``x^T x``.

    On the CPU a large one is computed on and above the diagonal, a block of rows at a time, and mirrored. A function of
    its entries is given as ``finish``: it then costs two thirds as well.
    """
    recorded = x.requires_grad and torch.is_grad_enabled()
    cuts = [] if recorded else list(_cuts(x))
    if len(cuts) < 2:
        return finish(x @ x.mT, slice(None), slice(None))
    out = x.new_empty(*x.shape[:-1], x.shape[-2])
    for rows, columns in cuts:
        block = finish(x[..., rows, :] @ x[..., columns, :].mT, rows, columns)
        out[..., rows, columns] = block
        out[..., rows.stop :, rows] = block[..., rows.stop - rows.start :].mT
    return out


def add_upper_gram(out: Tensor, x: Tensor) -> None:
    """Add ``x x^T`` of x (n, d) to ``out`` (n, n) in place; below the diagonal ``out`` is left without meaning."""
    for rows, columns in _cuts(x):
        out[rows, columns].addmm_(x[rows], x[columns].mT)


def left_factors(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """U, s (ascending) and 1/s of a wide matrix by the eigenvalues of its Gram; null directions get s = 1/s = 0.

    The Gram squares the condition number, so it is formed in float64 where the device has it. A direction is null
    below the usual rank tolerance ``max(n, d) * eps * s_1`` and below what the Gram can resolve.
    """
    values, basis = torch.linalg.eigh(_precise_gram(x))
    s = _roots(values, x)
    inverse = torch.where(s > 0, 1 / torch.where(s > 0, s, 1.0), 0.0)
    return basis, s, inverse


def left_values(x: Tensor) -> Tensor:
    """The singular values of :func:`left_factors` alone."""
    return _roots(torch.linalg.eigvalsh(_precise_gram(x)), x)


def _precise_gram(x: Tensor) -> Tensor:
    squares = gram(precise(x))
    if check_values(x) and not bool(torch.isfinite(squares.sum())):
        fail(DegenerateError, f"the squared scale of x must fit {squares.dtype}", "an overflow", "Rescale the matrix.")
    return squares


def _roots(values: Tensor, x: Tensor) -> Tensor:
    """Singular values of x from the eigenvalues of its Gram, those of null directions 0."""
    size = max(x.shape[-2:])
    floor = max(size * torch.finfo(x.dtype).eps, (size * torch.finfo(values.dtype).eps) ** 0.5)
    s = values.clamp_min(0).sqrt()
    return torch.where(s > floor * s[..., -1:], s, 0.0)


def signed(axes: Tensor) -> Tensor:
    """Axes (..., d, k) in columns with their entry of largest size positive, so that they can be found again."""
    largest = axes.gather(-2, axes.abs().argmax(-2, keepdim=True))
    return axes * torch.where(largest < 0, -1.0, 1.0).to(axes)
