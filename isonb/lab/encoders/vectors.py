"""Sentence vectors of many sentences, batch by batch: the hidden states of one batch are all that is ever held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail
from isonb.lab.encoders.loading import Encoder
from isonb.lab.encoders.task_model import is_decoder
from isonb.lab.measuring.layers import Sample
from isonb.lab.methods import Site
from isonb.points import pool

__all__ = [
    "Pool",
    "SentenceVector",
    "States",
    "TokenizedSentences",
    "distinct",
    "embed",
    "embed_pairs",
    "first_token",
    "forward",
    "sample_tokens",
]


class States(NamedTuple):
    """Hidden states (L+1, B, T, d) of a batch, which tokens are real (B, T), and which of these aren't special ones.

    Where a sentence has special tokens alone, they count as words.
    """

    hidden: Tensor
    mask: Tensor
    words: Tensor


Pool = Callable[[States], Tensor]


@dataclass(frozen=True)
class TokenizedSentences:
    """Token numbers of sentences and whether each is a word (not a special token)."""

    ids: list[list[int]]
    words: list[list[bool]]
    pad: int

    @classmethod
    def read(cls, encoder: Encoder, texts: Sequence[str], max_length: int) -> TokenizedSentences:
        """Tokenise, cut at ``max_length`` tokens or the model's limit. InputError for a text without any token."""
        limit = min(max_length, encoder.max_length)
        found = encoder.tokenizer(list(texts), truncation=True, max_length=limit, return_special_tokens_mask=True)
        for text, ids in zip(texts, found["input_ids"], strict=True):
            if not ids:
                fail(InputError, "every sentence must give at least one token", repr(text), "Drop the empty sentence.")
        words = [[not s or all(row) for s in row] for row in found["special_tokens_mask"]]
        return cls(found["input_ids"], words, encoder.tokenizer.pad_token_id)

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Sequence[int], device: Any) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask`` and ``words`` (B, T) of some sentences, padded on the right."""
        width = max(len(self.ids[row]) for row in rows)
        ids = [self.ids[row] + [self.pad] * (width - len(self.ids[row])) for row in rows]
        mask = [[1] * len(self.ids[row]) + [0] * (width - len(self.ids[row])) for row in rows]
        words = [self.words[row] + [False] * (width - len(self.words[row])) for row in rows]
        found = {"input_ids": ids, "attention_mask": mask, "words": words}
        return {name: torch.tensor(value, device=device) for name, value in found.items()}

    def by_length(self, size: int) -> list[list[int]]:
        """Row numbers in batches of ``size``, longest sentences first."""
        order = sorted(range(len(self)), key=lambda row: -len(self.ids[row]))
        return [order[start : start + size] for start in range(0, len(order), size)]


def forward(model: Any, batch: dict[str, Tensor]) -> States:
    """One pass of a transformers model, with its graph if there is to be one."""
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    out = model(**inputs, output_hidden_states=True, return_dict=True)
    hidden = torch.stack((*out.hidden_states[:-1], out.last_hidden_state))
    return States(hidden, batch["attention_mask"].bool(), batch["words"])


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
        """The vectors of a batch."""
        if self.layer is None:
            return self.pooled(states)
        if self.site != "tokens":
            found: Tensor = self.layer(self.pooled(states))
            return found
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
    parts: list[list[Tensor]] = [[] for _ in pools]
    order = [row for rows in sentences.by_length(batch_size) for row in rows]
    for states in _passes(encoder, sentences, batch_size, name, progress):
        for pooled, part in zip(pools, parts, strict=True):
            part.append(pooled(states).float())
    place = torch.tensor(order, device=parts[0][0].device).argsort()
    return [torch.cat(part)[place] for part in parts]


def distinct(first: Sequence[str], second: Sequence[str]) -> tuple[list[str], Tensor, Tensor]:
    """Each text of two columns once, and where the entries of the first and of the second are among them.

    >>> distinct(["a", "b"], ["b", "c"])
    (['a', 'b', 'c'], tensor([0, 1]), tensor([1, 2]))
    """
    place = {text: i for i, text in enumerate(dict.fromkeys([*first, *second]))}
    one, other = (torch.tensor([place[text] for text in side]) for side in (first, second))
    return list(place), one, other


def embed_pairs(
    encoder: Encoder, first: Sequence[str], second: Sequence[str], vector: Pool, *, max_length: int = 128
) -> tuple[Tensor, Tensor]:
    """The vectors (n, d) of the first and of the second sentence of each pair; each sentence is encoded once."""
    texts, one, other = distinct(first, second)
    (found,) = embed(encoder, TokenizedSentences.read(encoder, texts, max_length), [vector], 64, progress=False)
    return found[one], found[other]


@torch.no_grad()
def sample_tokens(
    encoder: Encoder,
    sentences: TokenizedSentences,
    batch_size: int,
    *,
    limit: int,
    seed: int,
    progress: bool = True,
) -> Tensor:
    """At most ``limit`` token vectors (n, d) of the last layer, special tokens left out, drawn by ``seed``."""
    found = Sample(limit, seed)
    for states in _passes(encoder, sentences, batch_size, "collect tokens", progress):
        found.add(states.hidden[-1][states.words])
    return found.points.to(next(encoder.model.parameters()).device)


def _passes(encoder: Encoder, sentences: TokenizedSentences, size: int, name: str, progress: bool) -> Iterator[States]:
    from tqdm import tqdm

    device = next(encoder.model.parameters()).device
    bar = tqdm(sentences.by_length(size), desc=name, leave=False, disable=None if progress else True)
    for rows in bar:
        yield forward(encoder.model, sentences.batch(rows, device))
