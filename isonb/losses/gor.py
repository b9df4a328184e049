"""Global orthogonal regularisation (Zhang et al. 2017): sentence vectors are to be as orthogonal as random ones."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from isonb.checks import check_points, validated
from isonb.losses.common import POOLED, Loss, attached_zero, too_few
from isonb.numerics.distributed import Group, all_sum, process_group
from isonb.numerics.products import gram
from isonb.numerics.rows import Directions, count_nonzero_rows, directions
from isonb.options import option


@dataclass(eq=False, repr=False)
class GORLoss(Loss):
    r"""Global orthogonal regularisation (Zhang et al. 2017): pairs are to be as orthogonal as random directions are.

    .. math:: \lambda \left( w_1 M_1^2 + w_2 \max(0, M_2 - 1/d) \right)

    :math:`M_1` and :math:`M_2` are the means of the cosine and of its square over pairs :math:`i \ne j`, so neither is
    biased by a small batch; 1/d is what directions without preference have, where the penalty stops. ``hinge=False``
    adds :math:`w_2 M_2` instead: with ``mean_weight=0`` that is the spread-out term of EmbeddingGemma (2025, Eq. 4).
    Points are sentence vectors.

    Shapes: points (n, d), mask (n,) optional; returns a scalar, of weight 1 at least 0. Equal points count as collapse;
    zero rows have no direction and count as none. 0 for fewer than 2 points.

    >>> import isonb, torch
    >>> x = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    >>> round(isonb.GORLoss()(x).item(), 6), round(isonb.GORLoss(mean_weight=0.0, hinge=False)(x).item(), 6)
    (0.35473, 0.466667)
    """

    weight: float = option(1.0, "weight of both terms")
    _: KW_ONLY
    mean_weight: float = option(1.0, "weight of the squared mean cosine within it", low=0)
    square_weight: float = option(1.0, "weight of the mean squared cosine within it", low=0)
    hinge: bool = option(True, "stop at the 1/d of directions without preference", idle={"square_weight": 0.0})
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        points, mask = check_points(points, mask, name="points", points=0, single=True, look=False)
        if too_few(points, mask, 2, self.group):
            return attached_zero(points)
        mean, square = _pair_means(directions(points, name="points"), self.group)
        excess = (square - 1 / points.shape[-1]).clamp_min(0) if self.hinge else square
        return self.weight * (self.mean_weight * mean.square() + self.square_weight * excess)


def _pair_means(along: Directions, group: Group) -> tuple[Tensor, Tensor]:
    """Mean cosine and mean squared cosine of all pairs of different unit rows (n, d); zero rows are no points."""
    unit, n = along.rows * along.inverse.unsqueeze(-1), count_nonzero_rows(along, 0)
    d, total = unit.shape[-1], unit.sum(0)
    if process_group(group) is None:
        square = gram(unit if len(unit) < d else unit.mT).square().sum()
    else:
        sums = all_sum(torch.cat([gram(unit.mT).flatten(), total, n.unsqueeze(0)]), group)
        square, total, n = sums[: d * d].square().sum(), sums[d * d : -1], sums[-1]
    pairs = (n * (n - 1)).clamp_min(1)
    return (total.square().sum() - n) / pairs, (square - n) / pairs
