"""What a fine-tuning run reads: rows of the task, their tokens, and how predictions are scored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.checks import fail
from isonb.lab import scores, spans
from isonb.lab.batches import Tokens, accepted_inputs, tokenize
from isonb.lab.models import Encoder
from isonb.lab.settings import FinetuneSettings
from isonb.lab.sources import sample
from isonb.lab.tasks import Task, TaskError, fingerprint, load_task

__all__ = ["Material", "Part", "read_material"]


@dataclass(frozen=True)
class Part:
    """The rows of one split and their tokens."""

    task: Task
    rows: Any
    tokens: Tokens

    def score(self, logits: Tensor | Any) -> dict[str, float]:
        """The task's metrics of a model's logits, one row a token row: (N, C), (N, 1) or (windows, T, 2)."""
        if self.task.kind == "span":
            found: Any = spans.answers(self.rows, self.tokens.windows, logits)
            return scores.score(self.task.metrics, found, [answer["text"] for answer in self.rows["answers"]])
        logits = torch.as_tensor(logits)
        found = logits.squeeze(-1) if self.task.kind == "regression" else logits.argmax(-1)
        return scores.score(self.task.metrics, found, list(self.rows[self.task.target]))


@dataclass(frozen=True)
class Material:
    """``train`` to learn from, ``held`` (or None) to stop by, ``validation`` to report."""

    train: Part
    held: Part | None
    validation: Part

    def baseline(self) -> dict[str, float]:
        """The metrics of always giving the commonest training label, or for a span an empty answer."""
        task, gold = self.train.task, self.validation.rows
        if task.kind == "span":
            references = [answer["text"] for answer in gold["answers"]]
            return scores.score(task.metrics, [""] * len(references), references)
        return scores.baseline(task.metrics, list(self.train.rows[task.target]), list(gold[task.target]))

    def fingerprints(self) -> dict[str, str]:
        """sha256 of the rows of each part."""
        parts = {"train": self.train, "held": self.held, "validation": self.validation}
        return {name: fingerprint(part.rows) for name, part in parts.items() if part is not None}


def read_material(task: Task, settings: FinetuneSettings, data: str | Path | None, encoder: Encoder) -> Material:
    """Load and tokenise. Raises what :func:`~isonb.lab.tasks.load_task` raises, and for too few rows."""
    limits = {"train": settings.train_examples, "validation": settings.eval_examples}
    found = {
        split: load_task(task.name, data, split=split, limit=limit, seed=settings.sample_seed)
        for split, limit in limits.items()
    }
    train, held = _apart(found["train"], settings)
    if len(train) < settings.batch_size:
        fix = "Lower batch_size or holdout, or raise train_examples."
        fail(TaskError, f"there must be at least one batch of {settings.batch_size} to train on", len(train), fix)
    return Material(
        _part(task, train, settings, encoder),
        None if held is None else _part(task, held, settings, encoder),
        _part(task, found["validation"], settings, encoder),
    )


def _apart(rows: Any, settings: FinetuneSettings) -> tuple[Any, Any]:
    count = round(settings.holdout * len(rows))
    if count < 1:
        return rows, None
    away = set(sample(len(rows), count, settings.sample_seed + 1))
    return rows.select([i for i in range(len(rows)) if i not in away]), rows.select(sorted(away))


def _part(task: Task, rows: Any, settings: FinetuneSettings, encoder: Encoder) -> Part:
    accepted, length = accepted_inputs(encoder.model), min(settings.max_length, encoder.max_length)
    if task.kind == "span":
        tokens = spans.windows(rows, encoder.tokenizer, length, settings.doc_stride, accepted)
    else:
        tokens = tokenize(task, rows, encoder.tokenizer, length, accepted)
    return Part(task, rows, tokens)
