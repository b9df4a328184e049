"""A method of one's own: the mean of sentence vectors goes to zero."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from isonb.options import option
from isonb_lab.methods import Method


class OffCentre(nn.Module):
    """The squared mean vector over the mean squared length: 0 when centred."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, points: Tensor) -> Tensor:
        """Points (n, d) of a batch; returns a scalar."""
        common = points.mean(0).square().sum()
        return self.weight * common / points.square().sum(-1).mean()


@dataclass(frozen=True)
class Centred(Method):
    """The mean of a batch's sentence vectors is penalised."""

    weight: float = option(1.0, "of the penalty", low=0, high=1000)

    def penalty(self) -> nn.Module:
        """What is added to the training loss."""
        return OffCentre(self.weight)
