"""Where a cloud lies and how wide it is: its mean beside its spread, and the widest coordinate.

All are shares: a factor before the points changes none of them, and points of any size are taken. float32 for half
precision.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_points, check_values, validated
from isonb.errors import DegenerateError, fail
from isonb.numerics.rows import center_rows
from isonb.numerics.scale import unit_sized


def _share(part: Tensor, whole: Tensor) -> Tensor:
    """The quotient, 0 where the whole is 0."""
    return torch.where(whole > 0, part / torch.where(whole > 0, whole, 1.0), 0.0)


def _one_cloud(x: Tensor) -> Tensor:
    """Points (n, d), not all of them zero, of a size whose squares fit."""
    x, _ = check_points(x, points=1, single=True)
    if check_values(x) and not bool((x != 0).any()):
        fail(DegenerateError, "a point must differ from zero", f"{len(x)} zero rows", "A zero cloud has no length.")
    return unit_sized(x)


@validated
def common_mean(x: Tensor) -> Tensor:
    """The share of the mean squared length that all rows have in common, in [0, 1].

    Shape: x (n, d). Errors: all points zero :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> common_mean(torch.tensor([[3.0, 4.0], [3.0, -4.0]])).item()
    0.36
    """
    x = _one_cloud(x)
    return _share(x.mean(0).square().sum(), x.square().sum(-1).mean())


@validated
def mean_norm(x: Tensor) -> Tensor:
    """The length of the mean over the mean length, in [0, 1].

    Shape: x (n, d). Errors: all points zero :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> mean_norm(torch.tensor([[3.0, 4.0], [3.0, -4.0]])).item()
    0.6
    """
    x = _one_cloud(x)
    return _share(torch.linalg.vector_norm(x.mean(0)), torch.linalg.vector_norm(x, dim=-1).mean())


@validated
def relative_spread(x: Tensor) -> Tensor:
    """Root mean square distance from the mean over that from the origin, in [0, 1]: 0 for equal vectors.

    Shape: x (..., n, d).

    >>> relative_spread(torch.tensor([[3.0, 4.0], [3.0, 4.0]])).item()
    0.0
    """
    x = unit_sized(check_points(x)[0])
    return _share(center_rows(x)[0].square().sum((-2, -1)), x.square().sum((-2, -1))).sqrt()


@validated
def largest_share(x: Tensor) -> Tensor:
    """The share of the single widest coordinate in the total variance, in [1/d, 1]: near 1 for a rogue dimension.

    0 for equal vectors, which have no variance. Shape: x (..., n, d).

    >>> largest_share(torch.tensor([[3.0, 0.0], [-3.0, 0.0]])).item()
    1.0
    """
    moved = unit_sized(center_rows(unit_sized(check_points(x)[0]))[0])
    variance = moved.square().mean(-2)
    return _share(variance.max(-1).values, variance.sum(-1))
