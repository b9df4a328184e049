"""The mean direction of a cloud, and its removal."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from isonb.checks import border, pooled
from isonb.errors import DegenerateError, fail
from isonb.numerics.rows import unit_rows
from isonb.numerics.scale import precise
from isonb.transforms.base import Transform, dense

__all__ = ["MeanDirection", "directional_mean", "mean_direction"]


@border
@torch.no_grad()
def directional_mean(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mean (d) of the rows' directions; x (..., d), all leading axes one cloud; zero rows have none.

    Raises :class:`~isonb.errors.DegenerateError` where the directions cancel. Not differentiable.

    >>> directional_mean(torch.tensor([[2.0, 0.0], [0.0, 0.5]])).tolist()
    [0.5, 0.5]
    """
    unit = unit_rows(pooled(x, mask, points=1)[0])
    total = unit.sum(0)
    if not bool((total != 0).any()):
        fail(
            DegenerateError, "the rows must have a mean direction", "directions that cancel", "There is none to remove."
        )
    mean: Tensor = total / (unit != 0).any(-1).sum()
    return mean


def mean_direction(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The unit vector (d) along :func:`directional_mean`.

    >>> mean_direction(torch.tensor([[2.0, 0.0], [0.0, 0.5]])).tolist()
    [0.7071, 0.7071]
    """
    mean = directional_mean(x, mask)
    direction: Tensor = mean / torch.linalg.vector_norm(mean)
    return direction


class MeanDirection(Transform):
    r"""Remove the mean direction of unit rows, :math:`\hat x - (\hat x^\top m)m`, and renormalise.

    R2 of Ren, Sun and Liang (arXiv 2511.11041), :math:`m = \mu/|\mu|` the direction of the mean :math:`\mu` of the
    fitted unit rows. ``subtract=True`` is their R1, :math:`\hat x - \mu`: an error in the length of :math:`\mu` stays
    in the result there. Zero rows stay zero under R2, and rows along m become zero: what rounding leaves of them is no
    direction. ``to_dense`` gives the affine map for rows that are already of unit length, without the renormalising.

    Args:
        renormalize: bring the rows back to length 1.
        subtract: subtract the mean of the unit vectors (R1); otherwise project it out (R2).

    >>> x = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    >>> MeanDirection().fit(x[:2]).transform(torch.tensor([[3.0, 0.0]])).tolist()
    [[0.7071, -0.7071]]
    >>> MeanDirection(subtract=True).fit(x).transform(x)[2].tolist()
    [-0.9239, 0.3827]
    """

    OPTIONS = ("renormalize", "subtract")
    CENTRE = "direction"

    def __init__(self, renormalize: bool = True, subtract: bool = False) -> None:
        super().__init__()
        self.renormalize, self.subtract = renormalize, subtract

    def fit(self, x: Tensor, mask: Tensor | None = None) -> Self:
        """Learn from points (..., d), one or more. Returns self."""
        mean = precise(directional_mean(x, mask))
        length = torch.linalg.vector_norm(mean)
        self.state = {"direction": mean / length, "length": length}
        return self

    def _linear(self, y: Tensor) -> Tensor:
        direction = self.state["direction"].to(y)
        if self.subtract:
            return y - direction * self.state["length"].to(y)
        return y - (y @ direction).unsqueeze(-1) * direction

    def _apply(self, x: Tensor) -> Tensor:
        out = self._linear(unit_rows(x))
        if not self.renormalize:
            return out
        rounding = 4 * torch.finfo(out.dtype).eps
        along = torch.linalg.vector_norm(out.detach(), dim=-1, keepdim=True) <= rounding
        return unit_rows(out.masked_fill(along, 0.0))

    def to_dense(self, dtype: torch.dtype = torch.float32) -> nn.Linear:
        """The map before renormalising, for rows of unit length, as a frozen linear layer on the CPU."""
        direction = self._learned("direction")
        bias = self._linear(torch.zeros_like(direction).unsqueeze(0))[0]
        identity = torch.eye(self.dims, dtype=direction.dtype, device=direction.device)
        return dense(self._linear(identity) - bias, bias, dtype)
