"""The finished model: float16 safetensors, tokenizer and a card that says what it is and what it reached."""

from __future__ import annotations

import math
import os
import platform
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isonb.lab.encoders.catalogue import weights_digest
from isonb.lab.pretraining import masking, mlm, warm_start
from isonb.lab.pretraining.checkpoints import replace_text

if TYPE_CHECKING:
    from isonb.lab.pretraining.training import Run

__all__ = ["export"]

FLAT = 0.005  # nats that the validation loss may still lose over the last quarter and be called flat


def export(run: Run) -> Path:
    """Write ``out/model``: weights, configuration, tokenizer, curve and card. The folder appears whole."""
    out = Path(run.config.out).expanduser()
    folder, part = out / "model", out / "model.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    masking.wrap_tokenizer(run.tokenizer, part, run.model.config.max_position_embeddings)
    _save_weights(run, part / "model.safetensors")
    config = run.model.config
    config.architectures, config.dtype = [type(run.model).__name__], torch.float16
    config.save_pretrained(part)
    shutil.copy(out / "curve.csv", part / "curve.csv")
    replace_text(part / "README.md", _card(run, part))
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(part, folder)
    return folder


@torch.no_grad()
def _save_weights(run: Run, path: Path) -> None:
    """Round the parameters to float16 and save them, tied ones once. The model keeps the rounded values."""
    from safetensors.torch import save_file

    tensors = {}
    for name, parameter in run.model.named_parameters():
        tensors[name] = parameter.cpu().half().contiguous()
        parameter.copy_(tensors[name])
    if not run.config.follow:
        tensors |= _pooler(run)
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def _pooler(run: Run) -> dict[str, Tensor]:
    """BERT's pooler where no task trains it: a seeded rotation, so that loading draws nothing."""
    width = run.config.width
    generator = torch.Generator().manual_seed(run.config.seed)
    rotation = torch.linalg.qr(torch.randn(width, width, generator=generator)).Q
    bias = torch.zeros(width).half()
    return {"bert.pooler.dense.weight": rotation.half().contiguous(), "bert.pooler.dense.bias": bias}


def _card(run: Run, folder: Path) -> str:
    config, model = run.config, run.model.config
    score = mlm.validate(run.model, run.held, config.length, config.device, half=False, sample=None)
    values = {
        "name": Path(config.out).expanduser().resolve().name,
        "layers": config.layers,
        "width": config.width,
        "heads": config.heads,
        "positions": model.max_position_embeddings,
        "vocabulary": model.vocab_size,
        "parameters": f"{sum(p.numel() for p in run.model.parameters()):,}",
        "megabytes": f"{(folder / 'model.safetensors').stat().st_size / 1e6:.1f}",
        "sha256": weights_digest(folder),
        "about": config.about or "not stated",
        "train_tokens": f"{len(run.train.ids):,}",
        "held_tokens": f"{len(run.held.ids):,}",
        "fingerprint": run.fingerprint,
        "command": _command(run),
        "steps": f"{run.step:,}",
        "tokens": f"{run.tokens:,}",
        "passes": f"{run.tokens / len(run.train.ids):.1f}",
        "minutes": f"{run.clock.elapsed / 60:.0f}",
        "hardware": _hardware(config.device, config.threads),
        "batch": config.batch * config.length,
        "length": config.length,
        "double": 2 * config.length,
        "rate": config.learning_rate,
        "warmup": f"{config.warmup:.0%}",
        "precision": "bfloat16 autocast" if config.half else "float32",
        "seed": config.seed,
        "loss": f"{score.loss:.3f}",
        "perplexity": f"{math.exp(score.loss):.1f}",
        "hits": f"{score.hits:.1%}",
        "unigram": f"{_unigram(run):.3f}",
        "budgets": _budgets(run.budgets),
        "curve": _table(run.curve, config.follow),
        "flat": _flatness(run.curve),
        "origin": _origin(run),
        "history": warm_start.history(config.start) if config.start else "",
    }
    values |= _follow(score) if config.follow else NO_FOLLOW
    return _wrapped(CARD.format(**values))


def _origin(run: Run) -> str:
    if not run.config.start:
        return "random weights"
    return f"the weights with sha256 `{warm_start.digest(run.config.start)}` (see *What came before*)"


def _follow(score: mlm.Score) -> dict[str, str]:
    """What the card says of next sentence prediction."""
    figures = {"follow_loss": f"{score.follow_loss:.3f}", "follow_hits": f"{score.follow_hits:.1%}"}
    return {name: text.format(**figures) for name, text in FOLLOW.items()}


def _wrapped(card: str) -> str:
    """Fill plain paragraphs and list items to 110 columns; tables, headings and commands stay as they are."""
    blocks = card.rstrip().split("\n\n")
    plain = [not block.startswith(("#", "|", "    ")) for block in blocks]
    filled = [_fill(block) if flows else block for block, flows in zip(blocks, plain, strict=True)]
    return "\n\n".join(filled) + "\n"


def _fill(block: str) -> str:
    options: dict[str, Any] = {"width": 110, "break_long_words": False, "break_on_hyphens": False}
    if not block.startswith("- "):
        return textwrap.fill(block, **options)
    items = block.removeprefix("- ").split("\n- ")
    return "\n".join(textwrap.fill("- " + item, subsequent_indent="  ", **options) for item in items)


def _command(run: Run) -> str:
    config = run.config
    budget = [f"--{name} {getattr(config, name):g}" for name in ("minutes", "steps") if getattr(config, name)]
    parts = ["--text TEXT", f"--out {Path(config.out).name}", *budget, f"--seed {config.seed}"]
    parts += [f"--batch {config.batch}", f"--length {config.length}", f"--learning-rate {config.learning_rate:g}"]
    parts += [] if config.follow else ["--no-follow"]
    parts += [f"--start {Path(config.start).name}"] if config.start else []
    return " ".join(("python -m isonb.lab.pretraining.pretrain", *parts))


