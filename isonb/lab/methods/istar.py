"""I-STAR (Rudman and Eickhoff, ICLR 2024) and CosReg, the baseline it compares with: penalties on token vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from isonb import losses
from isonb.lab.methods.base import Method, Place
from isonb.lab.methods.shared import PointsAlone, RandomDirection, number_or
from isonb.lab.options import option
from isonb.training.points import Layers, PointRule

__all__ = ["METHODS", "CosReg", "IStar"]

_LAYERS = (
    'layers whose tokens are points: "all" (1 to the last, without the embedding output) or one number, -1 the last'
)


def _rule(layers: int | str, include_pads: bool) -> PointRule:
    chosen: Layers = "all" if isinstance(layers, str) else layers
    return PointRule("tokens", chosen, include_pads)


@dataclass(frozen=True)
class IStar(Method):
    """``weight * (1 - IsoScore*)`` of the tokens of all layers joins the loss; a weight below 0 lowers isotropy.

    The shrinkage matrix is measured on training data at each epoch's start. With ``zeta`` "auto" or 0 and with
    ``unbiased`` none is needed, so none is measured.
    """

    name: ClassVar[str] = "istar"
    source: ClassVar[str] = "I-STAR (Rudman and Eickhoff, ICLR 2024)"
    acts_on: ClassVar[Place] = "tokens"

    weight: float = option(-1.0, "weight (lambda): below 0 lowers isotropy, above 0 raises it", low=-100, high=100)
    zeta: float | str = option(0.2, 'weight of the shrinkage matrix, or "auto": scaled identity', low=0, high=1)
    layers: int | str = option("all", _LAYERS, low=-100, high=100)
    include_pads: bool = option(False, "padding counts as tokens, as in the released code")
    unbiased: bool = option(False, "the unbiased IsoScore of the batch instead of shrinkage")
    after: int | None = option(None, "epochs of plain training before the penalty; nothing: none", low=1, high=999)
    direction: str | None = option(None, "a control: a gradient as long, in a random direction", choices=("random",))

    def __post_init__(self) -> None:
        number_or("auto", self, "zeta")
        number_or("all", self, "layers")

    def penalty(self) -> nn.Module:
        """The I-STAR loss, offered a shrinkage matrix only if it uses one."""
        loss: nn.Module = losses.IStarLoss(self.weight, self.zeta, unbiased=self.unbiased)
        loss = RandomDirection(loss) if self.direction == "random" else loss
        return PointsAlone(loss) if self.unbiased or self.zeta in ("auto", 0) else loss

    def waits(self) -> int:
        """``after``."""
        return self.after or 0

    def points(self) -> PointRule:
        """Tokens of the chosen layers."""
        return _rule(self.layers, self.include_pads)


@dataclass(frozen=True)
class CosReg(Method):
    """``weight`` times the mean cosine of the last layer's tokens joins the loss."""

    name: ClassVar[str] = "cosreg"
    source: ClassVar[str] = "Cosine regularisation (Gao et al. 2019), as in I-STAR (Rudman and Eickhoff, ICLR 2024)"
    acts_on: ClassVar[Place] = "tokens"

    weight: float = option(1.0, "weight: above 0 lowers the mean cosine, below 0 raises it", low=-100, high=100)
    layers: int | str = option(-1, _LAYERS, low=-100, high=100)
    include_pads: bool = option(False, "padding counts as tokens, as in the released code")

    def __post_init__(self) -> None:
        number_or("all", self, "layers")

    def penalty(self) -> nn.Module:
        """The mean cosine."""
        return losses.CosRegLoss(self.weight)

    def points(self) -> PointRule:
        """Tokens of the chosen layers."""
        return _rule(self.layers, self.include_pads)


METHODS = (IStar, CosReg)
