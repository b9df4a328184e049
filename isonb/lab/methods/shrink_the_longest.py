"""Shrink-the-longest (arXiv 2501.05502): raise the persistent entropy of each label's sentence vectors in training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from isonb import losses
from isonb.lab.methods.base import Method
from isonb.lab.methods.shared import PointsAlone
from isonb.lab.options import option
from isonb.training.points import PointRule

__all__ = ["METHODS", "Entropy"]


@dataclass(frozen=True)
class Entropy(Method):
    """Minus the persistent entropy of the last layer's [CLS] vectors, label by label, joins the loss.

    The defaults are the paper's method with selected bars; ``select=False`` takes all bars. Where there are no labels
    (regression, spans, similarity) all points are one cloud.
    """

    name: ClassVar[str] = "entropy"
    source: ClassVar[str] = "Shrink-the-longest (arXiv 2501.05502)"

    weight: float = option(1.0, "weight of the entropy; above 0 raises it", low=-100, high=100)
    select: bool = option(True, "keep the prominent bars; otherwise all")
    keep_breaking: bool = option(True, "count the bar that ends the selection as prominent, as the code does")
    in_cluster: float = option(
        0.0, "weight of the mean length of the bars left out, beside the entropy", low=0, high=100
    )
    in_cluster_sign: int = option(
        1, "1 lengthens those bars (as coded), -1 shortens them (as described)", choices=(1, -1)
    )
    normalize: bool = option(False, "divide by the greatest entropy that so many bars can have")
    reduction: str = option("sum", "over labels", choices=("sum", "mean"))
    min_points: int = option(5, "labels with fewer points in the batch are left out", low=2, high=65536)
    max_dim: int = option(0, "homology up to this dimension; above 0 needs giotto-ph or gudhi", low=0, high=2)
    per_label: bool = option(True, "one cloud a label; otherwise the whole batch is one")

    def penalty(self) -> nn.Module:
        """The entropy loss, offered labels only if it goes by them."""
        loss = losses.PersistentEntropyLoss(
            self.select,
            self.in_cluster,
            in_cluster_sign=self.in_cluster_sign,
            keep_breaking=self.keep_breaking,
            normalize=self.normalize,
            reduction=self.reduction,
            min_points=self.min_points,
            max_dim=self.max_dim,
            weight=self.weight,
        )
        return loss if self.per_label else PointsAlone(loss)

    def points(self) -> PointRule:
        """[CLS] of the last layer."""
        return PointRule("cls", -1)


METHODS = (Entropy,)
