"""Encoders by name, and the hidden states they give.

``load`` takes the name of an embedded model (its weights come with a Python package, so no network is needed), a folder
that holds a model in the Hugging Face layout, or a hub id. Weights are read from safetensors only and no code from a
model's repository is ever run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from isonb.checks import InputError
from isonb.lab.embedded import EMBEDDED, ModelError, embedded_folder, weights_digest

__all__ = ["EMBEDDED", "Encoded", "Encoder", "ModelError", "encode", "hidden_states", "load", "load_for_training"]

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
UNLIMITED = 1_000_000  # tokenizers without a limit report about 1e30


@dataclass(frozen=True)
class Encoder:
    """A tokenizer and a float32 model, frozen and in evaluation mode unless it was loaded for training.

    ``revision`` is a hub commit or the weights' sha256.
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
        """The longest input in tokens, by the tokenizer's limit or else the model's position table."""
        limit = int(self.tokenizer.model_max_length)
        return limit if limit < UNLIMITED else int(getattr(self.model.config, "max_position_embeddings", 512))


@dataclass(frozen=True)
class Encoded:
    """Hidden states (L+1, N, T, d) of N texts padded to T tokens, mask (N, T) and input_ids (N, T), on the CPU.

    Row 0 of ``hidden_states`` is the embedding output. Positions off the mask hold zeros.
    """

    hidden_states: Tensor
    mask: Tensor
    input_ids: Tensor


def load(name: str | Path, *, revision: str | None = None, device: str | torch.device = "cpu") -> Encoder:
    """The encoder called ``name``: an embedded model ("minilm", "tiny"), a folder, or a hub id such as "org/model".

    An embedded model and a folder are read from the disk alone. A hub id is looked for in the local Hugging Face cache
    and then downloaded (``revision`` pins it); a bare one without an organisation is looked for in the cache only.
    Raises :class:`ModelError` for a name that is none of the three, for weights that aren't safetensors and for
    embedded weights with another checksum; :class:`~isonb.checks.DependencyError` when the carrying package is missing.

    >>> encoder = load("minilm")
    >>> encoder.layers, encoder.dim
    (6, 384)
    """
    encoder = _load(name, revision)
    encoder.model.eval().requires_grad_(False).to(device)
    return encoder


def load_for_training(
    name: str | Path,
    dropout: float | None = None,
    device: str | torch.device = "cpu",
    *,
    revision: str | None = None,
) -> Encoder:
    """The encoder called ``name`` as :func:`load` finds it, to be trained: training mode, every parameter free.

    ``dropout`` replaces every dropout probability of the model, in the embeddings, the attention weights and the
    layers; None keeps the model's own. Raises what :func:`load` raises, and :class:`~isonb.checks.InputError` for a
    probability outside [0, 1).

    >>> encoder = load_for_training("tiny", dropout=0.0)
    >>> encoder.model.training, all(weight.requires_grad for weight in encoder.model.parameters())
    (True, True)
    """
    if dropout is not None and not 0 <= dropout < 1:
        raise InputError(f"dropout must be a probability in [0, 1); got {dropout!r}. None keeps the model's own.")
    encoder = _load(name, revision, dropout)
    encoder.model.train().requires_grad_(True).to(device)
    return encoder


def _load(name: str | Path, revision: str | None, dropout: float | None = None) -> Encoder:
    if str(name) in EMBEDDED:
        folder, digest = embedded_folder(EMBEDDED[str(name)])
        return _from_pretrained(folder, str(name), digest, dropout)
    if str(name) and Path(name).expanduser().is_dir():
        folder = Path(name).expanduser().resolve()
        return _from_pretrained(folder, str(name), weights_digest(folder), dropout)
    if isinstance(name, Path) or not HUB_ID.fullmatch(name):
        _reject(name, "it is no folder and can't be a hub id")
    return _from_pretrained(name, name, revision, dropout)


