"""A transformers model with its tokenizer, and a pooling that was asked for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isonb.auditing.encoding import Batch, Counts, Embedder
from isonb.auditing.texts import within
from isonb.errors import InputError, fail

if TYPE_CHECKING:
    from isonb.lab.encoders.loading import TokenizedSentences

POOLS = ("auto", "mean", "cls", "last")
TOKENS = 16_384  # tokens of a batch, padding included
STATES = 2**28  # bytes of hidden states that a batch may take


class TokenEmbedder(Embedder):
    """An encoder with its pooling: "mean" over all tokens, "cls" the first one, or "last" the last real one.

    ``from_name``: the encoder was loaded from its name, so that its revision stands for all that it is.
    """

    def __init__(self, encoder: Any, pool: str, max_length: int, batch_size: int = 32, from_name: bool = False) -> None:
        self.encoder, self.pool, self.max_length, self.batch_size = encoder, pool, max_length, batch_size
        self.from_name, self.training = from_name, bool(encoder.model.training)
        self.name, self.told = str(encoder.name), f"{pool} pooling"
        room_for_words(encoder.tokenizer, max_length)

    def read(self, texts: Sequence[str]) -> TokenizedSentences:
        """The token numbers of each text, cut at the longest input. InputError for a text that gives no token."""
        from isonb.lab.encoders.loading import TokenizedSentences

        read = TokenizedSentences.read(self.encoder, within(texts, self.max_length), self.max_length)
        return replace(read, pad=read.pad or 0)  # off the mask any token serves

    def states(self, sentences: TokenizedSentences, rows: Sequence[int], layers: bool = False) -> Tensor:
        """Pooled vectors (1, B, d) of the last layer, or (L+1, B, d) of all, of some texts in one batch."""
        from isonb.lab.encoders.loading import forward

        device = next(self.encoder.model.parameters()).device
        with torch.no_grad():
            hidden, mask, _ = forward(self.encoder.model, sentences.batch(rows, device))
        return torch.stack([self._pooled(state, mask).float().cpu() for state in (hidden if layers else hidden[-1:])])

    def _pooled(self, state: Tensor, mask: Tensor) -> Tensor:
        if self.pool == "cls":
            return state[:, 0]
        if self.pool == "last":
            return state[torch.arange(len(state), device=state.device), mask.sum(-1) - 1]
        return torch.where(mask.unsqueeze(-1), state, 0.0).sum(1) / mask.sum(-1, keepdim=True)

    def together(self, texts: Sequence[str]) -> Tensor:
        return self.states(self.read(texts), range(len(texts)))[0]

    def batches(self, texts: Sequence[str], layered: Container[int]) -> Iterator[Batch]:
        """Longest texts first: at most ``batch_size`` rows, and no more tokens than memory allows."""
        sentences = self.read(texts)
        most = max(1, min(TOKENS, STATES // (4 * self.encoder.dim * (self.encoder.layers + 1))))
        order = [row for rows in sentences.by_length(1) for row in rows]
        while order:
            size = max(1, min(self.batch_size, most // len(sentences.ids[order[0]])))
            rows, order = order[:size], order[size:]
            seen = [place for place, row in enumerate(rows) if row in layered]
            states = self.states(sentences, rows, layers=bool(seen))
            yield Batch(rows, states[-1], [rows[place] for place in seen], states[:, seen] if seen else None)

    def counts(self, texts: Sequence[str]) -> Counts:
        return counted(self.read(texts).ids, self.encoder.tokenizer, self.max_length)

    def fingerprint(self) -> str:
        """Of the model's folder, or of all that was passed; the pooling and the longest input."""
        model = self.encoder.model
        made = self.encoder.revision if self.from_name else contents(model, self.encoder.tokenizer)
        told = [self.encoder.name, made, type(model).__qualname__, self.training, self.pool, self.max_length]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def counted(ids: Sequence[Sequence[int]], tokenizer: Any, limit: int) -> Counts:
    """The texts that fill the input, the tokens that the model doesn't know, and all tokens."""
    unknown = tokenizer.unk_token_id
    strange = 0 if unknown is None else sum(row.count(unknown) for row in ids)
    return Counts(sum(len(row) >= limit for row in ids), strange, sum(map(len, ids)))


def room_for_words(tokenizer: Any, limit: int) -> None:
    """Raise :class:`~isonb.errors.InputError` where special tokens alone fill the input."""
    special = tokenizer.num_special_tokens_to_add() if hasattr(tokenizer, "num_special_tokens_to_add") else 0
    if limit <= special:
        invariant = f"max_length must leave room for a word beside {special} special tokens"
        fail(InputError, invariant, limit, f"Take {special + 1} or more.")


def contents(model: Any, tokenizer: Any) -> str:
    """A digest of a model in memory: its modules, weights and configuration, and its tokenizer."""
    digest = hashlib.sha256(repr(model).encode())
    for name, value in sorted(model.state_dict().items()):
        if isinstance(value, Tensor):
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    config: Any = getattr(model, "config", None)
    digest.update(config.to_json_string().encode() if hasattr(config, "to_json_string") else b"")
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    told = json.loads(inner.to_str()) if hasattr(inner, "to_str") else getattr(tokenizer, "init_kwargs", {})
    told = {key: value for key, value in told.items() if key not in ("padding", "truncation")}  # of the last call
    digest.update(json.dumps(told, default=str).encode())
    words = sorted(tokenizer.get_vocab().items()) if hasattr(tokenizer, "get_vocab") else None
    digest.update(b"" if words is None else json.dumps(words).encode())
    return digest.hexdigest()
