"""Today's neighbours of the four papers: what others add to a loss, or take away, to spread vectors out.

Losses act on the last layer's [CLS] vectors, as the entropy of Shrink-the-longest does, labels aside. None has a
published weight for fine-tuning a text encoder: the defaults are those of other uses, and far too strong beside the
task loss of one (``book/experiments/neighbours.yaml`` has measured ones).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from isonb import losses, transforms
from isonb.lab.methods.base import Method
from isonb.lab.methods.shared import Fitted, OnVectors
from isonb.lab.options import option
from isonb.training.points import PointRule

__all__ = ["GOR", "METHODS", "LogIsoScore", "MeanDirectionMethod", "SIGReg"]


@dataclass(frozen=True)
class OnSentences(Method):
    """A penalty on sentence vectors."""

    def points(self) -> PointRule:
        """[CLS] of the last layer."""
        return PointRule("cls", -1)


@dataclass(frozen=True)
class GOR(OnSentences):
    """Squared mean cosine, and mean squared cosine above 1/d, of the sentence vectors join the loss.

    ``mean_weight=0`` with ``hinge=False`` is the spread-out term of EmbeddingGemma.
    """

    name: ClassVar[str] = "gor"
    source: ClassVar[str] = "Global orthogonal regularisation (Zhang et al. 2017); EmbeddingGemma (2025)"

    weight: float = option(1.0, "weight of both parts", low=-1000, high=1000)
    mean_weight: float = option(1.0, "weight of the squared mean cosine within it", low=0, high=1000)
    square_weight: float = option(1.0, "weight of the mean squared cosine within it", low=0, high=1000)
    hinge: bool = option(True, "stop at the 1/d of directions without preference")

    def penalty(self) -> nn.Module:
        """The spread of directions."""
        return losses.GORLoss(
            self.weight, mean_weight=self.mean_weight, square_weight=self.square_weight, hinge=self.hinge
        )


@dataclass(frozen=True)
class SIGReg(OnSentences):
    """The distance of the sentence vectors to a standard normal cloud, along random directions, joins the loss.

    The directions are new in every batch. Sentence vectors of an encoder aren't of the scale that the statistic asks
    for, so by default they are compared as directions, rows of length sqrt(d).
    """

    name: ClassVar[str] = "sigreg"
    source: ClassVar[str] = "SIGReg (LeJEPA, Balestriero and LeCun 2025)"

    weight: float = option(0.02, "weight; in the paper the other loss has 1 less it", low=-1000, high=1000)
    slices: int = option(1024, "random directions a batch", low=1, high=65536)
    normalize: bool = option(True, "rows at length sqrt(d); otherwise as they are, scale and mean included")

    def penalty(self) -> nn.Module:
        """The statistic of the batch."""
        return losses.SIGRegLoss(self.weight, self.slices, normalize=self.normalize)


@dataclass(frozen=True)
class LogIsoScore(OnSentences):
    """``-weight * ln IsoScore`` of the sentence vectors joins the loss; unbiased, so the batch sets no limit.

    IsoLayer's isotropy loss, on the encoder itself.
    """

    name: ClassVar[str] = "log_isoscore"
    source: ClassVar[str] = "IsoLayer's loss (Attieh et al., ICDAR 2023) with PR-U (Chun et al., ICLR 2026)"

    weight: float = option(1.0, "weight: above 0 raises isotropy", low=-1000, high=1000)
    unbiased: bool = option(True, "the unbiased IsoScore; otherwise that of the sample")

    def penalty(self) -> nn.Module:
        """Minus the logarithm of the score."""
        return losses.IsoScoreLoss(weight=self.weight, unbiased=self.unbiased)


@dataclass(frozen=True)
class MeanDirectionMethod(OnVectors):
    """The mean direction is taken out of unit vectors, which are brought back to length 1."""

    name: ClassVar[str] = "mean_direction"
    source: ClassVar[str] = "Mean removal R1 and R2 (Ren, Sun and Liang, arXiv 2511.11041)"

    subtract: bool = option(False, "subtract the mean of the unit vectors (R1); otherwise project it out (R2)")

    def fitted(self, rows: Tensor, seed: int) -> Fitted:
        """The mean direction of the rows."""
        return transforms.MeanDirection(subtract=self.subtract).fit(rows)


METHODS = (GOR, SIGReg, LogIsoScore, MeanDirectionMethod)
