r"""The rows of a cloud: how many there are, the cloud about its mean, and the directions of its points.

A cloud is a tensor ``(..., n, d)``: n points as rows. An optional mask ``(..., n)`` marks the real ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, check_values, finite, validated
from isonb.errors import DegenerateError, fail
from isonb.numerics.scale import ordinary, unit_sized


def row_count(x: Tensor, mask: Tensor | None) -> Tensor:
    """Points of each cloud, shape ``(...)``, in the dtype of ``x``: n, or the real rows under the mask."""
    if mask is None:
        return x.new_full(x.shape[:-2], x.shape[-2])
    return mask.sum(-1).to(x.dtype)


def center_rows(x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``(x - mean, mean)`` of a checked cloud, masked rows left at zero. Equal rows give zero to the last bit.

    Subtracting a row of the cloud before the mean keeps the shape of a cloud far from the origin, and keeps the
    rounding of the mean from turning no variance into a little noise.
    """
    if x.shape[-2] == 0:
        return x, x.sum(-2)
    if mask is None:
        first = x[..., :1, :]
        moved = x - first
        mean = moved.sum(-2, keepdim=True) / x.shape[-2]
        return moved.sub_(mean), (first + mean).squeeze(-2)  # new memory costs more than the difference
    n, rows = row_count(x, mask).clamp_min(1)[..., None, None], mask.unsqueeze(-1)
    place = mask.int().argmax(-1)[..., None, None].expand(*x.shape[:-2], 1, x.shape[-1])
    first = x.gather(-2, place)
    moved = torch.where(rows, x - first, 0.0)
    mean = moved.sum(-2, keepdim=True) / n
    return torch.where(rows, moved - mean, 0.0), (first + mean).squeeze(-2)


def mean_row(x: Tensor) -> Tensor:
    """The mean (d) of rows (n, d) that :func:`center_rows` subtracts."""
    return x[0] + (x - x[0]).sum(0) / len(x)


@validated
def centered(x: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""The cloud moved to the origin, :math:`x_i - \frac1n\sum_j x_j`, stable far from it.

    Shapes: ``x`` (..., n, d), ``mask`` (..., n) optional; returns (..., n, d) with masked rows zero.
    Raises :class:`~isonb.errors.InputError` for non-finite values, wrong rank or an empty cloud.

    >>> centered(torch.tensor([[1.0, 5.0], [3.0, 7.0]])).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    x, mask = check_points(x, mask, points=1, look=False)
    return check_overflow(center_rows(x, mask)[0], "spread", x)


class Directions(NamedTuple):
    """Rows (..., n, d) along those of a cloud and 1/|row| (..., n), whose product is the unit rows; 0 for a zero row.

    ``whole`` where every row is known to have a direction.
    """

    rows: Tensor
    inverse: Tensor
    whole: bool


def directions(x: Tensor, *, look: bool = True, name: str = "x") -> Directions:
    """The directions of the rows; values that aren't finite are an error if ``look``, where they may be looked at.

    That costs nothing where all lengths are ordinary numbers, which is a look as well.
    """
    if check_values(x) and ordinary((length := torch.linalg.vector_norm(x, dim=-1)).detach()):
        return Directions(x, 1 / length, True)
    rows = unit_sized(finite(x, name=name) if look else x, -1)
    length = torch.linalg.vector_norm(rows, dim=-1)
    usable = length > 0
    return Directions(rows, torch.where(usable, 1 / torch.where(usable, length, 1.0), 0.0), False)


def unit_rows(x: Tensor) -> Tensor:
    """The rows at length 1, zero rows at 0.

    >>> unit_rows(torch.tensor([[3e-30, 4e-30], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    along = directions(x, look=False)
    return along.rows * along.inverse.unsqueeze(-1)


def count_nonzero_rows(along: Directions, points: int) -> Tensor:
    """How many rows have a direction (...); fewer than ``points`` is an error where values may be looked at."""
    inverse = along.inverse
    if along.whole and inverse.shape[-1] >= points:
        return inverse.new_full(inverse.shape[:-1], inverse.shape[-1])
    count = (inverse > 0).sum(-1).to(inverse.dtype)
    if check_values(inverse) and not bool((count >= points).all()):
        invariant = f"at least {points} points must differ from zero"
        fail(DegenerateError, invariant, int(count.min()), "A zero vector has no direction; drop such clouds.")
    return count
