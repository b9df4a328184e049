"""Spectrum control (Wang et al. 2020): the singular values are drawn towards a prior curve."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, validated
from isonb.errors import ShapeError, fail
from isonb.losses.common import Loss, attached_zero
from isonb.numerics.distributed import Group, all_rows, process_group
from isonb.options import option


@dataclass(eq=False, repr=False)
class SpectrumControlLoss(Loss):
    r"""Squared distance of the singular values from a prior curve, spectrum control (Wang et al. 2020).

    .. math:: &\sum_k (s_k - c_1 e^{-c_2 k^\gamma})^2 \quad\text{(exponential)}, \\
              &\sum_k (s_k - c_1 k^{-\gamma})^2 \quad\text{(polynomial)}, \qquad k = 1, 2, \dots

    over the largest singular values of the raw matrix. The constants of the original aren't public; the defaults are
    those of SoftDecay's adaptation to token matrices, which leaves out the square: the squared form is used here.
    Masked rows add singular values of 0, which are compared with the curve as well.

    Shapes: points (n, d) or (..., n, d) without a process group, matrix by matrix, mask (..., n) optional; returns a
    scalar, the mean over leading axes. Rows of all processes are gathered, into one matrix where there are several.
    0 for an empty tensor; a mask must leave a row of every matrix (:class:`~isonb.errors.ShapeError` where values are
    looked at). Singular values whose squares don't fit the dtype (from about 1e19 on in float32):
    :class:`~isonb.errors.DegenerateError`.

    >>> import isonb, torch
    >>> s = torch.diag(torch.tensor([3.0, 1.0, 0.5]))
    >>> loss = isonb.SpectrumControlLoss(weight=1.0, prior="polynomial", c1=3.0, power=0.5, top=None)
    >>> round(loss(s).item(), 5)
    2.77531
    """

    weight: float = option(1e-4, "weight")
    _: KW_ONLY
    prior: Literal["exponential", "polynomial"] = option("exponential", "the curve", idle={"c1": 0.0})
    c1: float = option(1.0, "height of the curve", low=0)
    c2: float = option(1.0, "rate of the exponential", low=0, idle={"prior": "polynomial", "c1": 0.0})
    power: float = option(
        2.0, "power of the index of a singular value in the curve", low=0, high=100, idle={"c1": 0.0, "c2": 0.0}
    )
    top: int | None = option(5, "how many singular values; None: all", low=1)
    group: Group = option("world", "the processes whose rows are gathered")

    @validated
    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), or on one process (..., n, d) matrix by matrix, mask (..., n); returns a scalar."""
        alone = process_group(self.group) is None
        points, mask = check_points(points, mask, name="points", points=int(mask is not None and alone))
        if not alone:
            if points.ndim > 2:
                want = "points must have shape (n, d) where the rows of several processes are gathered"
                fail(ShapeError, want, f"shape {tuple(points.shape)}", "Pass group=None: matrix by matrix.")
            points = all_rows(points if mask is None else points[mask], self.group)
        if points.numel() == 0:
            return attached_zero(points)
        s = torch.linalg.svdvals(points)[..., : self.top]
        k = torch.arange(1, s.shape[-1] + 1, dtype=s.dtype, device=s.device)
        curve = torch.exp(-self.c2 * k**self.power) if self.prior == "exponential" else k**-self.power
        return self.weight * check_overflow((s - self.c1 * curve).square().sum(-1).mean())
