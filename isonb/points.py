"""Hidden states to points: which layers, which tokens, how pooled. Everything that makes points of a model is here.

A cloud is a tensor ``(..., n, d)``: n points as rows. An optional mask ``(..., n)`` marks the real rows, as the
``attention_mask`` of a tokenizer does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, finite, is_whole, labels_of, tensor_of, validated
from isonb.errors import InputError, ShapeError, fail
from isonb.numerics.rows import row_count

Layers = int | Sequence[int] | Literal["all"]
Mode = Literal["cls", "last", "mean", "mean_after_first", "tokens"]


def chosen_layers(layers: Layers, depth: int) -> list[int]:
    """The numbers of the hidden states asked for, of ``depth`` with the embedding output: "all" is 1..L.

    :class:`~isonb.errors.ShapeError` for a number that there is not, and for none.

    >>> chosen_layers("all", 4), chosen_layers(-1, 4), chosen_layers((0, -1), 4)
    ([1, 2, 3], [-1], [0, -1])
    """
    if layers == "all":
        return list(range(1, depth)) or [0]
    indices: list[Any] = list(layers) if isinstance(layers, Iterable) else [layers]
    if not indices or any(not is_whole(layer) or not -depth <= layer < depth for layer in indices):
        fix = 'Layer 0 is the embedding output; "all" means 1..L.'
        fail(ShapeError, f"layers must name some of the {depth} hidden states", f"layers {layers!r}", fix)
    return [int(layer) for layer in indices]


def _first(state: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return state[..., 0, :]
    return _at(state, mask.int().argmax(-1))  # behind padding on the left


def _last(state: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return state[..., -1, :]
    return _at(state, torch.arange(mask.shape[-1], device=mask.device).where(mask, -1).argmax(-1))


def _at(state: Tensor, place: Tensor) -> Tensor:
    """The vector (..., d) at one place (...) of each sentence of a state (..., T, d)."""
    return state.gather(-2, place[..., None, None].expand(*place.shape, 1, state.shape[-1])).squeeze(-2)


def _mean(state: Tensor, mask: Tensor | None) -> Tensor:
    rows = state if mask is None else torch.where(mask.unsqueeze(-1), state, 0.0)
    return rows.sum(-2) / row_count(state, mask).clamp_min(1).unsqueeze(-1)


def _mean_after_first(state: Tensor, mask: Tensor | None) -> Tensor:
    real = torch.ones(state.shape[:-1], dtype=torch.bool, device=state.device) if mask is None else mask
    after = torch.where(real.cumsum(-1) > 1, real, False)
    return _mean(state, torch.where(after.any(-1, keepdim=True), after, real))


def _tokens(state: Tensor, mask: Tensor | None) -> Tensor:
    return state.flatten(0, -2) if mask is None else state[mask]


_POOLS = {"cls": _first, "last": _last, "mean": _mean, "mean_after_first": _mean_after_first, "tokens": _tokens}


def pool(states: Sequence[Tensor], mask: Tensor | None, mode: Mode) -> Tensor:
    """Hidden states of some layers to one cloud (n, d): the points of layer after layer, in float32 for half precision.

    "cls" takes the first real token of each sentence, "last" its last one (the usual choice for a decoder), "mean"
    the mean over its real tokens, "mean_after_first" over those but the first where there are others (in a language
    model the first may outweigh them all), "tokens" every real token. ``mask`` (B, T) marks real tokens; None counts
    them all.
    Values aren't looked at: what the points are given to does that.

    >>> states = [torch.tensor([[[1.0], [2.0], [9.0]]])]
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> [pool(states, mask, mode).flatten().tolist() for mode in ("cls", "last", "mean", "mean_after_first", "tokens")]
    [[1.0], [2.0], [1.5], [2.0], [1.0, 2.0]]
    """
    if mode not in _POOLS:
        names = ", ".join(map(repr, _POOLS))
        fail(InputError, f"points must be one of {names}", repr(mode), "I-STAR takes 'tokens'.")
    states, mask = _layers(states), tensor_of(mask)
    real = None if mask is None else mask.bool()
    wide = [state.float() if state.dtype in (torch.float16, torch.bfloat16) else state for state in states]
    return torch.cat([_POOLS[mode](state, real) for state in wide])


@validated
def cls_pool(hidden: Tensor) -> Tensor:
    """The first token of each sentence ([CLS]; ``<s>`` in RoBERTa): (..., T, d) -> (..., d).

    >>> cls_pool(torch.tensor([[[1.0, 2.0], [9.0, 9.0]]])).tolist()
    [[1.0, 2.0]]
    """
    return _first(check_points(hidden, name="hidden", points=1)[0], None)


@validated
def mean_pool(hidden: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mean of the real tokens of each sentence: (..., T, d), mask (..., T) -> (..., d).

    Errors: a sentence without a real token :class:`~isonb.errors.ShapeError`, on an accelerator 0.

    >>> mean_pool(torch.tensor([[[1.0], [3.0], [50.0]]]), torch.tensor([[1, 1, 0]])).tolist()
    [[2.0]]
    """
    hidden, mask = check_points(hidden, mask, name="hidden", points=1, look=False)
    return check_overflow(_mean(hidden, mask), "sum", hidden)


