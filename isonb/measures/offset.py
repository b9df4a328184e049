"""Where a cloud lies and how wide it is: its mean beside its spread, and the widest coordinate."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_points, validated


@validated
def common_mean(x: Tensor) -> Tensor:
    """The share of the mean squared length that all rows have in common, in [0, 1]. Shape: x (n, d).

    >>> common_mean(torch.tensor([[3.0, 4.0], [3.0, -4.0]])).item()
    0.36
    """
    x, _ = check_points(x, points=1)
    return x.mean(0).square().sum() / x.square().sum(-1).mean()


@validated
def mean_norm(x: Tensor) -> Tensor:
    """The length of the mean over the mean length, in [0, 1]. Shape: x (n, d).

    >>> mean_norm(torch.tensor([[3.0, 4.0], [3.0, -4.0]])).item()
    0.6
    """
    x, _ = check_points(x, points=1)
    length: Tensor = torch.linalg.vector_norm(x.mean(0)) / torch.linalg.vector_norm(x, dim=-1).mean()
    return length


@validated
def relative_spread(x: Tensor) -> Tensor:
    """Root mean square distance from the mean over that from the origin, in [0, 1]: 0 for equal vectors.

    Shape: x (..., n, d).

    >>> relative_spread(torch.tensor([[3.0, 4.0], [3.0, 4.0]])).item()
    0.0
    """
    x, _ = check_points(x)
    spread = (x - x.mean(-2, keepdim=True)).square().sum((-2, -1))
    return (spread / x.square().sum((-2, -1)).clamp_min(torch.finfo(x.dtype).tiny)).sqrt()


@validated
def largest_share(x: Tensor) -> Tensor:
    """The share of the single widest coordinate in the total variance, in [1/d, 1]: near 1 for a rogue dimension.

    0 for equal vectors, which have no variance. Shape: x (..., n, d).

    >>> largest_share(torch.tensor([[3.0, 0.0], [-3.0, 0.0]])).item()
    1.0
    """
    x, _ = check_points(x)
    variance = x.var(-2, correction=0)
    return variance.max(-1).values / variance.sum(-1).clamp_min(torch.finfo(x.dtype).tiny)
