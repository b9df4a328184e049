"""The entropy of the H0 bars of clouds with its gradient in closed form: one step of autograd from points to value.

:func:`entropy_term` is the plain form of the same sum, for bars that are there already. A second derivative is its.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.barcodes.entropy import persistent_entropy, prominent_bars
from isonb.barcodes.inputs import tree_edges
from isonb.barcodes.trees import spanning_forest
from isonb.checks import nonnegative
from isonb.numerics.distances import edge_length_grad, edge_lengths, lengths_between, numbered
from isonb.numerics.scale import precise


class Choice(NamedTuple):
    """Which bars count and how, as :class:`~isonb.PersistentEntropyLoss` explains; ``in_cluster`` signed."""

    select: bool = True
    keep_breaking: bool = True
    in_cluster: float = 0.0
    normalize: bool = False


def entropy_term(bars: Tensor, choice: Choice) -> Tensor:
    """Entropy (C,) of the kept bars of each barcode (C, bars), plus ``in_cluster`` times the mean of the others."""
    real, selected = _chosen(bars.detach(), choice)
    empty = ~real.any(-1, keepdim=True)  # all points equal, or no loop: the term is 0
    entropy = persistent_entropy(torch.where(empty, 1.0, bars), mask=selected | empty)
    if choice.normalize:
        entropy = entropy / _largest_entropy(selected, bars.dtype)
    entropy = torch.where(empty.squeeze(-1), 0.0, entropy)
    if choice.in_cluster == 0:
        return entropy
    noise = real & ~selected
    return entropy + choice.in_cluster * torch.where(noise, bars, 0.0).sum(-1) / noise.sum(-1).clamp_min(1)


def tree_entropy_and_share(clouds: Tensor, mask: Tensor | None, choice: Choice) -> tuple[Tensor, Tensor]:
    """The same (C,) of the H0 bars of checked clouds (C, m, d), m >= 2, under a mask (C, m).

    Beside it, as constants, the entropy's shares (C,) of the greatest that so many bars can have.
    """
    both: tuple[Tensor, Tensor] = _TreeEntropy.apply(  # type: ignore[no-untyped-call]
        clouds, *tree_edges(clouds, mask), choice
    )
    return both


def forest_entropy(points: Tensor, labels: Tensor, least: int, choice: Choice) -> tuple[Tensor, Tensor, Tensor]:
    """The same (C,) of the rows of each label of ``least`` points (n, d) or more, and which of them are real (C,).

    Nothing waits for the device; C is the number of labels that there could be.
    """
    edges, real = spanning_forest(points, labels, least)
    both: tuple[Tensor, Tensor] = _TreeEntropy.apply(points.unsqueeze(0), edges, real, None, choice)  # type: ignore[no-untyped-call]
    return *both, real.any(-1)


def _chosen(bars: Tensor, choice: Choice) -> tuple[Tensor, Tensor]:
    real = bars > 0
    return real, prominent_bars(bars, choice.keep_breaking) if choice.select else real


def _largest_entropy(selected: Tensor, dtype: torch.dtype) -> Tensor:
    """The logarithm of the number of kept bars; of fewer than two, whose entropy is 0, that of three."""
    count = selected.sum(-1).to(dtype)
    return torch.where(count > 1, count, 3.0).log()


def value_and_slopes(bars: Tensor, choice: Choice) -> tuple[Tensor, Tensor, Tensor]:
    r"""The term (C,), its derivatives by the bars (C, bars), and the entropy's share (C,) of its maximum.

    With :math:`p_k = l_k / L` of the kept bars, :math:`\partial H / \partial l_k = -(\ln p_k + H) / L`; of nearly
    equal bars the two terms nearly cancel, so all of it is computed in the widest type of the device.
    """
    real, selected = _chosen(bars, choice)
    dtype, bars = bars.dtype, precise(bars)
    own = torch.where(selected, bars, 0.0)
    longest = own.amax(-1, keepdim=True)
    unit = torch.where(longest > 0, longest, 1.0)
    shares = own / unit
    total = shares.sum(-1, keepdim=True).clamp_min(1)  # the longest has share 1
    shares = shares / total
    value = torch.special.entr(shares).sum(-1, keepdim=True)
    logs = shares.clamp_min(torch.finfo(bars.dtype).tiny).log()
    slopes = torch.where(shares > 0, -(logs + value) / total / unit, 0.0)
    most = _largest_entropy(selected, bars.dtype).unsqueeze(-1)
    of_most = value / most
    if choice.normalize:
        value, slopes = of_most, slopes / most
    if choice.in_cluster:
        noise = real & ~selected
        share = torch.where(noise, choice.in_cluster / noise.sum(-1, keepdim=True).clamp_min(1).to(bars.dtype), 0.0)
        value, slopes = value + (share * bars).sum(-1, keepdim=True), slopes + share
    return value.squeeze(-1).to(dtype), slopes.to(dtype), of_most.squeeze(-1).to(dtype)


class _TreeEntropy(torch.autograd.Function):
    """Of clouds (C, m, d) with the edges (C, m-1, 2) of their trees, and which of those are real, None for all.

    Of one cloud (1, m, d) there may be several choices of real ones (C, m-1).
    """

    @staticmethod
    def forward(
        ctx: Any, clouds: Tensor, edges: Tensor, real: Tensor | None, constant_lengths: Tensor | None, choice: Choice
    ) -> tuple[Tensor, Tensor]:
        ends = numbered(edges, clouds.shape[1])
        lengths = (
            lengths_between(clouds.flatten(0, 1), ends) if constant_lengths is None else constant_lengths.flatten()
        )
        value, slopes, share = value_and_slopes(_bars(lengths.view(edges.shape[:-1]), real), choice)
        ctx.save_for_backward(clouds, edges, real, ends, lengths, slopes)
        ctx.choice = choice
        ctx.mark_non_differentiable(share)
        return value, share

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor, None, None, None, None]:
        clouds, edges, real, ends, lengths, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = entropy_term(_bars(edge_lengths(clouds, edges), real), ctx.choice)
            return *torch.autograd.grad(value, clouds, grad, create_graph=True), None, None, None, None
        slopes = (slopes * grad.unsqueeze(-1)).sum_to_size(edges.shape[:-1]).flatten()
        return edge_length_grad(clouds.flatten(0, 1), ends, lengths, slopes).view_as(clouds), None, None, None, None


def _bars(lengths: Tensor, real: Tensor | None) -> Tensor:
    return nonnegative(lengths if real is None else torch.where(real, lengths, 0.0), name="bars")
