"""Minus the logarithm of IsoScore, the isotropy loss of the IsoLayer (Attieh et al., ICDAR 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from isonb.checks import check_points, validated
from isonb.losses.common import POOLED, Loss, attached_zero, too_few
from isonb.measures.isoscore import plain_score
from isonb.numerics.distributed import Group
from isonb.options import option


@dataclass(eq=False, repr=False, kw_only=True)
class IsoScoreLoss(Loss):
    r""":math:`-\lambda \ln \mathrm{IsoScore}` of the points (IsoLayer, Attieh et al., ICDAR 2023).

    A batch of B points scores at most (B - 2)/(d - 1), so with B <= d the loss can't reach 0; ``unbiased=True`` is free
    of that limit. Where the score is clamped the gradient is zero.

    Shapes: points (n, d), d >= 2, mask (n,) optional; returns a scalar, of weight 1 at least 0 (unbiased: any sign).
    0 for fewer than 2 points (4 unbiased); where values aren't looked at, a mask that leaves fewer gives -ln(floor).
    All points equal, and unbiased those whose estimate of tr(Sigma^2) vanishes (orthogonal, of one length):
    :class:`~isonb.errors.DegenerateError`, on an accelerator -ln(floor).

    >>> import isonb, torch
    >>> round(isonb.IsoScoreLoss()(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])).item(), 6)
    0.753772
    """

    weight: float = option(1.0, "above 0 raises isotropy")
    unbiased: bool = option(False, "the unbiased IsoScore; otherwise that of the sample")
    floor: float | None = option(
        None, "the score is clamped from below here; None: 1e-12, unbiased 1e-3", low=1e-12, high=1
    )
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        points, mask = check_points(points, mask, name="points", points=0, dims=2, single=True)
        if too_few(points, mask, 4 if self.unbiased else 2, self.group):
            return attached_zero(points)
        least = (1e-3 if self.unbiased else 1e-12) if self.floor is None else self.floor
        return -self.weight * plain_score(points, mask, self.unbiased, self.group).clamp_min(least).log()
