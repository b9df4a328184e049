"""The persistent-entropy term of a batch: one barcode a label, all of them in one padded batch of clouds."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.barcodes.rips import barcode_of
from isonb.barcodes.tree_entropy import Rule, entropy_term, tree_entropy
from isonb.checks import border, cloud, uncompiled
from isonb.errors import DtypeError, InputError, ShapeError, fail
from isonb.numerics.distributed import Group, all_rows

__all__ = ["entropy_penalty", "padded_groups"]


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


def _check_labels(points: Tensor, labels: Tensor | None) -> None:
    if labels is None:
        return
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.dtype == torch.bool:
        got = getattr(labels, "dtype", type(labels).__name__)
        fix = "Pass labels.long(), or points[mask]; one group for all: None."
        fail(DtypeError, "labels must be integers", got, fix)
    if labels.shape != points.shape[:1]:
        want = f"labels must have shape ({points.shape[0]},), one a point"
        fail(ShapeError, want, tuple(labels.shape), "Give one label a row of points.")


def _loops(clouds: Tensor, mask: Tensor | None, max_dim: int) -> list[Tensor]:
    """Bar lengths (C, bars) above H0 dimension by dimension, padded with zeros."""
    alone = list(clouds) if mask is None else [rows[real] for rows, real in zip(clouds, mask, strict=True)]
    lengths = []
    for dimension in zip(*(barcode_of(rows, max_dim)[1:] for rows in alone), strict=True):
        bars = [death - birth for birth, death in dimension]
        lengths.append(torch.nn.utils.rnn.pad_sequence(bars, batch_first=True))
    return [bars for bars in lengths if bars.shape[-1]]


@uncompiled
@border
def entropy_penalty(
    points: Tensor,
    labels: Tensor | None = None,
    *,
    select: bool = True,
    keep_breaking: bool = True,
    in_cluster: float = 0.0,
    in_cluster_sign: int = 1,
    normalize: bool = False,
    reduction: str = "sum",
    min_points: int = 5,
    max_dim: int = 0,
    group: Group = "world",
) -> Tensor:
    r"""Minus the persistent entropy of each label's points, summed over labels (Shrink-the-longest, arXiv 2501.05502).

    For every label c the H0 bars of its points; ``select`` keeps the prominent ones
    (:func:`~isonb.barcodes.entropy.prominent_bars`). With the entropy :math:`H_c` of the kept bars the penalty is
    :math:`-\sum_c H_c`, so minimising it shortens the longest bars.

    ``in_cluster`` = w adds the mean length of the bars not kept, :math:`-\sum_c (H_c + \sigma w\,\bar l_c)`.
    :math:`\sigma` = ``in_cluster_sign``: +1 as the official code has it (noise bars are lengthened), -1 as its
    documentation describes it (they are shortened). The paper has no such term. ``normalize`` divides :math:`H_c` by
    the logarithm of the number of its bars, its maximum, so that labels of different size compare. ``reduction`` "mean"
    averages over the labels counted. ``max_dim`` = 1 or 2 adds the terms of H1, H2 (needs giotto-ph or gudhi).
    Labels with fewer than ``min_points`` points are left out, labels whose points are all equal count 0; if no label
    remains the penalty is 0, still attached to the points.

    Shapes: points (n, d), labels (n,) integer or None for one group; returns a scalar, at least minus the sum of the
    logarithms of the numbers of bars (without a bound where ``in_cluster`` lengthens bars). Selection and pairing are
    constants. The rows of all processes are gathered. Which labels and which tree there are depends on values, so
    :func:`torch.compile` leaves this function out: the graph breaks here (``fullgraph=True`` refuses), and it runs as
    it does uncompiled.

    >>> points = torch.tensor([[0.0], [1.0], [3.0], [7.0], [15.0]])
    >>> round(entropy_penalty(points, select=False).item(), 6)  # bars 1, 2, 4, 8
    -1.136917
    """
    points, _ = cloud(points, name="points", points=0, single=True)
    _check_labels(points, labels)
    if reduction not in ("sum", "mean") or in_cluster_sign not in (1, -1):
        got = f"reduction {reduction!r}, in_cluster_sign {in_cluster_sign!r}"
        fail(InputError, 'reduction must be "sum" or "mean" and in_cluster_sign 1 or -1', got, "See the docstring.")
    labels = None if labels is None else all_rows(labels.to(points.device), group)
    clouds, mask = padded_groups(all_rows(points, group), labels, max(2, min_points))
    if clouds.shape[0] == 0:
        return clouds.sum()
    rule = Rule(select, keep_breaking, in_cluster_sign * in_cluster, normalize)
    total = -tree_entropy(clouds, mask, rule)
    for bars in _loops(clouds, mask, max_dim) if max_dim > 0 else ():
        total = total - entropy_term(bars, rule)
    return total.sum() if reduction == "sum" else total.mean()
