"""Isotropic batch normalisation (Zhou et al. 2021): statistics of a batch, and the factor of each dimension."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, check_values, validated
from isonb.errors import ShapeError, fail, not_fitted
from isonb.numerics.distributed import Group, process_group, union_moments
from isonb.numerics.modules import OptionModule
from isonb.options import meaning, option

_DEAD = 1e-6  # share of the largest standard deviation below which a dimension is constant up to float32 rounding


@validated
@torch.no_grad()
def isobn_statistics(x: Tensor, group: Group = None) -> tuple[Tensor, Tensor]:
    """Covariance (d, d) and standard deviation (d) of the rows of a batch (..., d), both biased (divided by n).

    With a ``group``, of the rows of all its processes. float32 for half precision. Not differentiable. Points whose
    variances don't fit the dtype (from about 1e19 on in float32) raise :class:`~isonb.errors.DegenerateError`.

    >>> cov, std = isobn_statistics(torch.tensor([[1.0, 2.0], [3.0, 2.0]]))
    >>> cov.tolist(), std.tolist()
    ([[1.0, 0.0], [0.0, 0.0]], [1.0, 0.0])
    """
    x, _ = check_points(x, points=0)
    union = union_moments(x.reshape(-1, x.shape[-1]), None, group)
    cov = union.scatter / union.n.clamp_min(1)
    check_overflow(cov.trace())
    return cov, cov.diagonal().clamp_min(0).sqrt()


@validated
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


@dataclass(eq=False, repr=False)
class IsoBN(OptionModule):
    r"""Isotropic batch normalisation of pooled sentence vectors (Zhou et al. 2021; baseline of IsoLayer).

    Training: running covariance and standard deviation move towards those of the batch,
    ``running += momentum * (batch - running)``, from zero and without bias correction, as in the official code; then
    every dimension is multiplied by :func:`~isonb.layers.isobn.isobn_scale`, a constant for the gradient. Evaluation
    uses the running values. They are buffers, so they are saved, loaded and moved. A batch of one row (without other
    processes) doesn't move them, nor does one with a row that isn't finite where values aren't looked at; before any
    other it passes unchanged. They stay float32 in a module of half precision. ``group="world"`` takes the statistics
    over all processes.

    Place: after the pooler (dense and tanh on [CLS]), before dropout and classifier. A result that the dtype can't hold
    (float16 ends at 65,504): :class:`~isonb.errors.DegenerateError`.

    >>> import isonb, torch
    >>> layer = isonb.IsoBN(2)
    >>> _ = layer(torch.tensor([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, 4.0]]))
    >>> [round(v, 6) for v in layer.eval().scale.tolist()]
    [1.112843, 0.938204]
    """

    d: int = field(metadata=meaning("dimensions of the vectors", low=1))
    momentum: float = option(0.05, "share of a batch in the running statistics", low=1e-6, high=1)
    eps: float = option(1e-3, "added to the spread, and to the energy that scaling keeps", low=1e-12, high=1)
    beta: float = option(0.5, "strength: 0 leaves directions alike, and lengths as they are up to eps", low=0, high=2)
    _: KW_ONLY
    group: Group = option(None, "the processes over which the statistics are taken")
    running_cov: Tensor = field(init=False)
    running_std: Tensor = field(init=False)
    batches: Tensor = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.register_buffer("running_cov", torch.zeros(self.d, self.d))
        self.register_buffer("running_std", torch.zeros(self.d))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))

    @property
    def scale(self) -> Tensor:
        """The current factor of each dimension (d)."""
        return isobn_scale(self.running_cov, self.running_std, self.eps, self.beta)

    @validated
    def forward(self, x: Tensor) -> Tensor:
        """(B, d), or (..., d) with every row a point; returns the shape and dtype of ``x``."""
        check_points(x, points=0, dims=0, look=False)
        if x.shape[-1] != self.d:
            fail(ShapeError, f"x must have {self.d} dimensions", tuple(x.shape), "Make the layer with d=x.shape[-1].")
        if self.training:
            if x[..., 0].numel() > 1 or process_group(self.group) is not None:
                self._update(x)
        elif check_values(self.batches) and int(self.batches) == 0:
            not_fitted("IsoBN", "Train it, or load a state_dict of a trained one.")
        return check_overflow(x * self.scale.to(x.dtype), "normalised size", x)

    def _update(self, x: Tensor) -> None:
        cov, std = (part.to(self.running_cov) for part in isobn_statistics(x, self.group))
        check_overflow(cov.diagonal().sum())
        finite = torch.isfinite(cov).all()
        for running, batch in ((self.running_cov, cov), (self.running_std, std)):
            running.lerp_(torch.where(finite, batch, running), self.momentum)
        self.batches += finite