@validated
def token_cloud(hidden: Tensor, mask: Tensor | None = None) -> Tensor:
    """Every real token of every sentence as one cloud: (..., T, d), mask (..., T) -> (N, d), row-major order.

    The number of rows depends on the mask, so this waits for the device; keep the mask where that matters. Errors: a
    sentence without a real token :class:`~isonb.errors.ShapeError`; on an accelerator it adds no row.

    >>> token_cloud(torch.arange(6.0).view(1, 3, 2), torch.tensor([[1, 0, 1]])).tolist()
    [[0.0, 1.0], [4.0, 5.0]]
    """
    return _tokens(*check_points(hidden, mask, name="hidden", points=1))


def _layers(hidden_states: Any, alike: bool = False) -> Any:
    """Hidden states by layer: the tensors of a sequence, if need be of one shape, or one tensor (L + 1, B, T, d)."""
    hidden_states = tensor_of(hidden_states)
    if isinstance(hidden_states, Tensor) and hidden_states.ndim > 3:
        return hidden_states
    states = [tensor_of(state) for state in hidden_states] if isinstance(hidden_states, Sequence) else [hidden_states]
    whole = isinstance(hidden_states, Sequence) and all(isinstance(state, Tensor) for state in states)
    if not states or not whole or (alike and len({state.shape for state in states}) != 1):
        got = [tuple(item.shape) if isinstance(item, Tensor) else type(item).__name__ for item in states] or "none"
        fix = "Pass the hidden_states of a model, one tensor (B, T, d) a layer."
        fail(ShapeError, "hidden_states must be tensors of one shape", got, fix)
    return states


def stacked(hidden_states: Sequence[Tensor] | Tensor, layers: Layers | None = None) -> Tensor:
    """Hidden states as one tensor, layers first; all of them, or some."""
    if isinstance(hidden_states, Tensor):
        return hidden_states if layers is None else hidden_states[chosen_layers(layers, len(hidden_states))]
    states = _layers(hidden_states, alike=True)
    return torch.stack(states if layers is None else [states[k] for k in chosen_layers(layers, len(states))])


@validated
def layer_average(hidden_states: Sequence[Tensor] | Tensor, layers: Sequence[int] = (0, -1)) -> Tensor:
    """The mean of chosen layers, L tensors (..., T, d) -> (..., T, d). Layer 0 is the embedding output.

    ``(0, -1)`` and ``(1, -1)`` are the two "first-last" averages in use, by SoftDecay and BERT-whitening.

    >>> layer_average(torch.tensor([[[0.0]], [[2.0]], [[4.0]]]), layers=(1, 2)).tolist()
    [[3.0]]
    """
    states, _ = check_points(stacked(hidden_states, layers), name="hidden_states", points=1, look=False)
    return check_overflow(states.mean(0), "sum", states)


@validated
def points_from_hidden_states(
    hidden_states: Sequence[Tensor], mask: Tensor | None = None, layers: Layers = "all", include_pads: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Token vectors of some layers as one cloud, and which rows are real: I-STAR's points.

    ``layers``: "all" for 1..L (layer 0, the embedding output, is left out as in the official code), a number or
    several; negative ones count from the end. ``include_pads=True`` takes padding for tokens, as the official code
    does. Shapes: L + 1 tensors (B, T, d) and ``mask`` (B, T); returns points (N, d), layer after layer, and a bool mask
    (N,), or None where every row is real. Nothing is dropped, so nothing waits for the device. Differentiable.

    >>> states = [torch.zeros(1, 2, 3), torch.ones(1, 2, 3), torch.ones(1, 2, 3)]
    >>> points, mask = points_from_hidden_states(states, torch.tensor([[1, 0]]))
    >>> tuple(points.shape), mask.tolist()
    ((4, 3), [True, False, True, False])
    """
    hidden_states = _layers(hidden_states)
    indices = chosen_layers(layers, len(hidden_states))
    real_mask = None if include_pads else mask
    checked = [
        check_points(hidden_states[layer], real_mask, name="hidden_states", points=0, look=False) for layer in indices
    ]
    points = finite(torch.cat([state.flatten(0, -2) for state, _ in checked]), name="hidden_states")
    return points, None if real_mask is None else torch.cat([real.flatten() for _, real in checked if real is not None])


@validated
def label_groups(points: Tensor, labels: Tensor) -> Iterator[tuple[int, Tensor]]:
    """``(label, cloud)`` for each label present, in ascending order: points (n, d), integer labels (n,).

    Reading which labels occur waits for the device.

    >>> [(label, group.tolist()) for label, group in label_groups(torch.tensor([[1.0], [2.0], [3.0]]),
    ...                                                            torch.tensor([1, 0, 1]))]
    [(0, [[2.0]]), (1, [[1.0], [3.0]])]
    """
    points, _ = check_points(points, name="points", points=1, single=True)
    labels = labels_of(labels, len(points)).to(points.device)
    present = [int(label) for label in torch.unique(labels, sorted=True)]
    return ((label, points[labels == label]) for label in present)
