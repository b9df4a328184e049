"""Encoders by name, and the hidden states they give.

``load`` takes the name of an embedded model (its weights come with a Python package, so no network is needed), a folder
that holds a model in the Hugging Face layout, or a hub id; :mod:`isonb.models.locate` says where it looks.
Weights are read from safetensors only and no code from a model's repository is ever run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_size
from isonb.errors import InputError, fail, in_one_line
from isonb.integrations.hidden_states import encoder_of
from isonb.models.locate import find, reject
from isonb.models.text_models import check_room, input_limit, quiet, reads_text, with_dropout


@dataclass(frozen=True)
class Encoder:
    """A tokenizer and a float32 model, frozen and in evaluation mode unless it was loaded for training.

    ``revision`` is a hub commit or the fingerprint of a folder.
    """

    tokenizer: Any
    model: Any
    name: str
    revision: str

    @property
    def layers(self) -> int:
        """Transformer layers L; hidden states run from 0 (the embedding output) to L."""
        return int(self.model.config.num_hidden_layers)

    @property
    def dim(self) -> int:
        """Width d of the hidden states."""
        return int(self.model.config.hidden_size)

    @property
    def max_length(self) -> int:
        """The longest input in tokens: the tokenizer's limit or the model's position table, whichever is shorter."""
        return input_limit(self.model.config, self.tokenizer)


@dataclass(frozen=True)
class Encoded:
    """Hidden states (L+1, N, T, d) of N texts padded to T tokens, mask (N, T) and input_ids (N, T), on the CPU.

    Row 0 of ``hidden_states`` is the embedding output. Positions off the mask hold zeros.
    """

    hidden_states: Tensor
    mask: Tensor
    input_ids: Tensor


def load(name: str | Path, *, device: str | torch.device = "cpu") -> Encoder:
    """The encoder called ``name``: an embedded model ("minilm", "tiny"), a folder, or a hub id such as "org/model".

    An embedded model and a folder are read from the disk alone. A hub id is looked for below the folder that the
    environment variable ISONB_MODELS names, in the local Hugging Face cache and then on the hub; a bare one without an
    organisation is never looked for on the hub.
    Raises :class:`ModelError` for a name that :func:`find` refuses, for weights that can't be read or don't fill the
    model, and for embedded weights with another checksum; :class:`~isonb.errors.DependencyError` when the carrying
    package is missing.

    >>> encoder = load("minilm")
    >>> encoder.layers, encoder.dim
    (6, 384)
    """
    encoder = _load(name)
    encoder.model.eval().requires_grad_(False).to(device)
    return encoder


def load_for_training(name: str | Path, dropout: float | None = None, device: str | torch.device = "cpu") -> Encoder:
    """The encoder called ``name`` as :func:`load` finds it, to be trained: training mode, every parameter free.

    ``dropout`` replaces every dropout probability of the model, in the embeddings, the attention weights and the
    layers; None keeps the model's own. Raises what :func:`load` raises, and :class:`~isonb.errors.InputError` for a
    probability outside [0, 1).

    >>> encoder = load_for_training("tiny", dropout=0.0)
    >>> encoder.model.training, all(weight.requires_grad for weight in encoder.model.parameters())
    (True, True)
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise InputError(f"dropout must be a probability in [0, 1); got {dropout!r}. None keeps the model's own.")
    encoder = _load(name, dropout)
    encoder.model.train().requires_grad_(True).to(device)
    return encoder


def as_encoder(model: Any, tokenizer: Any, name: str) -> Encoder:
    """A loaded transformers model and its tokenizer, as they are; of a task's model or an encoder-decoder the encoder.

    Raises :class:`~isonb.errors.InputError` for a model that doesn't read tokens of text.
    """
    encoder = encoder_of(model)
    if not reads_text(encoder.config) and encoder.main_input_name != "input_ids":
        fail(InputError, "the model must read tokens of text", type(model).__name__, "Pass a function of texts.")
    return Encoder(tokenizer, encoder, name, "")


