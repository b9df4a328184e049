"""Shrink-the-longest (arXiv 2501.05502): the persistent entropy of a batch, one barcode a label."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from isonb.barcodes.rips import barcode_of
from isonb.barcodes.tree_entropy import Choice, entropy_term, forest_entropy, tree_entropy_and_share
from isonb.checks import check_points, check_values, labels_of, validated
from isonb.losses.common import POOLED, Loss
from isonb.numerics.distributed import Group, all_rows
from isonb.options import option

IGNORED = -100  # the label of rows that don't count, as in Hugging Face's batches and torch's cross entropy


def _without_ignored(labels: Tensor) -> Tensor:
    """Each row of label -100 under a label of its own, which is too small to count; nothing waits for the device."""
    labels = labels.long()
    if not labels.numel():
        return labels
    apart = labels.min() - 1 - torch.arange(len(labels), device=labels.device)
    return torch.where(labels == IGNORED, apart, labels)


def padded_groups(points: Tensor, labels: Tensor | None, least: int) -> tuple[Tensor, Tensor | None]:
    """Clouds (C, m, d), one for each label with at least ``least`` points, and their mask (C, m); C may be 0.

    The mask is None where no row is padding. Reading which labels occur waits for the device.

    >>> clouds, mask = padded_groups(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([1, 0, 1]), 1)
    >>> clouds.squeeze(-1).tolist(), mask.tolist()
    ([[2.0, 0.0], [1.0, 3.0]], [[True, False], [True, True]])
    """
    if labels is None:
        return points.unsqueeze(0)[: int(points.shape[0] >= least)], None
    _, inverse, counts = torch.unique(labels, return_inverse=True, return_counts=True)
    order = inverse.argsort(stable=True)
    kept = counts >= least
    start, counts = (counts.cumsum(0) - counts)[kept], counts[kept]
    place = torch.arange(int(counts.max()) if counts.numel() else 0, device=points.device)
    mask = place < counts.unsqueeze(-1)
    clouds = points[order[torch.where(mask, start.unsqueeze(-1) + place, 0)]]
    if bool(mask.all()):
        return clouds, None
    return torch.where(mask.unsqueeze(-1), clouds, 0.0), mask


def _loops(clouds: Tensor, mask: Tensor | None, max_dim: int) -> list[Tensor]:
    """Bar lengths (C, bars) above H0 dimension by dimension, padded with zeros."""
    alone = list(clouds) if mask is None else [rows[real] for rows, real in zip(clouds, mask, strict=True)]
    lengths = []
    for dimension in zip(*(barcode_of(rows, max_dim)[1:] for rows in alone), strict=True):
        bars = [death - birth for birth, death in dimension]
        lengths.append(torch.nn.utils.rnn.pad_sequence(bars, batch_first=True))
    return [bars for bars in lengths if bars.shape[-1]]


@dataclass(eq=False, repr=False)
class PersistentEntropyLoss(Loss):
    r"""Minus the persistent entropy of each label's points, summed over labels (Shrink-the-longest, arXiv 2501.05502).

    For every label c the H0 bars of its points; ``select`` keeps the prominent ones (:func:`isonb.prominent_bars`).
    With the entropy :math:`H_c` of the kept bars the loss is :math:`-\lambda \sum_c H_c`, so minimising it shortens the
    longest bars. In the paper points are the last layer's [CLS] vectors of the effective batch (64 there), labels the
    gold labels, weight 1.

    ``in_cluster`` = w adds the mean length of the bars not kept, :math:`-\lambda \sum_c (H_c + \sigma w\,\bar l_c)`.
    :math:`\sigma` = ``in_cluster_sign``: +1 as the official code has it (noise bars are lengthened), -1 as its
    documentation describes it (they are shortened). The paper has no such term. ``normalize`` divides :math:`H_c` by
    the logarithm of the number of its bars, its maximum, so that labels of different size compare. Labels whose points
    are all equal count 0; if no label remains the loss is 0, still attached to the points.

    The loss moves with the numbers of points, which bound :math:`H_c`. ``logged["entropy_share"]`` has, of the last
    call, the mean share of H0's :math:`H_c` in that maximum, in [0, 1]: it says whether the bars become more even.

    Shapes: points (n, d), labels (n,) integer or None for one group; returns a scalar, of weight 1 at least minus the
    sum of the logarithms of the numbers of bars (without a bound where ``in_cluster`` lengthens bars). Rows of label
    -100 are left out, as Hugging Face's losses leave them out. Selection and pairing are constants. The rows of all
    processes are gathered. Where values aren't looked at, on an accelerator or compiled, nothing waits to learn which
    labels there are: one spanning forest holds the trees of all (not with ``max_dim`` above 0).

    >>> import isonb, torch
    >>> loss = isonb.PersistentEntropyLoss(select=False)
    >>> points = torch.tensor([[0.0], [1.0], [3.0], [7.0], [15.0]], requires_grad=True)
    >>> round(loss(points).item(), 6)  # bars 1, 2, 4, 8
    -1.136917
    >>> round(loss.logged["entropy_share"].item(), 3)  # of the logarithm of 4
    0.82
    >>> loss(points[:3]).item()  # fewer than five points: nothing to add
    0.0
    """

    select: bool = option(True, "keep the prominent bars; otherwise all")
    in_cluster: float = option(
        0.0, "weight of the mean length of the bars left out, relative to the entropy's", low=0, idle={"select": False}
    )
    _: KW_ONLY
    in_cluster_sign: Literal[1, -1] = option(
        1, "1 lengthens those bars (as coded), -1 shortens them (as described)", idle={"in_cluster": 0}
    )
    keep_breaking: bool = option(
        True, "count the bar that ends the selection as prominent, as the code does", idle={"select": False}
    )
    normalize: bool = option(False, "divide by the greatest entropy that so many bars can have")
    reduction: Literal["sum", "mean"] = option("sum", "over labels")
    min_points: int = option(5, "labels with fewer points in the batch are left out", low=2)
    max_dim: int = option(0, "homology up to this dimension; above 0 needs giotto-ph or gudhi", low=0, high=2)
    weight: float = option(1.0, "weight of the whole; above 0 raises the entropy")
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, labels: Tensor | None = None) -> Tensor:
        """Points (n, d), integer labels (n,) or None for one group; returns a scalar."""
        points, _ = check_points(points, name="points", points=0, single=True)
        self.logged = {}
        if labels is not None:
            labels = _without_ignored(all_rows(labels_of(labels, len(points)).to(points.device), self.group))
        points, least = all_rows(points, self.group), max(2, self.min_points)
        choice = Choice(self.select, self.keep_breaking, self.in_cluster_sign * self.in_cluster, self.normalize)
        if labels is not None and self.max_dim == 0 and len(points) >= least and not check_values(points):
            total, share, present = forest_entropy(points, labels, least, choice)
            count = present.sum().clamp_min(1)
            self.logged = {"entropy_share": share.sum() / count}
            return -self.weight * (total.sum() if self.reduction == "sum" else total.sum() / count)
        clouds, mask = padded_groups(points, labels, least)
        if clouds.shape[0] == 0:
            return clouds.sum()
        total, share = tree_entropy_and_share(clouds, mask, choice)
        self.logged = {"entropy_share": share.mean()}
        for bars in _loops(clouds, mask, self.max_dim) if self.max_dim > 0 else ():
            total = total + entropy_term(bars, choice)
        return -self.weight * (total.sum() if self.reduction == "sum" else total.mean())
