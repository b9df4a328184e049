"""A model of sentence-transformers: it encodes itself, and the layers are those of its first module."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Container, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.encoding import Batch, Counts, Embedder
from isonb.auditing.encoding.tokens import contents, counted, room_for_words
from isonb.auditing.texts import within


class SentenceEmbedder(Embedder):
    """What ``model.encode`` gives: default prompt, every module, truncation.

    ``model``: a ``SentenceTransformer``, which is left as it was. ``name``: as the report calls it. ``max_length``:
    fewer tokens than the model's own longest input; None: the model's own. ``batch_size``: texts at a time.
    ``revision``: of the folder that it was loaded from, None where the model was passed.
    """

    told = "as sentence-transformers encodes"

    def __init__(self, model: Any, name: str, max_length: int | None, batch_size: int, revision: str | None) -> None:
        self.model, self.name, self.batch_size, self.revision = model, name, batch_size, revision
        own = getattr(model, "max_seq_length", None)
        limits = [limit for limit in (own, max_length) if limit is not None]
        self.max_length = min(limits) if limits else 0
        self._asked = max_length if max_length is not None and (own is None or max_length < own) else None
        tokenizer = getattr(model, "tokenizer", None)
        self.tokenizer = tokenizer if hasattr(tokenizer, "unk_token_id") else None  # others have words of their own
        if self._asked is not None and self.tokenizer is not None:
            room_for_words(self.tokenizer, self._asked)

    def together(self, texts: Sequence[str]) -> Tensor:
        return self._encoded(texts, len(texts))

    def batches(self, texts: Sequence[str], layered: Container[int]) -> Iterator[Batch]:
        """The vectors as ``encode`` gives them; the layers of some texts in a pass of their own."""
        for start in range(0, len(texts), self.batch_size):
            rows = list(range(start, min(start + self.batch_size, len(texts))))
            seen = [row for row in rows if row in layered]
            layers = self._layers([texts[row] for row in seen]) if seen else None
            vectors = self._encoded([texts[row] for row in rows], self.batch_size)
            yield Batch(rows, vectors, seen if layers is not None else [], layers)

    def counts(self, texts: Sequence[str]) -> Counts:
        if self.tokenizer is None or not self.max_length:
            return Counts()
        prompted = [(self._prompt() or "") + text for text in self._read(texts)]
        ids = self.tokenizer(prompted, truncation=True, max_length=self.max_length)["input_ids"]
        return counted(ids, self.tokenizer, self.max_length)

    def fingerprint(self) -> str:
        """Of the model's folder, or of all that was passed."""
        model = self.model
        made = self.revision or contents(model, getattr(model, "tokenizer", None))
        settings = [model.prompts, model.default_prompt_name, model.truncate_dim, self.max_length]
        return hashlib.sha256(json.dumps([self.name, made, settings], default=str).encode()).hexdigest()

    def _prompt(self) -> str | None:
        name = self.model.default_prompt_name
        return None if name is None else str(self.model.prompts[name])

    def _read(self, texts: Sequence[str]) -> list[str]:
        """The texts as far as the model reads them; a model without a tokenizer of its own may have no limit."""
        return within(texts, self.max_length) if self.max_length and math.isfinite(self.max_length) else list(texts)

    def _encoded(self, texts: Sequence[str], size: int) -> Tensor:
        with self._as_asked():
            read = self._read(texts)
            vectors = self.model.encode(read, batch_size=size, convert_to_tensor=True, show_progress_bar=False)
        return torch.as_tensor(vectors).float().cpu()

    def _layers(self, texts: Sequence[str]) -> Tensor | None:
        """Every layer of the first module (L+1, B, d), pooled as the model pools; None where it has none."""
        from sentence_transformers.sentence_transformer.modules import Pooling
        from sentence_transformers.util import batch_to_device

        modules = list(self.model.children())
        inner = getattr(modules[0], "auto_model", None)
        pooling = next((module for module in modules if isinstance(module, Pooling)), None)
        if inner is None or pooling is None or not hasattr(inner, "config"):
            return None
        with self._as_asked(), torch.no_grad(), _all_layers(inner.config):
            features = batch_to_device(self.model.preprocess(list(texts), prompt=self._prompt()), self.model.device)
            seen = modules[0](features)
            states = seen.get("all_layer_embeddings")
            if states is None:
                return None
            states = [*states[:-1], seen["token_embeddings"]]
            pooled = [pooling({**seen, "token_embeddings": state})["sentence_embedding"] for state in states]
        return torch.stack(pooled).float().cpu()

    @contextlib.contextmanager
    def _as_asked(self) -> Iterator[None]:
        """In evaluation mode and at the longest input asked for, inside the block."""
        flags = [(module, module.training) for module in self.model.modules()]
        own = getattr(self.model, "max_seq_length", None)
        try:
            self.model.eval()
            if self._asked is not None:
                self.model.max_seq_length = self._asked
            yield
        finally:
            if self._asked is not None:
                self.model.max_seq_length = own
            for module, flag in flags:
                module.training = flag


@contextlib.contextmanager
def _all_layers(config: Any) -> Iterator[None]:
    before = config.output_hidden_states
    config.output_hidden_states = True
    try:
        yield
    finally:
        config.output_hidden_states = before