def _hardware(device: str, threads: int) -> str:
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    kind = f"{platform.machine()} CPU ({torch.backends.cpu.get_cpu_capability()})"
    return f"{threads} thread{'s' * (threads > 1)} of an {kind}"


def _unigram(run: Run) -> float:
    """Loss on the held-out text of a guess by frequency alone: the level that a model must leave to have learnt."""
    size = run.model.config.vocab_size
    counts = torch.bincount(run.train.ids, minlength=size).double() + 1.0
    return float(-(counts / counts.sum()).log()[run.held.ids].mean())


def _budgets(budgets: Sequence[Sequence[float | None]]) -> str:
    """A sentence if the budget was changed under way, since the learning rate jumped there."""
    if len(budgets) < 2:
        return ""
    parts = []
    for step, minutes, steps in budgets:
        sizes = [f"{size:g} {unit}" for size, unit in ((minutes, "minutes"), (steps, "steps")) if size]
        parts.append(f"{' or '.join(sizes)} from step {step:,.0f} on")
    return f" The budget was changed while it ran ({', '.join(parts)}), and the learning rate jumped with it."


def _table(curve: Sequence[Sequence[float]], follow: bool) -> str:
    every = max(1, len(curve) // 10)
    points = [*curve[:-1:every], curve[-1]]
    rows = [f"| {p[0]:,.0f} | {p[1] / 1e6:.1f} | {p[2]:.1f} | {p[5]:.3f} | {p[6]:.1%} |" for p in points]
    lines = ["| step | million tokens | minutes | validation loss | hits |", "|--:|--:|--:|--:|--:|", *rows]
    if follow:
        more = [" follows: loss | right |", "--:|--:|", *(f" {p[7]:.3f} | {p[8]:.1%} |" for p in points)]
        lines = [line + added for line, added in zip(lines, more, strict=True)]
    return "\n".join(lines)


def _flatness(curve: Sequence[Sequence[float]]) -> str:
    """What the last quarter of the budget brought, and what that does and doesn't say."""
    before = min(curve, key=lambda p: abs(p[1] - 0.75 * curve[-1][1]))
    gain = before[5] - curve[-1][5]
    verdict = "flat" if gain < FLAT else "not flat"
    return (
        f"Over the last quarter of the tokens the validation loss fell by {gain:.3f}: it is {verdict}. The learning "
        "rate falls to zero at the end, which by itself flattens a curve."
    )


FOLLOW = {
    "tasks": "Masked language modelling and next sentence prediction (Devlin et al. 2019)",
    "pairs": (
        "a row whose paragraph has room for it is a pair of segments, each of which begins at a sentence, lies in one "
        "paragraph and is cut after a number of tokens drawn at random. In half of the pairs the second is what "
        "follows the first, in the others what follows the first of another row, so that only what they say tells "
        "which; a classifier on the pooler (dense and tanh on `[CLS]`) says it, and its loss is added to that of the "
        "hidden tokens"
    ),
    "reached": " Held-out pairs: loss {follow_loss} nats (a guess: 0.693), {follow_hits} right (a guess: 50%).",
    "limits": (
        "`[CLS]` and the pooler were trained on one task, whether one segment follows another, and get {follow_hits} "
        "of it right where a guess gets 50%. Words in common give much of it away. That is a start for fine-tuning, "
        "no summary of what a sentence means, and it says nothing of a single segment."
    ),
}
NO_FOLLOW = {
    "tasks": "Masked language modelling",
    "pairs": "half of the rows are pairs of segments",
    "reached": "",
    "limits": "The pooler is a fixed random rotation and `[CLS]` had no task of its own.",
}
CARD = """\
# {name}: a small BERT encoder

{layers} layers, width {width}, {heads} heads, {positions} positions, {parameters} parameters; lower-cased WordPiece
vocabulary of {vocabulary}. Weights in float16 safetensors, {megabytes} MB, sha256
`{sha256}`.

It is there to run experiments on embedding spaces in seconds on a CPU, and to be fine-tuned in them. It is loaded as
`isonb.lab.encoders.loading.load("{name}")` where it is embedded, or from its folder, as float32.

## Text

{about}

{train_tokens} tokens to train on, {held_tokens} held out (sha256 of all paragraphs `{fingerprint}`).
The text isn't part of this folder.

## Training

{tasks} from {origin}: 15% of the tokens are predicted, of these 80% are hidden, 10% replaced
and 10% left. Every row is full and begins at a sentence; {pairs}. Three steps of four
take rows of {length} tokens, the fourth rows of {double}; {batch} tokens a step. AdamW, peak learning rate {rate}, up
in a line over {warmup} of the budget, then down in a line to zero; gradient norm at most 1; no dropout; {precision}.

    {command}

{steps} steps, {tokens} tokens ({passes} times the text), {minutes} minutes of work on {hardware}, seed {seed}.{budgets}

## What it reached

On the whole held-out text (rows of {length}, float16 weights): loss {loss} nats, perplexity {perplexity}, {hits} of
the hidden tokens guessed right. A guess by frequency alone has loss {unigram}.{reached}

{curve}

The curve is measured on a fixed sample of the held-out text; all points are in `curve.csv`. {flat}

{history}## What it is not good for

- Its sentence vectors aren't trained to be compared: a cosine between them says little. Fine-tune it first.
- {limits}
- It is far below BERT-base in everything; a score of it says how methods compare, not how good a method can be.
- It knows the text above and nothing else: no other kind of text, no other language, no case. It has its biases.
- Not for use in decisions about people, and not a source of facts.
"""
