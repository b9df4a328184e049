"""The points of the forward passes of one training update, seen by hooks: no pass is added, nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from isonb.integrations.hidden_states import HiddenStates, Pooling, named_module, only_module, unwrapped
from isonb.measures.first_token import FirstToken, first_token
from isonb.points import pool


def _gives_sentences(module: nn.Module) -> bool:
    return hasattr(module, "encode") and hasattr(module, "tokenizer") and isinstance(module, nn.Sequential)


class TrainingPoints:
    """Between :meth:`start` and :meth:`take` the points of every training pass of a model are kept, detached.

    Passes without gradients, such as rehearsals of a penalty or validations, are not looked at. A model of
    sentence-transformers gives its sentence embeddings, once for each batch that it sees and as its last module gives
    them: losses that cut them or stop at earlier layers see them several times. Every other model gives what
    ``pooling`` says. Vectors of another width than the widest are left out.
    """

    def __init__(self, pooling: Pooling) -> None:
        self.pooling = pooling
        self._watch = ExitStack()
        self._clouds: list[Tensor] = []
        self._inputs: list[Any] = []
        self._keywords: dict[str, Any] = {}  # of the whole model: a part may be called without a mask
        self.failure = ""  # why points of the last watch are missing
        self.first_token: FirstToken | None = None  # its effect on means, from the first pass that was seen

    def check(self, model: nn.Module) -> None:
        """As :meth:`~isonb.integrations.hidden_states.Pooling.check`, of a model that gives no sentence embeddings."""
        if self._sentences(model) is None:
            self.pooling.check(model)

    def start(self, model: nn.Module) -> None:
        """Watch the passes that follow."""
        self.stop()
        self.failure = ""
        sentences = self._sentences(model)
        if sentences is not None:
            handle = list(sentences.children())[-1].register_forward_hook(self._on_sentences)
        else:
            whole = unwrapped(model).register_forward_pre_hook(self._on_model, with_kwargs=True)
            self._watch.callback(whole.remove)
            self._seen: HiddenStates = self._watch.enter_context(self.pooling.watch(model))
            handle = self._seen.encoder.register_forward_hook(self._on_encoder)  # after those of watch
        self._watch.callback(handle.remove)

    def take(self) -> Tensor | None:
        """The points (n, d) since the start, or None; watching ends."""
        width = max((cloud.shape[-1] for cloud in self._clouds), default=0)
        widest = [cloud for cloud in self._clouds if cloud.shape[-1] == width]
        points = None
        with self._harmless():
            points = torch.cat(widest) if widest else None
        self.stop()
        return points

    def stop(self) -> None:
        """Take away the hooks and forget the points."""
        self._watch.close()
        self._clouds.clear()
        self._inputs.clear()
        self._keywords = {}

    def _sentences(self, model: nn.Module) -> nn.Module | None:
        if self.pooling.module is None:
            return only_module(model, _gives_sentences)
        named = named_module(model, self.pooling.module)
        return named if _gives_sentences(named) else None

    def _on_model(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._keywords = kwargs

    def _on_encoder(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        with self._harmless():
            states = self._seen.take()
            if torch.is_grad_enabled():
                self.pooling.check_rows(states[0], self._keywords)
                known = None if self.pooling.include_pads else self._seen.mask(states[0], self._keywords)
                self._clouds += [pool([state.detach()], known, self.pooling.mode).clone() for state in states]
                if self.pooling.mode == "mean" and known is not None and self.first_token is None:
                    self.first_token = first_token(states[-1].detach(), known)

    def _on_sentences(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        with self._harmless():
            words = args[0].get("input_ids", args[0].get("attention_mask"))
            if torch.is_grad_enabled() and not any(words is item for item in self._inputs if words is not None):
                self._inputs.append(words)
                self._clouds.append(output["sentence_embedding"].detach().clone())

    @contextmanager
    def _harmless(self) -> Iterator[None]:
        """Hooks run inside the training: what goes wrong in them is told later, and ends nothing."""
        try:
            yield
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
