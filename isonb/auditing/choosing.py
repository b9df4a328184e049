"""What encodes: a model by its name or folder, one that was passed, or a function; and how it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import nn

from isonb.auditing.defects import Finding
from isonb.auditing.embedders import Embedder, FunctionEmbedder, SentenceEmbedder, TokenEmbedder
from isonb.checks import check_size
from isonb.errors import InputError, fail, in_one_line, needs

POOLS = ("auto", "mean", "cls", "last")
OF_MODELS = ("pool", "max_length", "work", "tokenizer", "prompt")  # options that mean nothing to vectors
USUAL = 256  # tokens that are read of a text by a model whose folder doesn't say


@dataclass(frozen=True)
class Encoding:
    """How a model is used: see :func:`isonb.audit`."""

    pool: str = "auto"
    max_length: int | None = None
    batch_size: int = 32
    device: Any = "cpu"
    work: str | Path | None = None
    progress: bool = True
    tokenizer: Any = None
    prompt: str | None = None

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            fail(InputError, f"pool must be one of {', '.join(POOLS)}", repr(self.pool), "The default is auto.")
        for name in ("max_length", "batch_size"):
            if (value := getattr(self, name)) is not None:
                self.__dict__[name] = check_size(value, name, "Leave it out.")  # numpy's integers as Python's
        try:
            torch.empty(0, device=self.device)
        except (AssertionError, RuntimeError, TypeError) as error:
            got = f"{str(self.device)!r} ({in_one_line(error)})"
            fail(InputError, "device must be one that this machine has", got, "The default is cpu.")

    def refuse(self, names: Sequence[str], where: str, fix: str) -> None:
        """Raise :class:`~isonb.errors.InputError` for one of these options that was chosen, since it has no effect."""
        for field in fields(self):
            if field.name in names and (value := getattr(self, field.name)) != field.default:
                fail(InputError, f"{field.name} must be left out {where}", repr(value), fix)


def is_model(thing: Any) -> bool:
    """Whether texts go in and vectors come out: a name or folder, a module, a model with its tokenizer, a function."""
    if isinstance(thing, str | Path | nn.Module) or (hasattr(thing, "tokenizer") and hasattr(thing, "model")):
        return True
    if isinstance(thing, tuple | list):
        return any(isinstance(part, nn.Module) for part in thing)
    return callable(thing) or callable(getattr(thing, "encode", None))


def embedder_of(model: Any, how: Encoding) -> tuple[Embedder, list[Finding]]:
    """What encodes, and what had to be assumed for it."""
    if not isinstance(model, nn.Module):
        how.refuse(["tokenizer"], "here", "It belongs to a transformers model that is passed alone.")
    embedder, assumed = _chosen(model, how)
    if how.prompt is not None and not isinstance(embedder, SentenceEmbedder):
        fix = "Leave prompt out, and put it before the texts yourself."
        fail(InputError, "a model of sentence-transformers alone has prompts", f"prompt {how.prompt!r}", fix)
    return embedder, assumed


def _chosen(model: Any, how: Encoding) -> tuple[Embedder, list[Finding]]:
    if isinstance(model, str | Path):
        return _named(model, how)
    if isinstance(model, nn.Sequential) and callable(getattr(model, "encode", None)):
        if not hasattr(model, "default_prompt_name") or "sparse" in type(model).__name__.lower():
            fix = "Pass a function from texts to vectors: isonb.audit(function, texts)."
            fail(InputError, "the model must give dense vectors", type(model).__name__, fix)
        how.refuse(["pool", "tokenizer"], "of a model of sentence-transformers", "It has its own.")
        return _sentencewise(model, _called(model), how)
    parts = list(model) if isinstance(model, tuple | list) else [model, how.tokenizer]
    if not isinstance(model, nn.Module | tuple | list) and hasattr(model, "tokenizer") and hasattr(model, "model"):
        parts = [model.model, model.tokenizer]  # an encoder of the lab, a pipeline
    if any(isinstance(part, nn.Module) for part in parts):
        return _tokenwise(_together(model, parts), how)
    if not callable(model):
        fix = "Pass its method: isonb.audit(model.encode, texts)."
        fail(InputError, "the model must be one of sentence-transformers or a function", type(model).__name__, fix)
    how.refuse(["pool", "max_length"], "of a function", "It pools and cuts texts itself.")
    return FunctionEmbedder(model, how.batch_size), []


def _named(name: str | Path, how: Encoding) -> tuple[Embedder, list[Finding]]:
    with needs("isonb.audit of a model", "audit", "transformers", "tqdm"):
        from isonb.models.loading import load
        from isonb.models.locate import knows_modules, other_modules, written
        from isonb.models.sentence_models import load_sentences

    if how.pool == "auto":
        loaded = load_sentences(name, device=how.device)
        if loaded is not None:
            return _sentencewise(loaded[0], written(name), how, loaded[1])
    others = [] if how.pool == "auto" else other_modules(name)
    embedder, assumed = _tokenwise(load(name, device=how.device), how, from_name=True, known=knows_modules(name))
    if others:
        text = f"With pool = {how.pool} the model's own modules ({', '.join(others)}) and any prompts are left out."
        assumed.append(Finding("pooling", "note", text, "Without pool, the vectors are those of its encode."))
    return embedder, assumed


def _sentencewise(model: Any, name: str, how: Encoding, revision: str = "") -> tuple[Embedder, list[Finding]]:
    embedder = SentenceEmbedder(model, name, how.max_length, how.batch_size, revision, how.prompt)
    return embedder, _beyond(embedder, how, "Set max_seq_length in the model if it allows more.")


def _beyond(embedder: Embedder, how: Encoding, advice: str) -> list[Finding]:
    """A note where texts are cut before the length that was asked for."""
    if not how.max_length or how.max_length <= embedder.max_length:
        return []
    text = f"The model cuts texts at {embedder.max_length} tokens, before max_length = {how.max_length}."
    return [Finding("max_length", "note", text, advice)]


def _tokenwise(
    encoder: Any, how: Encoding, from_name: bool = False, known: bool = True
) -> tuple[Embedder, list[Finding]]:
    from isonb.models.text_models import is_decoder

    pool = how.pool
    if pool == "auto":
        pool = "last" if is_decoder(encoder.model.config) else "mean"
    limit = min(how.max_length or USUAL, encoder.max_length)
    embedder = TokenEmbedder(encoder, pool, limit, how.batch_size, from_name)
    assumed = _beyond(embedder, how, "")
    if how.pool == "auto":
        text = f"No pooling is saved with the model: {pool} is assumed."
        if not known:
            text = f"The local copy has no modules.json, and the hub doesn't say whether it has: {pool} is assumed."
        severity = "note" if known else "warning"
        assumed.append(Finding("pooling", severity, text, "Name the one that you use: pool, or --pool."))
    return embedder, assumed


def _together(source: Any, parts: Sequence[Any]) -> Any:
    """A transformers model and its tokenizer, in either order, as an encoder of the lab."""
    with needs("isonb.audit of a model", "audit", "transformers", "tqdm"):
        from isonb.models.loading import Encoder, as_encoder

    if isinstance(source, Encoder):
        return source
    model = next(part for part in parts if isinstance(part, nn.Module))
    tokenizer = next((part for part in parts if callable(part) and hasattr(part, "pad_token_id")), None)
    if tokenizer is None or len(parts) != 2:
        fix = "isonb.audit((model, tokenizer), texts); of any other model pass a function from texts to vectors."
        fail(InputError, "a model must come with its tokenizer", type(model).__name__, fix)
    return as_encoder(model, tokenizer, _called(model))


def _called(model: Any) -> str:
    """A model's name: where it came from, or its class."""
    card = getattr(getattr(model, "model_card_data", None), "base_model", None)
    description = getattr(getattr(model, "config", None), "_name_or_path", None) or card
    return f"{type(model).__name__} {description}" if description else type(model).__name__