@torch.no_grad()
def hidden_states(encoder: Encoder, input_ids: Tensor, mask: Tensor) -> Tensor:
    """All hidden states (L+1, N, T, d) of one batch, as the model gives them (padded positions included).

    Shapes: ``input_ids`` (N, T), ``mask`` (N, T), True or 1 marks a real token. The result stays on the model's device.
    """
    model = encoder.model.get_encoder() if encoder.model.config.is_encoder_decoder else encoder.model
    device = next(model.parameters()).device
    out = model(
        input_ids=input_ids.to(device),
        attention_mask=mask.long().to(device),
        output_hidden_states=True,
        return_dict=True,
    )
    return torch.stack(tuple(out.hidden_states))


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
    Raises :class:`~isonb.checks.InputError` for no texts, a bare string, or a text without any token.

    >>> states = encode(load("minilm"), ["A cone.", "A ball of yarn."])
    >>> tuple(states.hidden_states.shape), states.mask.sum(-1).tolist()
    ((7, 2, 7, 384), [5, 7])
    """
    from tqdm import tqdm

    _check_texts(texts, batch_size)
    limit = max_length or encoder.max_length
    batch = encoder.tokenizer(list(texts), padding=True, truncation=True, max_length=limit, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"].bool()
    lengths = mask.sum(-1)
    if not bool(lengths.all()):
        empty = int((lengths == 0).nonzero()[0])
        raise InputError(f"every text must give at least one token; got none for text {empty}. Drop the empty text.")
    states = torch.zeros(encoder.layers + 1, *ids.shape, encoder.dim)
    order = torch.split(torch.argsort(lengths, descending=True, stable=True), batch_size)
    for rows in tqdm(order, desc=f"encode with {encoder.name}", leave=False, disable=None if progress else True):
        width = int(lengths[rows].max())
        real = mask[rows, :width]
        found = hidden_states(encoder, ids[rows, :width], real).cpu()
        states[:, rows, :width] = torch.where(real[..., None], found, found.new_zeros(()))
    return Encoded(states, mask, ids)


def _check_texts(texts: Sequence[str], batch_size: int) -> None:
    if isinstance(texts, str):
        raise InputError("texts must be a sequence of strings; got one string. Pass [text].")
    if not texts or not all(isinstance(text, str) for text in texts):
        got = "none" if not texts else next(type(text).__name__ for text in texts if not isinstance(text, str))
        raise InputError(f"texts must be one or more strings; got {got}. Pass a list of str.")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1; got {batch_size}. Try 32.")


def _from_pretrained(source: str | Path, name: str, revision: str | None, dropout: float | None) -> Encoder:
    local = isinstance(source, Path)
    with _quiet():
        try:
            tokenizer, model = _read(source, None if local else revision, dropout, offline=True)
        except OSError as missing:
            if local:
                _reject(name, _first_line(missing), missing)
            if "/" not in name:
                _reject(name, "not in the local cache; to download a model, write organisation/model", missing)
            tokenizer, model = _read(source, revision, dropout, offline=False)
    if tokenizer.pad_token is None:  # decoders: padding stands on the right and off the mask, so any token serves
        tokenizer.pad_token = tokenizer.eos_token
    revision = revision if local else getattr(model.config, "_commit_hash", None) or revision or "unknown"
    return Encoder(tokenizer, model, name, str(revision))


def _read(source: str | Path, revision: str | None, dropout: float | None, *, offline: bool) -> tuple[Any, Any]:
    """Tokenizer and model; OSError (a file is missing) is the caller's while offline, the rest a ModelError."""
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    common: dict[str, Any] = {"local_files_only": offline, "trust_remote_code": False}
    common |= {} if revision is None else {"revision": revision}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, padding_side="right", **common)
        if dropout is not None:
            common["config"] = _with_dropout(AutoConfig.from_pretrained(source, **common), dropout)
        return tokenizer, AutoModel.from_pretrained(source, use_safetensors=True, dtype=torch.float32, **common)
    except OSError as error:
        if offline:
            raise
        _reject(source, _first_line(error), error)
    except (ValueError, ImportError) as error:
        _reject(source, _first_line(error), error)


def _with_dropout(config: Any, dropout: float) -> Any:
    """``config`` with every dropout probability replaced, whatever the architecture calls it."""
    for key in config.to_dict():
        if "dropout" in key or key.endswith("_pdrop"):
            setattr(config, key, dropout)
    return config


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]


def _reject(name: object, why: str, cause: BaseException | None = None) -> NoReturn:
    accepted = f"an embedded name ({', '.join(sorted(EMBEDDED))}), a folder with safetensors weights, or a hub id"
    raise ModelError(f"the model must be {accepted}; got {str(name)!r}: {why}") from cause


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hold back transformers' load report and bars inside the block, and put its settings back after it."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
