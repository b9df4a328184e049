"""I-STAR (Rudman and Eickhoff, ICLR 2024) and CosReg, the baseline it compares with: penalties on token vectors."""

from __future__ import annotations

from typing import ClassVar, Literal

from torch import nn

from isonb import losses
from isonb.integrations.hidden_states import Pooling
from isonb.options import option
from isonb_lab.methods.base import Place
from isonb_lab.methods.shared import WithLoss, options_from, turn_gradient

_LAYERS = (
    'layers whose tokens are points: "all" (1 to the last, without the embedding output) or one number, -1 the last'
)
_PADS = "padding counts as tokens, as in the released code"


class OnTokens(WithLoss):
    """A loss on the tokens of the layers chosen."""

    acts_on: ClassVar[Place] = "tokens"

    def points(self) -> Pooling:
        return Pooling("tokens", self.layers, self.include_pads)


@options_from(losses.IStarLoss, weight=-1.0)
class IStar(OnTokens):
    """``weight * (1 - IsoScore*)`` of the tokens of all layers joins the loss; a weight below 0 lowers isotropy.

    The shrinkage matrix is measured on training data at each epoch's start. With ``zeta`` "auto" or 0 and with
    ``unbiased`` none is needed, so none is measured.
    """

    name: ClassVar[str] = "istar"
    source: ClassVar[str] = "I-STAR (Rudman and Eickhoff, ICLR 2024)"

    layers: int | Literal["all"] = option("all", _LAYERS, low=-100, high=100)
    include_pads: bool = option(False, _PADS)
    after: int | None = option(None, "epochs of plain training before the penalty; None: no delay", low=1, high=999)
    direction: Literal["random"] | None = option(None, "a control: a gradient as long, in a random direction")

    def penalty(self) -> nn.Module:
        loss: nn.Module = self.build()
        return turn_gradient(loss) if self.direction == "random" else loss

    def penalty_delay_epochs(self) -> int:
        return self.after or 0


@options_from(losses.CosRegLoss)
class CosReg(OnTokens):
    """``weight`` times the mean cosine of the last layer's tokens joins the loss."""

    name: ClassVar[str] = "cosreg"
    source: ClassVar[str] = "Cosine regularisation (Gao et al. 2019), as in I-STAR (Rudman and Eickhoff, ICLR 2024)"

    layers: int | Literal["all"] = option(-1, _LAYERS, low=-100, high=100)
    include_pads: bool = option(False, _PADS)


METHODS = (IStar, CosReg)
