"""Whether a model's first token is far louder than the others, by name: an attention sink in a mean over tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from isonb.auditing.encoding.tokens import TokenEmbedder
from isonb.auditing.parts import Finding
from isonb.errors import ShapeError
from isonb.measures.first_token import first_token

__all__ = ["first_token_findings"]

TEXTS = 64  # one batch tells it


@torch.no_grad()
def first_token_findings(embedder: Any, texts: Sequence[str]) -> Iterator[Finding]:
    """A warning where the last layer of a mean-pooled model has it, a note where another layer has; of tokens alone."""
    if not isinstance(embedder, TokenEmbedder) or embedder.pool != "mean":
        return
    from isonb.lab.encoders.loading import forward

    sentences = embedder.read(texts[:TEXTS])
    device = next(embedder.encoder.model.parameters()).device
    states = forward(embedder.encoder.model, sentences.batch(range(len(sentences)), device))
    try:
        effects = [first_token(state, states.mask) for state in states.hidden[1:]]
    except ShapeError:  # texts of one token
        return
    last = effects[-1]
    loudest = max(range(len(effects)), key=lambda layer: effects[layer].ratio)
    advice = "A mean over few tokens is mostly the first one's: leave it out of the mean."
    if last.loud:
        yield Finding("first token", "warning", f"In the last layer {last}.", advice)
    elif effects[loudest].loud:
        text = f"In layer {loudest + 1}, not in the last one, {effects[loudest]}."
        yield Finding("first token", "note", text, "It counts where vectors of that layer are used.")
