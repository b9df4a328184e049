"""The mean direction of a cloud, and its removal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from isonb.checks import flatten_points, lasting_tensors, validated
from isonb.errors import DegenerateError, fail
from isonb.numerics.rows import directions, unit_rows
from isonb.numerics.scale import precise
from isonb.options import option
from isonb.transforms.base import Transform, folded

ROUNDING = 4.0  # times the dtype's epsilon: what is left of unit rows that cancel


@dataclass(eq=False, repr=False)
class MeanDirection(Transform):
    r"""Remove the mean direction of unit rows, :math:`\hat x - (\hat x^\top m)m`, and renormalise.

    R2 of Ren, Sun and Liang (arXiv 2511.11041), :math:`m = \mu/|\mu|` the direction of the mean :math:`\mu` of the
    fitted unit rows. ``subtract=True`` is their R1, :math:`\hat x - \mu`: an error in the length of :math:`\mu` stays
    in the result there. Zero rows stay zero under R2, and rows along m become zero: what rounding leaves of them is no
    direction. ``to_dense`` gives the affine map for rows that are already of unit length, without the renormalising.

    >>> import isonb, torch
    >>> x = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    >>> isonb.MeanDirection().fit(x[:2]).transform(torch.tensor([[3.0, 0.0]])).tolist()
    [[0.7071, -0.7071]]
    >>> isonb.MeanDirection(subtract=True).fit(x).transform(x)[2].tolist()
    [-0.9239, 0.3827]
    """

    CENTRE = "direction"

    renormalize: bool = option(True, "bring the rows back to length 1")
    subtract: bool = option(False, "subtract the mean of the unit vectors (R1); otherwise project it out (R2)")

    @validated
    @lasting_tensors()
    def fit(self, x: Tensor, mask: Tensor | None = None) -> Self:
        """Learn from points (..., d), one or more; zero rows have no direction. Returns self.

        Raises :class:`~isonb.errors.DegenerateError` where the directions cancel.
        """
        along = directions(flatten_points(x, mask, points=1)[0], look=False)
        mean = precise(along.inverse @ along.rows / (along.inverse > 0).sum())
        length = torch.linalg.vector_norm(mean)
        if not length > ROUNDING * torch.finfo(along.rows.dtype).eps:
            fix = "There is none to remove."
            fail(DegenerateError, "the rows must have a mean direction", "directions that cancel", fix)
        self.state = {"direction": mean / length, "length": length}
        return self

    def _without(self, unit: Tensor) -> Tensor:
        """Rows of unit length without the mean direction, before renormalising."""
        direction = self.state["direction"].to(unit)
        if self.subtract:
            return unit - direction * self.state["length"].to(unit)
        return torch.addr(unit, unit @ direction, direction, alpha=-1)

    def _apply(self, x: Tensor) -> Tensor:
        out = self._without(unit_rows(x))
        if not self.renormalize:
            return out
        length = torch.linalg.vector_norm(out, dim=-1, keepdim=True)
        along = length <= ROUNDING * torch.finfo(out.dtype).eps
        return out * torch.where(along, 0.0, 1 / torch.where(along, 1.0, length))

    def to_dense(self, dtype: torch.dtype = torch.float32) -> nn.Linear:
        """The map before renormalising, for rows of unit length, as a frozen linear layer on the CPU."""
        return folded(self._without, self._learned("direction"), dtype)
