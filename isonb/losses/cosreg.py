"""Cosine regularisation (Gao et al. 2019): the mean cosine joins the loss."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

import torch
from torch import Tensor, nn

from isonb.checks import check_points, validated
from isonb.errors import DtypeError, fail
from isonb.losses.common import POOLED, Loss, attached_zero, too_few
from isonb.numerics.distributed import Group, all_sum
from isonb.numerics.rows import count_nonzero_rows, directions, row_count
from isonb.options import option


@dataclass(eq=False, repr=False)
class CosRegLoss(Loss):
    r"""Sum of the cosines of all pairs :math:`i \ne j` over :math:`M^2`, the cosine regularisation of Gao et al. 2019.

    :math:`(\lVert\sum_i \hat x_i\rVert^2 - M)/M^2` with unit rows :math:`\hat x_i`: :func:`isonb.cosine_penalty` of
    the points of all processes, in one collective of d + 2 numbers. I-STAR's baseline CosReg: points are the tokens of
    the last layer, weight 1. A zero row counts in M and adds 0.

    Shapes: points (M, d), mask (M,) optional; returns a scalar, of weight 1 in [-1/M, 1). 0 for fewer than 2 points.

    >>> import isonb, torch
    >>> round(isonb.CosRegLoss()(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    0.31427
    """

    weight: float = option(1.0, "above 0 lowers the mean cosine, below 0 raises it")
    _: KW_ONLY
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        points, mask = check_points(points, mask, name="points", points=0, single=True, look=False)
        if too_few(points, mask, 2, self.group):
            return attached_zero(points)
        unit = directions(points, name="points")
        counts = torch.stack([row_count(points, mask), count_nonzero_rows(unit, 0)])
        sums = all_sum(torch.cat([unit.inverse @ unit.rows, counts]), self.group)
        return self.weight * (sums[:-2].square().sum() - sums[-1]) / sums[-2].clamp_min(1).square()


@dataclass(eq=False, repr=False)
class GaoCosineLoss(CosRegLoss):
    """CosReg on the rows of a word-embedding matrix, as proposed for language models (Gao et al. 2019).

    Every process holds the same matrix, so nothing is reduced over processes.

    >>> import isonb, torch
    >>> embedding = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> round(isonb.GaoCosineLoss()(embedding).item(), 6)
    0.31427
    """

    group: Group = field(default=None, init=False)

    @validated
    def forward(self, points: Tensor | nn.Embedding | nn.Linear, mask: Tensor | None = None) -> Tensor:
        """The embedding matrix (M, d), or the module whose weight it is; returns a scalar."""
        matrix = getattr(points, "weight", None) if isinstance(points, nn.Module) else points
        if matrix is None:
            want = "points must be a matrix, or a module that has one as its weight"
            fail(DtypeError, want, type(points).__name__, "Pass model.get_input_embeddings().")
        return super().forward(matrix, mask)
