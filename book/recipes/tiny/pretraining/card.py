"""The finished model: safetensors, tokenizer, curve, and a card that says what it is and what it reached."""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isonb.models.catalogue import weights_digest
from isonb.models.locate import find
from isonb.models.text_models import with_dropout
from isonb.options import describe
from pretraining import PretrainSettings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["export"]


def export(out: Path, trainer: Any, fixed: dict[str, Any]) -> Path:
    """Write ``out/model``: weights, configuration, tokenizer, curve and card. The folder appears whole.

    Weights are rounded to float16, so that they can be passed on small, and saved as float32: transformers loads what
    is saved, and a training in float16 without a float32 copy goes astray.

    The configuration gets BERT's dropout back, for fine-tuning on few examples.
    """
    folder, begun, settings, curve = out / "model", out / "model.begun", trainer.budget.settings, trainer.budget.points
    shutil.rmtree(begun, ignore_errors=True)
    model, train, held_out = trainer.model.half().float(), trainer.train_dataset, trainer.eval_dataset.dataset
    reached = trainer.predict(held_out).metrics
    with_dropout(model.config, 0.1)
    model.save_pretrained(begun, save_original_format=False)  # today's names, whatever the start's were
    trainer.processing_class.save_pretrained(begun)
    shutil.copy(out / "curve.csv", begun / "curve.csv")
    on_cpu = f"{settings.threads} thread(s) of {platform.machine()} ({torch.backends.cpu.get_cpu_capability()})"
    values = {
        "name": out.resolve().name,
        "s": settings,
        "c": model.config,
        "r": reached,
        "fixed": fixed,
        "parameters": model.num_parameters(),
        "sha256": weights_digest(begun),
        "about": settings.about or "not stated",
        "sizes": f"{len(train.ids):,} tokens to train on, {len(held_out.ids):,} held out",
        "origin": f"the model `{fixed['start']}`" if settings.start else "random weights",
        "precision": "bfloat16 autocast" if settings.half else "float32",
        "command": _command(out, settings),
        "last": curve.iloc[-1],
        "hardware": on_cpu if settings.device == "cpu" else torch.cuda.get_device_name(),
        "perplexity": math.exp(reached["test_validation_loss"]),
        "unigram": _unigram(train.ids, held_out.ids, model.config.vocab_size),
        "table": _table(curve),
        "history": _history(settings.start),
    }
    values |= {name: text.format(**values) for name, text in (FOLLOW if settings.follow else NO_FOLLOW).items()}
    (begun / "README.md").write_text(CARD.format(**values), encoding="utf-8", newline="\n")
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
    """The command line, without the paths and the hardware of this machine."""
    default, parts = type(settings)(), [f"python book/recipes/tiny/pretrain.py --text TEXT --out {out.resolve().name}"]
    for name, value in describe(settings).items():
        if value != getattr(default, name) and name not in ("about", "threads", "device"):
            value = Path(value).name if name == "start" else value
            parts.append(f"--no-{name}" if value is False else f"--{name.replace('_', '-')} {value}")
    return " ".join(parts)


def _table(curve: pd.DataFrame) -> str:
    shown = curve.iloc[[*range(0, len(curve) - 1, max(1, len(curve) // 10)), len(curve) - 1]]
    rows = [[f"{value:.4g}" if isinstance(value, float) else f"{value}" for value in row] for row in shown.to_numpy()]
    heads = [name.replace("_", " ") for name in shown.columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["--:"] * len(heads), *rows))


def _history(start: str) -> str:
    """What the card of the model before says of its training and of what it reached."""
    card = find(start).folder / "README.md" if start else Path()
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    sections = dict(re.findall(r"^## (.+?)\n\n(.*?)(?=\n## |\Z)", text, re.MULTILINE | re.DOTALL))
    paragraphs = [
        f"### {name}\n\n{sections[name].strip()}" for name in ("Training", "What it reached") if name in sections
    ]
    return "\n\n".join(["## What came before", *paragraphs]) + "\n\n" if paragraphs else ""


FOLLOW = {
    "tasks": "Masked language modelling and next sentence prediction (Devlin et al. 2019)",
    "pairs": """\
In half of the pairs the second is what follows the first, in the others
what follows the first of another row, so that only what they say tells which; a classifier on the pooler (dense and
tanh on `[CLS]`) says it, and its loss is added to that of the hidden tokens.""",
    "reached": """
Held-out pairs: loss {r[test_follow_loss]:.3f} nats (a guess: 0.693), {r[test_follow_accuracy]:.1%} right (50%).
""",
    "limits": """\
`[CLS]` and the pooler were trained on one task, whether one segment follows another, and get
  {r[test_follow_accuracy]:.1%} of it right where a guess gets 50%. Words in common give much of it away. That is a
  start for fine-tuning, no summary of what a sentence means, and it says nothing of a single segment.""",
}
NO_FOLLOW = {
    "tasks": "Masked language modelling",
    "pairs": "The second is what follows the first.",
    "reached": "",
    "limits": "`[CLS]` and the pooler had no task: the pooler's weights are those it began with.",
}
CARD = """\
# {name}: a small BERT encoder

{c.num_hidden_layers} layers, width {c.hidden_size}, {c.num_attention_heads} heads, {c.max_position_embeddings}
positions, {parameters:,} parameters, WordPiece vocabulary of {c.vocab_size}. Weights in float32
safetensors (numbers that float16 holds), sha256 `{sha256}`.

It is there to run experiments on embedding spaces in seconds on a CPU, and to be fine-tuned in them. isonb loads it
from its folder, as float32.

## Text

{about}

{sizes} (sha256 of all paragraphs
`{fixed[text]}`).
The text isn't in this folder.

## Training

{tasks} from
{origin}:
15% of the tokens are predicted, of these 80% are hidden, 10% replaced and 10% left. Every row is full and begins at a
sentence. A row whose paragraph has room for it is a pair of segments, each of which begins at a sentence, lies in one
paragraph and is cut after a number of tokens drawn at random. {pairs}
{s.batch} rows of {s.length} tokens an update; one in four, drawn at random, has half as many of twice the length.
AdamW, peak learning rate {s.learning_rate:g}, up in a line over {s.warmup:.0%} of the budget, then down in a line to
zero; gradient norm at most 1; no dropout; {precision}.

    {command}

{last.step:,} steps, {last.tokens:,} tokens, {last.minutes:.0f} minutes of work on {hardware}, seed {s.seed}.

## What it reached

On the whole held-out text (rows of {s.length}, float16 weights): loss {r[test_validation_loss]:.3f} nats, perplexity
{perplexity:.1f}, {r[test_validation_accuracy]:.1%} of the hidden tokens guessed right.
A guess by frequency alone has loss {unigram:.3f}.
{reached}
{table}

The curve is measured on a fixed sample of the held-out text; all points are in `curve.csv`. The learning rate falls to
zero at the end, which by itself flattens a curve; it jumps where the budget was changed under way.

{history}## What it is not good for

- Its sentence vectors aren't trained to be compared: a cosine between them says little. Fine-tune it first.
- {limits}
- It is far below BERT-base in everything; a score of it says how methods compare, not how good a method can be.
- It knows the text above and nothing else: no other kind of text, no other language, no case. It has its biases.
- Not for use in decisions about people, and not a source of facts.
"""
