"""Distances between the points of one cloud, for deciding who is near whom, and the exact lengths of chosen edges.

The decision and the value are kept apart. Comparisons run on squared distances of a detached, centred, rescaled copy,
by matrix product where that pays; lengths that leave the library are recomputed from differences of the live points.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isonb.clouds import row_count

__all__ = ["by_differences", "edge_lengths", "localized", "precise", "rows", "squared_distances"]

BLOCK = 256  # rows of the Gram matrix computed at a time when only its upper triangle is multiplied out


def power_of_two(size: Tensor) -> Tensor:
    """The power of two just below each ``size`` (1 for 0): dividing by it is exact, so ties stay ties."""
    mantissa = torch.frexp(size).mantissa
    return torch.where(size > 0, size / (2 * mantissa), torch.ones_like(size))


def localized(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """A detached copy for comparing distances: moved to its own point nearest the mean, then to unit size.

    Subtracting one of the points (and not the mean) is exact for points of a grid, and harmless for an offset cloud;
    taking a central one keeps a single far point from spoiling the rest. The scale is a power of two, so squares
    neither overflow nor vanish. Rows off the mask are zero.
    """
    x = x.detach()
    mean = (x.sum(-2) / row_count(x, mask).clamp_min(1).unsqueeze(-1)).unsqueeze(-2)
    away = torch.linalg.vector_norm(x - mean, float("inf"), dim=-1)
    if mask is not None:
        away = away.masked_fill(~mask, float("inf"))
    middle = away.argmin(-1)[..., None, None].expand(*x.shape[:-2], 1, x.shape[-1])
    moved = x - x.gather(-2, middle)
    if mask is not None:
        moved = moved.masked_fill_(~mask.unsqueeze(-1), 0.0)
    low, high = moved.amin((-2, -1), keepdim=True), moved.amax((-2, -1), keepdim=True)
    return moved.div_(power_of_two(torch.maximum(high, -low)))


def precise(x: Tensor) -> Tensor:
    """``x`` in float64 where its device has it. A float64 product is also out of reach of TF32."""
    return x if x.device.type == "mps" else x.double()


def by_differences(x: Tensor) -> bool:
    """Whether :func:`squared_distances` subtracts point from point (few dimensions, small clouds) or multiplies."""
    n, d = x.shape[-2:]
    return d <= 8 or n * n * d <= 2**16


def squared_distances(x: Tensor) -> Tensor:
    r"""All :math:`\|x_i - x_j\|^2` of a localized cloud (..., n, d) -> (..., n, n); O(n^2) memory.

    By differences each entry is good to a few units in its own last place. As
    :math:`\|x_i\|^2 + \|x_j\|^2 - 2 x_i \cdot x_j` it is good to about :math:`4 \epsilon R^2`, with R the radius of the
    cloud and :math:`\epsilon` the precision of the dtype: one below :math:`\sqrt\epsilon R` can't be told from 0.
    """
    if by_differences(x):
        return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square_()
    norms = x.square().sum(-1)
    gram = _gram(x)
    return torch.add(norms.unsqueeze(-2), gram, alpha=-2, out=gram).add_(norms.unsqueeze(-1))


def _gram(x: Tensor) -> Tensor:
    """``x x^T``; on the CPU a large one by its upper triangle, which saves a third of the time."""
    n, d = x.shape[-2:]
    if x.device.type != "cpu" or n < 4 * BLOCK or d < BLOCK:
        return x @ x.mT
    gram = x.new_empty(*x.shape[:-1], n)
    for i in range(0, n, BLOCK):
        j = min(i + BLOCK, n)
        gram[..., i:j, i:] = x[..., i:j, :] @ x[..., i:, :].mT
        gram[..., j:, i:j] = gram[..., i:j, j:].mT
    return gram


def rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows of each cloud: x (..., n, d), index (..., m) -> (..., m, d), differentiable in ``x``."""
    n, d = x.shape[-2:]
    batch = index.shape[:-1]
    first = torch.arange(math.prod(batch), device=x.device).view(*batch, 1) * n
    return x.reshape(-1, d).index_select(0, (index + first).flatten()).view(*index.shape, d)


def edge_lengths(x: Tensor, edges: Tensor) -> Tensor:
    """Lengths of edges (..., m, 2) of the cloud (..., n, d) -> (..., m); the gradient of a zero length is 0.

    Each difference is brought to unit size before it is squared, so no length overflows or vanishes.
    """
    gap = rows(x, edges[..., 0]) - rows(x, edges[..., 1])
    scale = power_of_two(gap.detach().abs().amax(-1, keepdim=True))
    square = (gap / scale).square().sum(-1)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt()) * scale.squeeze(-1)
