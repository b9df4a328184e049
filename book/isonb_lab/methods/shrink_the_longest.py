"""Shrink-the-longest (arXiv 2501.05502): raise the persistent entropy of each label's sentence vectors in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import nn

from isonb import losses
from isonb.options import option
from isonb_lab.methods.shared import PointsOnly, WithLoss, options_from


@options_from(losses.PersistentEntropyLoss)
class Entropy(WithLoss):
    """Minus the persistent entropy of the last layer's [CLS] vectors, label by label, joins the loss.

    The defaults are the paper's method with selected bars; ``select=False`` takes all bars. Where there are no labels
    (regression, spans, similarity) all points are one cloud.
    """

    name: ClassVar[str] = "entropy"
    source: ClassVar[str] = "Shrink-the-longest (arXiv 2501.05502)"
    idle: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("regression", "span", "similarity"), ("per_label", "reduction")
    )

    per_label: bool = option(True, "one cloud a label; otherwise the whole batch is one")

    def penalty(self) -> nn.Module:
        """The entropy loss, offered labels only if it goes by them."""
        return super().penalty() if self.per_label else PointsOnly(super().penalty())


METHODS = (Entropy,)
