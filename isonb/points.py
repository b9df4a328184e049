"""Hidden states to point clouds: pooling, layers, label groups, and the centring that every measure shares.

A cloud is a tensor ``(..., n, d)``: n points as rows. An optional mask ``(..., n)`` marks the real rows, as the
``attention_mask`` of a tokenizer does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from isonb.checks import border, cloud, tensor_of
from isonb.errors import DtypeError, ShapeError, fail

__all__ = ["centered", "cls_pool", "label_groups", "layer_average", "mean_pool", "token_cloud"]


def row_count(x: Tensor, mask: Tensor | None) -> Tensor:
    """Points of each cloud, shape ``(...)``, in the dtype of ``x``: n, or the real rows under the mask."""
    if mask is None:
        return x.new_full(x.shape[:-2], x.shape[-2])
    return mask.sum(-1).to(x.dtype)


def center_rows(x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``(x - mean, mean)`` of a checked cloud, masked rows left at zero. Equal rows give zero to the last bit.

    Subtracting a row of the cloud before the mean keeps the shape of a cloud far from the origin, and keeps the
    rounding of the mean from turning no variance into a little noise.
    """
    if x.shape[-2] == 0:
        return x, x.sum(-2)
    n = row_count(x, mask).clamp_min(1)[..., None, None]
    if mask is None:
        first = x[..., :1, :]
        moved = x - first
        mean = moved.sum(-2, keepdim=True) / n
        return moved - mean, (first + mean).squeeze(-2)
    rows = mask.unsqueeze(-1)
    place = mask.int().argmax(-1)[..., None, None].expand(*x.shape[:-2], 1, x.shape[-1])
    first = x.gather(-2, place)
    moved = torch.where(rows, x - first, 0.0)
    mean = moved.sum(-2, keepdim=True) / n
    return torch.where(rows, moved - mean, 0.0), (first + mean).squeeze(-2)


@border
def centered(x: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""The cloud moved to the origin, :math:`x_i - \frac1n\sum_j x_j`, stable far from it.

    Shapes: ``x`` (..., n, d), ``mask`` (..., n) optional; returns (..., n, d) with masked rows zero.
    Raises :class:`~isonb.errors.InputError` for non-finite values, wrong rank or an empty cloud.

    >>> centered(torch.tensor([[1.0, 5.0], [3.0, 7.0]])).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    """
    x, mask = cloud(x, mask, points=1)
    return center_rows(x, mask)[0]


@border
def cls_pool(hidden: Tensor) -> Tensor:
    """The first token of each sentence ([CLS]; ``<s>`` in RoBERTa): (..., T, d) -> (..., d).

    >>> cls_pool(torch.tensor([[[1.0, 2.0], [9.0, 9.0]]])).tolist()
    [[1.0, 2.0]]
    """
    return cloud(hidden, name="hidden", points=1)[0][..., 0, :]


@border
def mean_pool(hidden: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mean of the real tokens of each sentence: (..., T, d), mask (..., T) -> (..., d).

    >>> mean_pool(torch.tensor([[[1.0], [3.0], [50.0]]]), torch.tensor([[1, 1, 0]])).tolist()
    [[2.0]]
    """
    hidden, mask = cloud(hidden, mask, name="hidden", points=1)
    return hidden.sum(-2) / row_count(hidden, mask).clamp_min(1).unsqueeze(-1)


@border
def token_cloud(hidden: Tensor, mask: Tensor | None = None) -> Tensor:
    """Every real token of every sentence as one cloud: (..., T, d), mask (..., T) -> (N, d), row-major order.

    The number of rows depends on the mask, so this waits for the device; keep the mask where that matters.

    >>> token_cloud(torch.arange(6.0).view(1, 3, 2), torch.tensor([[1, 0, 1]])).tolist()
    [[0.0, 1.0], [4.0, 5.0]]
    """
    hidden, mask = cloud(hidden, mask, name="hidden", points=1)
    return hidden.flatten(0, -2) if mask is None else hidden[mask]


@border
def layer_average(hidden_states: Sequence[Tensor] | Tensor, layers: Sequence[int] = (0, -1)) -> Tensor:
    """The mean of chosen layers, L tensors (..., T, d) -> (..., T, d). Layer 0 is the embedding output.

    ``(0, -1)`` and ``(1, -1)`` are the two "first-last" averages in use, by SoftDecay and BERT-whitening.

    >>> layer_average(torch.tensor([[[0.0]], [[2.0]], [[4.0]]]), layers=(1, 2)).tolist()
    [[3.0]]
    """
    stack = hidden_states if isinstance(hidden_states, Tensor) else torch.stack([*map(tensor_of, hidden_states)])
    stack, _ = cloud(stack, name="hidden_states", points=1)
    depth = stack.shape[0]
    if not layers or any(not -depth <= layer < depth for layer in layers):
        got = f"layers {tuple(layers)}"
        fail(ShapeError, f"layers must name some of the {depth} hidden states", got, "Layer 0 is the embedding output.")
    return torch.stack([stack[layer] for layer in layers]).mean(0)


@border
def label_groups(points: Tensor, labels: Tensor) -> Iterator[tuple[int, Tensor]]:
    """``(label, cloud)`` for each label present, in ascending order: points (n, d), integer labels (n,).

    Reading which labels occur waits for the device.

    >>> [(label, group.tolist()) for label, group in label_groups(torch.tensor([[1.0], [2.0], [3.0]]),
    ...                                                            torch.tensor([1, 0, 1]))]
    [(0, [[2.0]]), (1, [[1.0], [3.0]])]
    """
    points, _ = cloud(points, name="points", points=1, single=True)
    if labels.is_floating_point():
        fail(DtypeError, "labels must be integers", labels.dtype, "Pass labels.long().")
    if labels.shape != points.shape[:1]:
        want = f"labels must have shape ({points.shape[0]},), one a point"
        fail(ShapeError, want, tuple(labels.shape), "Give one label a row of points.")
    found = [int(label) for label in torch.unique(labels, sorted=True)]
    return ((label, points[labels == label]) for label in found)
