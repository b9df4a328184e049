"""A pretraining run that goes on from a finished model: its tokenizer, its weights, and what its card says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from isonb.checks import InputError, fail
from isonb.lab.encoders.catalogue import weights_digest
from isonb.lab.encoders.locate import find, reject

__all__ = ["digest", "history", "load_weights", "tokenizer"]

HEADS = ("bert.pooler.", "cls.seq_relationship.")  # what only next sentence prediction trains


def digest(start: str) -> str:
    """sha256 of the weights that the run begins with; "" when it begins with random ones."""
    return weights_digest(_folder(start)) if start else ""


def tokenizer(start: str) -> Any:
    """The model's own tokenizer (``tokenizers.Tokenizer``)."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(_folder(start) / "tokenizer.json"))


@torch.no_grad()
def load_weights(start: str, model: Any) -> None:
    """Put the model's weights into ``model``, a fresh one of the same shape.

    What next sentence prediction alone trains stays fresh unless the model has learnt it. Raises
    :class:`~isonb.lab.encoders.catalogue.ModelError` for a model with other parameters.
    """
    from safetensors.torch import load_file

    found = {name: tensor for file in _folder(start).glob("*.safetensors") for name, tensor in load_file(file).items()}
    learnt = any(name.startswith(HEADS[1]) for name in found)
    for name, parameter in model.named_parameters():
        if name.startswith(HEADS) and not learnt:
            continue
        if name not in found or found[name].shape != parameter.shape:
            got = f"{tuple(found[name].shape)}" if name in found else "none"
            reject(start, f"{name} must have shape {tuple(parameter.shape)}, and has {got}; set layers, width, ...")
        parameter.copy_(found[name])


def history(start: str) -> str:
    """What the model's card says of its training and of what it reached, as a section of the next card."""
    try:
        card = (_folder(start) / "README.md").read_text(encoding="utf-8")
    except OSError:
        return ""
    parts = dict(re.findall(r"^## (.+?)\n\n(.*?)(?=\n## |\Z)", card, re.MULTILINE | re.DOTALL))
    told = [f"### {name}\n\n{parts[name].strip()}" for name in ("Training", "What it reached") if name in parts]
    return "\n\n".join(["## What came before", *told]) + "\n\n" if told else ""


def _folder(start: str) -> Path:
    source = find(start)
    if source.config.model_type != "bert" or not (source.folder / "tokenizer.json").is_file():
        fail(InputError, "start must be a BERT encoder with tokenizer.json", start, "Pass 'tiny' or such a folder.")
    return source.folder
