"""Size out of the way, and digits enough: squares of a float32 overflow from 1e19 on and vanish below 1e-19.

A power of two leaves every digit as it is, so a measure of shape alone may divide by one and give the same value.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isonb.checks import check_values, tensor_of

Axes = int | tuple[int, int]


def largest(x: Tensor, dim: Axes) -> Tensor:
    """Largest absolute value along ``dim``, kept as an axis, without a copy of ``x``; 0 where there is nothing."""
    if x.numel() == 0:
        return x.abs().sum(dim, keepdim=True)
    return torch.maximum(x.amax(dim, keepdim=True), -x.amin(dim, keepdim=True))


def square_norms(x: Tensor) -> Tensor:
    """Squared lengths of the rows (..., n, d) -> (..., n); without a copy of ``x`` unless a gradient is asked for.

    >>> square_norms(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [25.0, 0.0]
    """
    if x.requires_grad and torch.is_grad_enabled():
        return x.square().sum(-1)
    length: Tensor = torch.linalg.vector_norm(x, dim=-1)
    return length.square()


def power_of_two(size: Tensor) -> Tensor:
    """The power of two just below each ``size`` (1 for 0): dividing by it is exact, so ties stay ties."""
    mantissa = torch.frexp(size).mantissa
    return torch.where(size > 0, size / (2 * mantissa), torch.ones_like(size))


def size_of(x: Tensor, dim: Axes = (-2, -1)) -> Tensor:
    """The power of two just below the largest entry along ``dim``, kept as an axis; a constant, 1 for zeros."""
    return power_of_two(largest(x.detach(), dim))


def unit_sized(x: Tensor, dim: Axes = (-2, -1)) -> Tensor:
    """``x`` divided by its :func:`size_of`, so that squares and fourth powers of what differs fit.

    Where values may be looked at and all of them fit anyway, ``x`` itself: the division is a pass over memory.

    >>> unit_sized(torch.tensor([[3e30, 0.0], [0.0, -4e30]])).abs().max().item() < 2
    True
    """
    fits = check_values(x) and ordinary(torch.linalg.vector_norm(x.detach(), dim=dim))
    return x if fits else x / size_of(x, dim)


def ordinary(size: Tensor) -> bool:
    """Whether fourth powers of all these sizes fit their dtype, and there is one; values are looked at."""
    if not size.numel():
        return False
    few: float = torch.finfo(size.dtype).tiny ** 0.25
    least, most = size.aminmax()
    return few < float(least) and float(most) < 1 / few


def wide(device: torch.device) -> torch.dtype:
    """The widest floating-point dtype of ``device``."""
    return torch.float32 if device.type == "mps" else torch.float64


def precise(x: Tensor) -> Tensor:
    """``x`` in the widest dtype of its device. A float64 product is also out of reach of TF32."""
    return x.to(wide(x.device))


def points_precise(x: Any) -> Any:
    """Points as :func:`precise` has them; what are none stay as they are, for the check that says so."""
    x = tensor_of(x)
    return precise(x) if isinstance(x, Tensor) and x.is_floating_point() else x
