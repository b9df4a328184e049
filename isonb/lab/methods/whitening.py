"""Affine transforms of sentence vectors, fitted on the task itself: subtract the mean, whiten, remove directions."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from isonb import transforms
from isonb.lab.methods.declared import takes
from isonb.lab.methods.shared import Fitted, OnVectors, fewer
from isonb.points import layer_average, mean_pool


@takes(transforms.ZeroMean)
class ZeroMeanMethod(OnVectors):
    """The mean of the vectors is subtracted; their covariance, hence IsoScore, stays."""

    name: ClassVar[str] = "zero_mean"
    source: ClassVar[str] = "All-but-the-top (Mu and Viswanath 2018), its first step"


@takes(transforms.Whitening)
class WhiteningMethod(OnVectors):
    """Mean zero, covariance one, cut to the first ``k`` directions.

    n vectors vary in at most n - 1 directions; those without variance are left out, so fewer than ``k`` may remain.
    """

    name: ClassVar[str] = "whitening"
    source: ClassVar[str] = "BERT-whitening (Su et al. 2021)"


@takes(transforms.Whitening, without=("k",))
class WhiteBert(OnVectors):
    """Whitening of the masked mean of layers 1 and last, whichever layers the run names."""

    name: ClassVar[str] = "whitebert"
    source: ClassVar[str] = "WhiteningBERT (Huang et al. 2021)"

    def features(self, states: Tensor, mask: Tensor) -> Tensor:
        """As in similarity."""
        return self.pool(states, mask, (1, -1))

    def pool(self, states: Tensor, mask: Tensor, layers: tuple[int, ...]) -> Tensor:
        """The mean over real tokens of the mean of layers 1 and last."""
        return mean_pool(layer_average(states, (1, -1)), mask)


@takes(transforms.SoftZCA)
class SoftZCAMethod(OnVectors):
    """Whitening softened by ``eps``, along the original axes."""

    name: ClassVar[str] = "soft_zca"
    source: ClassVar[str] = "Soft-ZCA (Diera, Galke and Scherp 2024)"


@takes(transforms.AllButTheTop)
class AllButTheTopMethod(OnVectors):
    """The mean and the top ``D`` principal directions are removed."""

    name: ClassVar[str] = "all_but_the_top"
    source: ClassVar[str] = "All-but-the-top (Mu and Viswanath 2018)"

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """Mean and top directions of the rows."""
        fewer(self.D or 0, rows, "D")
        return super().fitted(rows, seed)


METHODS = (ZeroMeanMethod, WhiteningMethod, WhiteBert, SoftZCAMethod, AllButTheTopMethod)
