"""The finished model: safetensors, tokenizer, curve, and a card that says what it is and what it reached."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import torch

from isonb.models.catalogue import weights_digest
from isonb.models.text_models import with_dropout
from isonb.options import describe
from pretraining import PretrainSettings
from pretraining.training import curve


def export(out: Path, trainer: Any, settings: PretrainSettings, fixed: dict[str, Any]) -> Path:
    """Write ``out/model``: weights, configuration, tokenizer, curve and card. The folder appears whole.

    Weights are rounded to float16, so that they can be passed on small, and saved as float32: transformers loads what
    is saved, and a training in float16 without a float32 copy goes astray.

    The configuration gets BERT's dropout back, for fine-tuning on few examples.
    """
    folder, begun, points = out / "model", out / "model.begun", curve(trainer.state.log_history)
    shutil.rmtree(begun, ignore_errors=True)
    model, train, held_out = trainer.model.half().float(), trainer.train_dataset, trainer.eval_dataset.dataset
    reached = trainer.predict(held_out).metrics
    with_dropout(model.config, 0.1)
    model.save_pretrained(begun, save_original_format=False)  # today's names, whatever the start's were
    trainer.processing_class.save_pretrained(begun)
    points.to_csv(begun / "curve.csv", index=False, na_rep="nan", float_format="%.6g", lineterminator="\n")
    values = {
        "name": out.resolve().name,
        "c": model.config,
        "r": reached,
        "fixed": fixed,
        "parameters": model.num_parameters(),
        "sha256": weights_digest(begun),
        "about": settings.about or "not stated",
        "sizes": f"{len(train.ids):,} tokens to train on, {len(held_out.ids):,} held out",
        "origin": f"the model `{fixed['start']}`" if settings.start else "random weights",
        "command": _command(out, settings),
        "last": points.iloc[-1],
        "perplexity": math.exp(reached["test_validation_loss"]),
        "unigram": _unigram(train.ids, held_out.ids, model.config.vocab_size),
    }
    card = Path(__file__).with_name("card.md").read_text(encoding="utf-8").format(**values)
    (begun / "README.md").write_text(card, encoding="utf-8", newline="\n")
    for file in begun.iterdir():  # made for their owner alone
        file.chmod(0o644)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(begun, folder)
    return folder


def _unigram(train: torch.Tensor, held_out: torch.Tensor, vocabulary: int) -> float:
    """The loss of a guess by frequency alone: the level that a model must leave to have learnt."""
    counts = torch.bincount(train, minlength=vocabulary).double() + 1.0
    return -(counts / counts.sum()).log()[held_out].mean().item()


def _command(out: Path, settings: PretrainSettings) -> str:
    """The command line, without the paths of this machine."""
    default, parts = type(settings)(), [f"python book/recipes/tiny/pretrain.py --text TEXT --out {out.resolve().name}"]
    for name, value in describe(settings).items():
        if value != getattr(default, name) and name != "about":
            value = Path(value).name if name == "start" else value
            parts.append(f"--no-{name}" if value is False else f"--{name.replace('_', '-')} {value}")
    return " ".join(parts)
