"""Sentence vectors of many sentences, batch by batch: the hidden states of one batch are all that is ever held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from isonb.models.loading import Encoder, States, TokenizedSentences, forward
from isonb.models.text_models import is_decoder
from isonb.points import pool
from isonb_lab.measuring.layers import Sample
from isonb_lab.methods import Site

__all__ = ["Pool", "SentenceVector", "States", "TokenizedSentences", "distinct", "embed"]
__all__ += ["first_token", "forward", "sample_tokens"]

Pool = Callable[[States], Tensor]


def first_token(encoder: Encoder) -> Pool:
    """The first token of the last layer, or for a decoder the last real one, which has seen the others."""
    place: Any = "last" if is_decoder(encoder.model.config) else "cls"
    return lambda states: pool([states.hidden[-1]], states.mask, place)


class SentenceVector(nn.Module):
    """From hidden states to sentence vectors (B, d): ``pooled``, with a method's ``layer`` at its ``site``.

    The layer acts on the tokens of the last hidden state before pooling ("tokens"), or on the pooled vector.
    """

    def __init__(self, pooled: Pool, layer: nn.Module | None = None, site: Site = "vector") -> None:
        super().__init__()
        self.pooled, self.layer, self.site = pooled, layer, site

    def forward(self, states: States) -> Tensor:
        if self.layer is None:
            return self.pooled(states)
        if self.site != "tokens":
            vectors: Tensor = self.layer(self.pooled(states))
            return vectors
        last = self.layer(states.hidden[-1], states.mask)
        return self.pooled(states._replace(hidden=torch.cat([states.hidden[:-1], last.unsqueeze(0)])))


@torch.no_grad()
def embed(
    encoder: Encoder,
    sentences: TokenizedSentences,
    pools: Sequence[Pool],
    batch_size: int,
    *,
    progress: bool = True,
    name: str = "encode",
) -> list[Tensor]:
    """The float32 vectors (N, d) of all sentences, in their order, on the model's device: one tensor a pool."""
    order: list[int] = []
    pooled: list[list[Tensor]] = [[] for _ in pools]
    for rows, states in sentences.passes(encoder, batch_size, name, progress):
        order += rows
        for pool_, vectors in zip(pools, pooled, strict=True):
            vectors.append(pool_(states).float())
    place = torch.tensor(order, device=pooled[0][0].device).argsort()
    return [torch.cat(vectors)[place] for vectors in pooled]


def distinct(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], Tensor, Tensor]:
    """Each text of two columns once, and where the entries of the first and of the second are among them.

    >>> distinct(["a", "b"], ["b", "c"])
    (['a', 'b', 'c'], tensor([0, 1]), tensor([1, 2]))
    """
    place = {text: i for i, text in enumerate(dict.fromkeys([*first, *second]))}
    mine, other = (torch.tensor([place[text] for text in side]) for side in (first, second))
    return list(place), mine, other


@torch.no_grad()
def sample_tokens(
    encoder: Encoder, sentences: TokenizedSentences, batch_size: int, *, limit: int, seed: int, progress: bool = True
) -> Tensor:
    """At most ``limit`` token vectors (n, d) of the last layer, special tokens left out, drawn by ``seed``."""
    sample = Sample(limit, seed)
    for _, states in sentences.passes(encoder, batch_size, "collect tokens", progress):
        sample.add(states.hidden[-1][states.words])
    return sample.points.to(next(encoder.model.parameters()).device)
