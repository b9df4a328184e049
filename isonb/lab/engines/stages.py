"""What the stages of a fine-tuning run share: settings, method, task, encoder, rows, and the model that is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.errors import fail
from isonb.lab.data import scores, spans
from isonb.lab.data.batches import Tokens, accepted_inputs, batched, tokenize
from isonb.lab.data.sources import fingerprint
from isonb.lab.data.tasks import Task, TaskError, task_named
from isonb.lab.encoders.loading import Encoder, load_for_training
from isonb.lab.encoders.task_model import TaskModel
from isonb.lab.methods import Method, method_from
from isonb.lab.runs.inputs import split_rows
from isonb.lab.runs.settings import FinetuneSettings, settings_of
from isonb.runtime.leash import scratch

__all__ = ["EVALUATED", "Finetuning", "Material", "Part", "Series", "prepare", "read_material", "work_folder"]


@dataclass(frozen=True)
class Part:
    """The rows of one split and their tokens."""

    task: Task
    rows: Any
    tokens: Tokens

    @cached_property
    def gold(self) -> list[Any]:
        """The right answer of each row: label, value, or the texts that answer."""
        if self.task.kind == "span":
            return [answer["text"] for answer in self.rows["answers"]]
        return list(self.rows[self.task.target])

    def score(self, logits: Tensor | Any) -> dict[str, float]:
        """The task's metrics of a model's logits, one row a token row: (N, C), (N, 1) or (windows, T, 2)."""
        if self.task.kind == "span":
            found: Any = spans.answers(self.rows, self.tokens.windows, logits)
            return scores.score(self.task.metrics, found, self.gold)
        logits = torch.as_tensor(logits)
        found = logits.squeeze(-1) if self.task.kind == "regression" else logits.argmax(-1)
        return scores.score(self.task.metrics, found, self.gold)


@dataclass(frozen=True)
class Material:
    """``train`` to learn from, ``held`` (or None) to stop by, ``validation`` to report."""

    train: Part
    held: Part | None
    validation: Part

    def baseline(self) -> dict[str, float]:
        """The metrics of always giving the commonest training label, or for a span an empty answer."""
        task = self.train.task
        if task.kind == "span":
            return scores.score(task.metrics, [""] * len(self.validation.gold), self.validation.gold)
        return scores.baseline(task.metrics, self.train.gold, self.validation.gold)

    def fingerprints(self) -> dict[str, str]:
        """sha256 of the rows of each part."""
        parts = {"train": self.train, "held": self.held, "validation": self.validation}
        return {name: fingerprint(part.rows) for name, part in parts.items() if part is not None}


def read_material(task: Task, settings: FinetuneSettings, data: str | Path | None, encoder: Encoder) -> Material:
    """Load and tokenise. Raises what :func:`~isonb.lab.data.rows.load_task` raises, and for too few rows."""
    found = split_rows(task, settings, data)
    if (count := len(found["train"])) < settings.batch_size:
        fix = "Lower batch_size or holdout, or raise train_examples."
        fail(TaskError, f"there must be at least one batch of {settings.batch_size} to train on", count, fix)
    parts = {name: _part(task, rows, settings, encoder) for name, rows in found.items()}
    return Material(parts["train"], parts.get("held"), parts["validation"])


def _part(task: Task, rows: Any, settings: FinetuneSettings, encoder: Encoder) -> Part:
    accepted, length = accepted_inputs(encoder.model), min(settings.max_length, encoder.max_length)
    if task.kind == "span":
        tokens = spans.windows(rows, encoder.tokenizer, length, settings.doc_stride, accepted)
    else:
        tokens = tokenize(task, rows, encoder.tokenizer, length, accepted)
    return Part(task, rows, tokens)


EVALUATED = 64  # rows a forward pass without gradients
Series = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Finetuning:
    """What the stages of one run share."""

    config: dict[str, Any]
    settings: FinetuneSettings
    method: Method
    task: Task
    encoder: Encoder
    material: Material
    model: TaskModel

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def batches(self, part: Part, count: int | None = None) -> Iterator[dict[str, Tensor]]:
        """The rows of a part in order, or the first ``count`` of them, for passes without gradients."""
        tokens = part.tokens if count is None else part.tokens.head(count)
        return batched(tokens, self.encoder.tokenizer, EVALUATED, self.device)

    def hidden(self, batch: Mapping[str, Tensor]) -> tuple[tuple[Tensor, ...], Tensor]:
        """Hidden states 0..L, the last as the model returns it, and the mask."""
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        out = self.model.encoder(**inputs, output_hidden_states=True)
        return (*out.hidden_states[:-1], out.last_hidden_state), batch["attention_mask"]


def prepare(config: dict[str, Any], data: str | Path | None) -> Finetuning:
    """Read model and rows, and make the head, for a configuration that is written out."""
    from transformers import set_seed

    settings = settings_of(FinetuneSettings, config)
    method, task = method_from(config["method"]), task_named(settings.task)
    set_seed(settings.seed)
    encoder = load_for_training(settings.model, settings.dropout, "cuda" if torch.cuda.is_available() else "cpu")
    material = read_material(task, settings, data, encoder)
    set_seed(settings.seed)  # the head doesn't depend on what loading drew
    rate = settings.dropout if settings.dropout is not None else _own_dropout(encoder.model.config)
    model = TaskModel(encoder.model, task.kind, task.outputs, method, settings.head, rate)
    return Finetuning(
        config, settings, method, task, encoder, material, model.to(next(encoder.model.parameters()).device)
    )


def _own_dropout(config: Any) -> float:
    """The dropout before the classifier that the architecture's own heads use."""
    for name in ("classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout", "hidden_dropout_prob"):
        if (value := getattr(config, name, None)) is not None:
            return float(value)
    return float(getattr(config, "resid_pdrop", 0.1))


@contextmanager
def work_folder(work: str | Path | None) -> Iterator[Path]:
    """The folder for checkpoints; without one, a folder that is gone afterwards."""
    if work is not None:
        yield Path(work)
        return
    with scratch() as folder:
        yield folder
