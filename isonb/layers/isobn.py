"""Isotropic batch normalisation (Zhou et al. 2021): statistics of a batch, and the factor of each dimension."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import border, cloud, fits
from isonb.errors import ShapeError, fail
from isonb.numerics.distributed import Group, union_moments

__all__ = ["isobn_scale", "isobn_statistics"]

_DEAD = 1e-6  # share of the largest standard deviation below which a dimension is constant up to float32 rounding


@border
@torch.no_grad()
def isobn_statistics(x: Tensor, group: Group = None) -> tuple[Tensor, Tensor]:
    """Covariance (d, d) and standard deviation (d) of the rows of a batch (..., d), both biased (divided by n).

    With a ``group``, of the rows of all its processes. float32 for half precision. Not differentiable. Points whose
    variances don't fit the dtype (from about 1e19 on in float32) raise :class:`~isonb.errors.DegenerateError`.

    >>> cov, std = isobn_statistics(torch.tensor([[1.0, 2.0], [3.0, 2.0]]))
    >>> cov.tolist(), std.tolist()
    ([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    """
    x, _ = cloud(x, points=0)
    union = union_moments(x.reshape(-1, x.shape[-1]), None, group)
    cov = union.scatter / union.n.clamp_min(1)
    fits(cov.trace())
    return cov, cov.diagonal().clamp_min(0).sqrt()


@border
@torch.no_grad()
def isobn_scale(cov: Tensor, std: Tensor, eps: float = 1e-3, beta: float = 0.5) -> Tensor:
    r"""The factor IsoBN multiplies each dimension by (Zhou et al. 2021, Algorithm 1).

    .. math:: \rho_{ij} &= \mathrm{clip}\!\left(\tfrac{C_{ij}}{\sigma_i\sigma_j}, -1, 1\right), \qquad
              \gamma_i = \tfrac1d \sum_j \rho_{ij}^2, \\
              \theta_i &= (\gamma_i \sigma_i + \epsilon)^{-\beta}, \qquad
              \theta \leftarrow \theta\,\sqrt{\frac{\operatorname{tr} C}{\sum_i C_{ii}\theta_i^2 + \epsilon}}

    A dead dimension, :math:`\sigma` at most 1e-6 of the largest, correlates with itself alone: the official quotient is
    0/0 or rounding noise there. Without any variance every factor is 1. A constant: no gradient.
    Shapes: cov (d, d), std (d); returns (d).

    >>> isobn_scale(torch.zeros(2, 2), torch.zeros(2)).tolist()
    [1.0, 1.0]
    """
    if cov.shape != (std.shape[-1], std.shape[-1]):
        want = f"cov must be ({std.shape[-1]}, {std.shape[-1]}) for std of {std.shape[-1]} dimensions"
        fail(ShapeError, want, tuple(cov.shape), "Pass the two results of isobn_statistics.")
    alive = std > _DEAD * std.amax()
    unit = torch.where(alive, std, 1.0)
    rho = (cov / unit.unsqueeze(-1) / unit).clamp(-1, 1)
    rho = torch.where(alive.unsqueeze(-1) & alive, rho, torch.eye(len(std), dtype=std.dtype, device=std.device))
    theta = (rho.square().mean(-1) * std + eps) ** -beta
    energy = cov.diagonal()
    factor = (energy.sum() / ((energy * theta.square()).sum() + eps)).sqrt()
    return torch.where(energy.sum() > 0, theta * factor, 1.0)