def _load(name: str | Path, dropout: float | None = None) -> Encoder:
    """The model with its weights. Only a pooler may be missing from them: it then starts anew."""
    from transformers import AutoModel

    source = find(name)
    digest = source.weights()
    if dropout is not None:
        with_dropout(source.config, dropout)
    with quiet():
        try:
            model, report = AutoModel.from_pretrained(
                source.folder,
                config=source.config,
                use_safetensors=True,
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        except Exception as error:  # of transformers, of safetensors, of the system
            reject(source.name, in_one_line(error), error)
    if absent := sorted(weight for weight in report["missing_keys"] if "pooler" not in weight):
        reject(source.name, f"its weights lack {len(absent)} of the model's parameters, such as {absent[0]}")
    return Encoder(source.tokenizer, model, source.name, digest)


class States(NamedTuple):
    """Hidden states (L+1, B, T, d) of a batch, which tokens are real (B, T), and which of these aren't special ones.

    Where a sentence has special tokens alone, they count as words.
    """

    hidden: Tensor
    mask: Tensor
    words: Tensor


@dataclass(frozen=True)
class TokenizedSentences:
    """Token numbers of sentences and whether each is a word (not a special token)."""

    ids: list[list[int]]
    words: list[list[bool]]
    pad: int

    @classmethod
    def read(cls, encoder: Encoder, texts: Sequence[str], max_length: int | None = None) -> TokenizedSentences:
        """Tokenise, cut at ``max_length`` tokens or the model's limit. InputError for a text without any token, and for
        a ``max_length`` that special tokens fill.
        """
        limit = encoder.max_length
        if max_length is not None:
            limit = min(check_size(max_length, "max_length", "Leave it out for the model's own limit."), limit)
        check_room(encoder.tokenizer, limit)
        tokens = encoder.tokenizer(list(texts), truncation=True, max_length=limit, return_special_tokens_mask=True)
        for text, ids in zip(texts, tokens["input_ids"], strict=True):
            if not ids:
                fail(InputError, "every sentence must give at least one token", repr(text), "Drop the empty sentence.")
        parts = [[not s or all(row) for s in row] for row in tokens["special_tokens_mask"]]
        return cls(tokens["input_ids"], parts, encoder.tokenizer.pad_token_id)

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Sequence[int], device: Any) -> dict[str, Tensor]:
        """``input_ids``, ``attention_mask`` and ``words`` (B, T) of some sentences, padded on the right."""
        width = max(len(self.ids[row]) for row in rows)
        gaps = {row: width - len(self.ids[row]) for row in rows}
        padded = {
            "input_ids": [self.ids[row] + [self.pad] * gaps[row] for row in rows],
            "attention_mask": [[1] * len(self.ids[row]) + [0] * gaps[row] for row in rows],
            "words": [self.words[row] + [False] * gaps[row] for row in rows],
        }
        return {name: torch.tensor(value, device=device) for name, value in padded.items()}

    def by_length(self, size: int) -> list[list[int]]:
        """Row numbers in batches of ``size``, longest sentences first."""
        order = sorted(range(len(self)), key=lambda row: -len(self.ids[row]))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def passes(
        self, encoder: Encoder, size: int, name: str, progress: bool = True
    ) -> Iterator[tuple[list[int], States]]:
        """Each batch of :meth:`by_length` with its states, on the model's device. The bar shows on a terminal only."""
        from tqdm import tqdm

        device = next(encoder.model.parameters()).device
        for rows in tqdm(self.by_length(size), desc=name, leave=False, disable=None if progress else True):
            yield rows, forward(encoder.model, self.batch(rows, device))


def forward(model: Any, batch: dict[str, Tensor]) -> States:
    """One pass of a transformers model, with its graph if there is to be one."""
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    out = model(**inputs, output_hidden_states=True, return_dict=True)
    hidden = torch.stack((*out.hidden_states[:-1], out.last_hidden_state))
    return States(hidden, batch["attention_mask"].bool(), batch["words"])


@torch.no_grad()
def hidden_states(encoder: Encoder, input_ids: Tensor, mask: Tensor) -> Tensor:
    """All hidden states (L+1, N, T, d) of one batch, as the model gives them (padded positions included).

    Shapes: ``input_ids`` (N, T), ``mask`` (N, T), True or 1 marks a real token. The result stays on the model's device.
    """
    device = next(encoder.model.parameters()).device
    real = mask.to(device)
    return forward(
        encoder.model, {"input_ids": input_ids.to(device), "attention_mask": real.long(), "words": real}
    ).hidden


@torch.no_grad()
def encode(
    encoder: Encoder,
    texts: Sequence[str],
    batch_size: int = 32,
    max_length: int | None = None,
    progress: bool = True,
) -> Encoded:
    """Tokenise ``texts`` and collect every layer.

    Texts are cut at ``max_length`` tokens (None: the model's limit).
    Batches are formed by length, to waste little on padding, and put back in order: neither the order of the texts nor
    ``batch_size`` changes a result by more than float rounding. The bar shows on a terminal only.
    Raises :class:`~isonb.errors.InputError` for no texts, a bare string, a text without any token, or a ``max_length``
    that special tokens fill.

    >>> states = encode(load("minilm"), ["A cone.", "A ball of yarn."])
    >>> tuple(states.hidden_states.shape), states.mask.sum(-1).tolist()
    ((7, 2, 7, 384), [5, 7])
    """
    if isinstance(texts, str) or not len(texts) or not all(isinstance(text, str) for text in texts):
        odd = next((text for text in texts if not isinstance(text, str)), None)
        got = "one string" if isinstance(texts, str) else "none" if odd is None else type(odd).__name__
        fail(InputError, "texts must be one or more strings in a list", got, "Pass a list of str.")
    batch_size = check_size(batch_size, "batch_size", "Try 32.")
    sentences = TokenizedSentences.read(encoder, texts, max_length)
    batch = sentences.batch(range(len(sentences)), "cpu")
    ids, mask = batch["input_ids"], batch["attention_mask"].bool()
    states = torch.zeros(encoder.layers + 1, *ids.shape, encoder.dim)
    for rows, passed in sentences.passes(encoder, batch_size, f"encode with {encoder.name}", progress):
        real = torch.where(passed.mask[..., None], passed.hidden, 0.0)
        states[:, rows, : real.shape[2]] = real.cpu()
    return Encoded(states, mask, ids)
