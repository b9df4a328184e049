"""A Laplacian term: cosines of vectors with like contexts alone. Ours, in the spirit of Zhang et al. (2020)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from isonb.checks import check_points, labels_of, validated
from isonb.losses.common import POOLED, Loss, attached_zero
from isonb.losses.cosreg import CosRegLoss
from isonb.numerics.distributed import Group, all_rows
from isonb.options import option
from isonb_lab.methods.shared import WithLoss, options_from

__all__ = ["LaplacianLoss"]


@dataclass(eq=False, repr=False)
class LaplacianLoss(Loss):
    r"""Sum over pairs :math:`i \ne j` of :math:`a_{ij} \hat x_i^\top \hat x_j` over :math:`M^2`.

    The contexts of two vectors count as alike (:math:`a_{ij} = 1`) where their labels are equal, else
    :math:`a_{ij} = 0`; without labels the term is CosReg. The papers name Laplacian regularisation and print no formula
    of it: this one is ours.

    Shapes: points (M, d), labels (M,) integer or None; returns a scalar. The rows of all processes are gathered.

    >>> points = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> LaplacianLoss()(points, torch.tensor([0, 0, 1])).item() * 9
    2.0
    """

    weight: float = option(1.0, "above 0 lowers the cosines within a label, below 0 raises them")
    _: KW_ONLY
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, labels: Tensor | None = None) -> Tensor:
        """Points (n, d), integer labels (n,) or None; returns a scalar."""
        points, _ = check_points(points, None, name="points", points=0, single=True)
        if labels is None:
            labels = torch.zeros(len(points), dtype=torch.long)
        labels = all_rows(labels_of(labels, len(points)).to(points.device), self.group)
        rows, term = all_rows(points, self.group), CosRegLoss(self.weight, group=None)
        parts = [rows[labels == label] for label in torch.unique(labels)]
        return sum((term(part) * (len(part) / len(rows)) ** 2 for part in parts), attached_zero(points))


@options_from(LaplacianLoss)
class Laplacian(WithLoss):
    """The mean cosine of [CLS] vectors of one label joins the loss; without labels that of all (ours)."""

    name: ClassVar[str] = "laplacian"
    source: ClassVar[str] = "Ours, in the spirit of Laplacian regularisation (Zhang et al. 2020)"


METHODS = (Laplacian,)
