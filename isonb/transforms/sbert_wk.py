"""SBERT-WK: a sentence vector from how each token moves through the layers (Wang and Kuo 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from isonb.checks import check_points, mask_of, validated
from isonb.errors import ShapeError, fail
from isonb.numerics.scale import unit_sized
from isonb.points import stacked

_CHUNK = 4096  # tokens looked at together


def _ratio(top: Tensor, bottom: Tensor) -> Tensor:
    """The quotient, 0 where the bottom is 0."""
    return torch.where(bottom == 0, 0.0, top / torch.where(bottom == 0, 1.0, bottom))


def _shares(scores: Tensor) -> Tensor:
    """Scores divided by their sum over the last axis; equal shares where the sum is 0."""
    total = scores.sum(-1, keepdim=True)
    return torch.where(total == 0, 1 / scores.shape[-1], _ratio(scores, total))


def _window_scores(path: Tensor, k: int, window: int) -> tuple[Tensor, Tensor]:
    """Alignment and novelty (n,) of layer k, from the layers as columns of ``path`` (n, m, K).

    The layers before k are left out where there are fewer than ``window`` of them, as in the official code.
    """
    before = list(range(k - window, k)) if k >= window else []
    after = list(range(k + 1, min(k + window, path.shape[-1] - 1) + 1))
    triangle = torch.linalg.qr(path[..., [*before, *after, k]], mode="r").R
    last, others = triangle[..., -1], triangle[..., :-1, :-1]
    mean = _ratio(others, others.norm(dim=-2, keepdim=True)).mean(-1)
    toward = _ratio((mean * last[..., :-1]).sum(-1), last[..., :-1].norm(dim=-1))
    size = len(before) + len(after) + 1
    return _ratio(torch.ones_like(toward), 2 * size * toward), _ratio(last[..., -1].abs(), last.norm(dim=-1))


def _token_vectors(layers: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Vector (n, d) and weight (n,) of each token, from its vectors in the kept layers (n, K, d)."""
    # all angles and relative lengths, in as few coordinates as there are layers
    path = torch.linalg.qr(unit_sized(layers.mT), mode="r").R
    scores = [_window_scores(path, k, window) for k in range(layers.shape[1])]
    alignment, novelty = (torch.stack(part, -1) for part in zip(*scores, strict=True))
    weights = _shares(_shares(alignment) + _shares(novelty))
    unit = _ratio(path, path.norm(dim=-2, keepdim=True))
    steps = (unit[..., 1:] * unit[..., :-1]).sum(-2)
    spread = (steps - steps.mean(-1, keepdim=True)).square().sum(-1) / (steps.shape[-1] - 1)
    return (weights.unsqueeze(-1) * layers).sum(1), spread


@validated
@torch.no_grad()
def sbert_wk(
    hidden_states: Sequence[Tensor] | Tensor, mask: Tensor | None = None, layer_start: int = 4, window: int = 2
) -> Tensor:
    r"""Sentence vectors by SBERT-WK (Wang and Kuo 2020), (B, d).

    Per token, over its vectors :math:`h_k` in layers ``layer_start``..L: let R be the triangle of the QR decomposition
    of up to ``window`` layers on each side and :math:`h_k` last, m columns, and r its last column. With the mean
    :math:`\bar c` of the unit columns of the others,

    .. math:: \text{alignment}_k = \frac{\lVert r_{<m}\rVert}{2m\,\bar c^\top r_{<m}}, \qquad
              \text{novelty}_k = \frac{|r_m|}{\lVert r\rVert}.

    Each is scaled to sum 1 over k; their sum, scaled again, weights the layers. A token's weight in its sentence is the
    variance of the cosines between its vectors in consecutive layers, scaled to sum 1. The last real token, the
    separator, is left out. As in the official code, the first ``window`` layers have no left side.

    Shapes: L + 1 tensors (B, T, d), or one (L + 1, B, T, d); mask (B, T). At least ``window`` + 1 layers and three must
    remain, and every sentence needs two real tokens: :class:`~isonb.errors.ShapeError`. float32 for half precision. Not
    differentiable; for post-processing (it waits for the device).

    >>> import isonb, torch
    >>> states = torch.eye(3).view(3, 1, 1, 3).expand(3, 1, 2, 3)  # each layer a direction of its own
    >>> [round(v, 4) for v in isonb.sbert_wk(states, layer_start=0, window=1)[0].tolist()]
    [0.3333, 0.3333, 0.3333]
    """
    stack = stacked(hidden_states)
    if stack.ndim != 4 or not len(stack):
        fix = "Pass the hidden_states of a model, the embedding output first."
        fail(ShapeError, "hidden_states must be L + 1 tensors (B, T, d)", f"shape {tuple(stack.shape)}", fix)
    mask = mask_of(stack[0], mask, name="a layer")
    keep = None if mask is None else mask.expand(stack.shape[:-1])
    stack, real = check_points(stack, keep, name="hidden_states", points=2)
    least = max(window + 1, 3)
    if window < 1 or not 0 <= layer_start <= stack.shape[0] - least:
        want = f"layer_start must leave at least {least} of the {stack.shape[0]} hidden states to a window of {window}"
        fail(ShapeError, want, f"layer_start {layer_start}", "Start at an earlier layer.")
    used = torch.ones(stack.shape[1:3], dtype=torch.bool, device=stack.device) if real is None else real[0].clone()
    place = torch.arange(used.shape[1], device=used.device)
    last = torch.where(used, place, -1).amax(-1)
    used &= place != last.unsqueeze(-1)
    sentence = used.nonzero()[:, 0]
    parts = torch.split(stack[layer_start:].permute(1, 2, 0, 3)[used], _CHUNK)
    pieces = [_token_vectors(part, window) for part in parts]
    vectors, weights = (torch.cat(part) for part in zip(*pieces, strict=True))
    return _weighted_sums(vectors, weights, sentence, stack.shape[1])


def _weighted_sums(vectors: Tensor, weights: Tensor, sentence: Tensor, sentences: int) -> Tensor:
    """Mean of each sentence's token vectors by weight; the plain mean where every weight is 0."""
    totals = weights.new_zeros(sentences).index_add_(0, sentence, weights)
    weights = torch.where(totals[sentence] == 0, 1.0, weights)
    totals = weights.new_zeros(sentences).index_add_(0, sentence, weights)
    shares = (weights / totals[sentence]).unsqueeze(-1)
    return vectors.new_zeros(sentences, vectors.shape[-1]).index_add_(0, sentence, shares * vectors)
