"""From a transformer at work to the cloud a penalty acts on: which layers, which tokens, how pooled.

The hidden states come from forward hooks on the model's own layers, not from ``output_hidden_states=True``: nothing is
added to the model's output, so an evaluation loop gathers what it always did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from isonb.clouds import cls_pool, mean_pool, token_cloud
from isonb.errors import InputError, ShapeError, fail

__all__ = ["HiddenStates", "Layers", "PointRule", "Points", "encoder_of", "pool", "unwrapped"]

Layers = int | Sequence[int] | Literal["all"]
Points = Literal["cls", "last", "mean", "tokens"]

WRAPPERS = ("module", "_orig_mod")  # DistributedDataParallel and torch.compile keep the model under these names


def unwrapped(model: nn.Module) -> nn.Module:
    """The model below DistributedDataParallel and torch.compile."""
    for name in WRAPPERS:
        while isinstance(getattr(model, name, None), nn.Module):
            model = getattr(model, name)
    return model


def encoder_of(model: nn.Module) -> Any:
    """The transformer inside ``model``: below wrappers, adapters and the task head.

    Raises :class:`~isonb.errors.InputError` for a model without transformer layers and for an encoder-decoder.
    """
    inner: Any = unwrapped(model)  # adapters (PEFT) and transformers models add attributes of their own
    inner = inner.get_base_model() if hasattr(inner, "get_base_model") else inner
    encoder = getattr(inner, "base_model", inner)
    config = getattr(encoder, "config", None)
    if config is None or getattr(config, "is_encoder_decoder", False):
        got = type(encoder).__name__ + (" (an encoder-decoder)" if config is not None else "")
        fail(InputError, "the model must hold a transformers encoder or decoder", got, "Pass its encoder.")
    return encoder


def _layer_modules(encoder: Any) -> list[nn.Module]:
    """The modules whose calls are layers 1..L, shared ones once."""
    known: Any = (getattr(encoder, "_can_record_outputs", None) or {}).get("hidden_states")
    known = known[0] if isinstance(known, list) else known
    kind: Any = getattr(known, "target_class", known)
    modules: list[nn.Module] = list(encoder.modules())
    if isinstance(kind, type):
        return [module for module in modules if isinstance(module, kind)]
    depth = encoder.config.num_hidden_layers
    stacks = [module for module in modules if isinstance(module, nn.ModuleList) and len(module) == depth]
    if not stacks:
        fix = "Pass a transformers model, or call the penalty yourself."
        fail(InputError, f"the model must have a list of {depth} layers", type(encoder).__name__, fix)
    return list(stacks[0])


def _first(output: Any) -> Tensor:
    """The hidden states in what a layer or a model returns: a tensor, a tuple or an output object."""
    found = getattr(output, "last_hidden_state", None)
    if found is None:
        found = output if isinstance(output, Tensor) else output[0]
    assert isinstance(found, Tensor)
    return found


class HiddenStates(AbstractContextManager["HiddenStates"]):
    """Keeps the hidden states of the forward passes run inside the block, with their graphs.

    ``layers`` names the ones wanted: 0 is the embedding output, 1..L the layers, "all" means 1..L, negative numbers
    count from the end. Layer L is what the model returns as its last hidden state, after a final norm if it has one. A
    layer that is shared, as in ALBERT, counts once for each time it is called.

    >>> from transformers import BertConfig, BertModel
    >>> size = {"vocab_size": 10, "hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 4}
    >>> model = BertModel(BertConfig(num_hidden_layers=3, **size))
    >>> with HiddenStates(model, layers="all") as states:
    ...     _ = model(input_ids=torch.tensor([[1, 2]]))
    >>> [tuple(state.shape) for state in states.take()]
    [(1, 2, 4), (1, 2, 4), (1, 2, 4)]
    """

    def __init__(self, model: nn.Module, layers: Layers = -1) -> None:
        self.encoder = encoder_of(model)
        self.layers = layers
        self._states: list[Tensor] = []
        self._last: Tensor | None = None
        self._handles: list[Any] = []

    def __enter__(self) -> HiddenStates:
        if self.layers not in (-1, [-1], (-1,)):
            for module in _layer_modules(self.encoder):
                self._handles.append(module.register_forward_hook(self._on_layer, with_kwargs=True))
        self._handles.append(self.encoder.register_forward_hook(self._on_model))
        return self

    def __exit__(self, *exception: object) -> None:
        # Removed before the backward pass: gradient checkpointing runs the layers again there.
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _on_layer(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if not self._states:
            self._states.append(args[0] if args else kwargs["hidden_states"])
        self._states.append(_first(output))

    def _on_model(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        self._last = _first(output)

    def take(self) -> list[Tensor]:
        """The wanted hidden states (B, T, d), in the order asked for, and forget them."""
        states, last, self._states, self._last = self._states, self._last, [], None
        if last is None:
            fix = "Run the model inside the block; compile it after hooking, or not at all."
            fail(InputError, "the model must run once inside the block", "no call seen by the hooks", fix)
        states = [*states[:-1], last]
        if self.layers == "all":
            return states[1:]
        wanted = [self.layers] if isinstance(self.layers, int) else list(self.layers)
        if not wanted or any(not -len(states) <= layer < len(states) for layer in wanted):
            depth = f"layers must name some of 0..{len(states) - 1}"
            fail(ShapeError, depth, self.layers, 'Layer 0 is the embedding output; "all" means 1..L.')
        return [states[layer] for layer in wanted]


def _last_token(hidden: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return hidden[:, -1]
    place = torch.arange(mask.shape[-1], device=mask.device).where(mask.bool(), -1).argmax(-1)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), place]


def pool(states: Sequence[Tensor], mask: Tensor | None, points: Points) -> Tensor:
    """Hidden states of some layers to one cloud (n, d): the points of layer after layer.

    "cls" takes the first position of each sentence, "last" its last real token (the usual choice for a decoder), "mean"
    the mean over its real tokens, "tokens" every real token. ``mask`` (B, T) marks real tokens; None counts them all.

    >>> states = [torch.tensor([[[1.0], [2.0], [9.0]]])]
    >>> mask = torch.tensor([[1, 1, 0]])
    >>> [pool(states, mask, points).flatten().tolist() for points in ("cls", "last", "mean", "tokens")]
    [[1.0], [2.0], [1.5], [1.0, 2.0]]
    """
    if points == "cls":
        return torch.cat([cls_pool(state) for state in states])
    if points == "last":
        return torch.cat([_last_token(state, mask) for state in states])
    if points == "mean":
        return torch.cat([mean_pool(state, mask) for state in states])
    return torch.cat([token_cloud(state, mask) for state in states])


@dataclass(frozen=True)
class PointRule:
    """Which points of a forward pass a penalty sees: pooling, layers, and whether padding counts as tokens."""

    points: Points = "cls"
    layers: Layers = -1
    include_pads: bool = False

    def __post_init__(self) -> None:
        if self.points not in get_args(Points):
            names = ", ".join(map(repr, get_args(Points)))
            fail(InputError, f"points must be one of {names}", repr(self.points), "I-STAR takes 'tokens'.")

    def watch(self, model: nn.Module) -> HiddenStates:
        """The hooks for one forward pass of ``model``, to be used in a with statement."""
        return HiddenStates(model, self.layers)

    def cloud(
        self, seen: HiddenStates, inputs: Mapping[str, Any], rows: int | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Points (n, d) of the pass just seen and, where there is one integer label per sentence, labels (n,).

        ``rows`` keeps the first so many sentences.
        """
        states = [state[:rows] for state in seen.take()]
        mask, labels = inputs.get("attention_mask"), inputs.get("labels")
        found = pool(states, None if self.include_pads or mask is None else mask[:rows], self.points)
        if self.points == "tokens" or not isinstance(labels, Tensor) or labels.ndim != 1 or labels.is_floating_point():
            return found, None
        return found, labels[:rows].repeat(len(states))
