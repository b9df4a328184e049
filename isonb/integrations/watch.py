"""The points of the forward passes of one training update, seen by hooks: no pass is added, nothing is changed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from isonb.integrations.points import HiddenStates, PointRule, Points, encoder_of, pool

__all__ = ["TrainingPoints", "chosen"]


def chosen(state: Tensor, mask: Tensor | None, points: Points) -> Tensor:
    """:func:`isonb.integrations.points.pool` of one hidden state (B, T, d), whatever the values of first tokens."""
    if points == "cls":
        return state[:, 0]
    return pool([state], mask, points) if mask is None or points != "tokens" else state[mask.bool()]


class TrainingPoints:
    """Between :meth:`start` and :meth:`take` the points of every training pass of a model are kept, detached.

    Passes without gradients, such as rehearsals of a penalty or validations, are not looked at. A model of
    sentence-transformers gives its sentence embeddings, every other one what ``rule`` says.
    """

    def __init__(self, rule: PointRule) -> None:
        self.rule = rule
        self._watch = ExitStack()
        self._parts: list[Tensor] = []

    def start(self, model: nn.Module) -> None:
        """Watch the passes that follow."""
        self.stop()
        if hasattr(model, "encode") and hasattr(model, "tokenizer"):
            handle = model.register_forward_hook(self._on_sentences)
        else:
            self._seen: HiddenStates = self._watch.enter_context(self.rule.watch(model))
            handle = encoder_of(model).register_forward_hook(self._on_encoder, with_kwargs=True)  # after those of watch
        self._watch.callback(handle.remove)

    def take(self) -> Tensor | None:
        """The points (n, d) since the start, or None; watching ends."""
        parts = list(self._parts)
        self.stop()
        return torch.cat(parts) if parts else None

    def stop(self) -> None:
        """Take away the hooks and forget the points."""
        self._watch.close()
        self._parts.clear()

    def _on_encoder(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        mask = kwargs.get("attention_mask", args[1] if len(args) > 1 else None)
        mask = None if self.rule.include_pads else mask
        states = self._seen.take()
        if module.training and torch.is_grad_enabled():
            self._parts += [chosen(state.detach(), mask, self.rule.points).clone() for state in states]

    def _on_sentences(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if module.training and torch.is_grad_enabled():
            self._parts.append(output["sentence_embedding"].detach().clone())
