"""Today's neighbours of the four papers: what others add to a loss to spread vectors out.

They act on the last layer's [CLS] vectors, as the entropy of Shrink-the-longest does, labels aside. None has a
published weight for fine-tuning a text encoder: the defaults are those of other uses, and far too strong beside the
task loss of one (``book/experiments/neighbours.yaml`` has measured ones).
"""

from __future__ import annotations

from typing import ClassVar, Literal

from isonb import losses
from isonb.integrations.hidden_states import Pooling
from isonb.options import option
from isonb_lab.methods.shared import WithLoss, options_from


@options_from(losses.GORLoss)
class GOR(WithLoss):
    """Squared mean cosine, and mean squared cosine above 1/d, of the sentence vectors join the loss.

    ``mean_weight=0`` with ``hinge=False`` is the spread-out term of EmbeddingGemma.
    """

    name: ClassVar[str] = "gor"
    source: ClassVar[str] = "Global orthogonal regularisation (Zhang et al. 2017); EmbeddingGemma (2025)"


@options_from(losses.SIGRegLoss, without=("seed",), weight=0.02, normalize=True)
class SIGReg(WithLoss):
    """The distance of the sentence vectors to a standard normal cloud, along random directions, joins the loss.

    The directions are new in every batch. Sentence vectors of an encoder aren't of the scale that the statistic asks
    for, so by default they are compared as directions, rows of length sqrt(d).
    """

    name: ClassVar[str] = "sigreg"
    source: ClassVar[str] = "SIGReg (LeJEPA, Balestriero and LeCun 2025)"


@options_from(losses.IsoScoreLoss, without=("floor",), unbiased=True)
class LogIsoScore(WithLoss):
    """``-weight * ln IsoScore`` of the sentence vectors joins the loss; unbiased, so the batch sets no limit.

    IsoLayer's isotropy loss, on the encoder itself.
    """

    name: ClassVar[str] = "log_isoscore"
    source: ClassVar[str] = "IsoLayer's loss (Attieh et al., ICDAR 2023) with PR-U (Chun et al., ICLR 2026)"

    place: Literal["cls", "features"] = option(
        "cls", "vectors of fine-tuning: [CLS], or the features that the classifier reads"
    )

    def points(self) -> Pooling:
        return Pooling("tokens", module="features") if self.place == "features" else Pooling()


METHODS = (GOR, SIGReg, LogIsoScore)
