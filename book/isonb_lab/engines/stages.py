"""What the stages of a fine-tuning run share: settings, method, task, encoder, rows, and the model that is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from isonb.errors import DegenerateError, fail
from isonb.integrations.hidden_states import Pooling
from isonb.models.loading import Encoder
from isonb.points import Mode
from isonb_lab.data import batches, scores
from isonb_lab.data.batches import LongestFirst, Tokens, accepted_inputs, batched, tokenize
from isonb_lab.data.tasks import Task
from isonb_lab.encoders.lower_layers import LowerStates
from isonb_lab.encoders.task_model import TaskModel
from isonb_lab.methods import Method
from isonb_lab.runs.inputs import RunRows, own_files
from isonb_lab.runs.settings import FinetuneSettings, Planned

EVALUATED = 64  # rows of a no-grad pass
Series = dict[str, list[tuple[float, float]]]


@dataclass(frozen=True)
class Split:
    task: Task
    rows: Any
    tokens: Tokens

    @classmethod
    def tokenized(cls, task: Task, rows: Any, settings: FinetuneSettings, encoder: Encoder) -> Split:
        """Rows as the encoder reads them."""
        accepted, length = accepted_inputs(encoder.model), min(settings.max_length, encoder.max_length)
        if task.kind == "span":
            return cls(task, rows, batches.windows(rows, encoder.tokenizer, length, settings.doc_stride, accepted))
        return cls(task, rows, tokenize(task, rows, encoder.tokenizer, length, accepted))

    @cached_property
    def gold(self) -> list[Any]:
        """The right answer of each row: label, value, or the texts that answer."""
        if self.task.kind == "span":
            return [answer["text"] for answer in self.rows["answers"]]
        return list(self.rows[self.task.target])

    def answers(self, logits: Tensor | Any) -> Any:
        """What is predicted by a model's logits, one row a token row: (N, C), (N, 1) or (windows, T, 2)."""
        if self.task.kind == "span":
            return batches.answers(self.rows, self.tokens.windows, logits)
        logits = torch.as_tensor(logits)
        return logits.squeeze(-1) if self.task.kind == "regression" else logits.argmax(-1)

    def score(self, logits: Tensor | Any) -> dict[str, float]:
        """The task's metrics of the :meth:`answers`."""
        return scores.score(self.task.metrics, self.answers(logits), self.gold)

    def predictions(self, logits: Tensor | Any) -> pd.DataFrame:
        """One row an example: ``text.<input>``, ``gold``, ``predicted``, and in classification ``logit.<label>``."""
        answers = self.answers(logits)
        frame = {f"text.{name}": list(self.rows[name]) for name in self.task.inputs}
        frame |= {"gold": self.gold, "predicted": answers.tolist() if isinstance(answers, Tensor) else answers}
        if self.task.kind == "classification":
            columns = torch.as_tensor(logits).float().T.tolist()
            frame |= {f"logit.{label}": column for label, column in enumerate(columns)}
        return pd.DataFrame(frame)


@dataclass(frozen=True)
class Finetuning:
    """What the stages of one run share. ``splits``: those of its ``rows``, tokenized; ``penalty`` is built once.

    ``lower`` gives the states below the layers that are trained, where not all are.
    """

    planned: Planned
    task: Task
    encoder: Encoder
    rows: RunRows
    splits: Mapping[str, Split]
    model: TaskModel
    penalty: nn.Module | None
    lower: LowerStates | None = None

    @property
    def settings(self) -> FinetuneSettings:
        settings: FinetuneSettings = self.planned.settings
        return settings

    @property
    def method(self) -> Method:
        return self.planned.method

    @property
    def watched(self) -> Split:
        """The rows that training is stopped by: those held out, where there are some."""
        return self.splits.get("held", self.splits["validation"])

    def baseline(self) -> dict[str, float | None]:
        """``baseline.<metric>`` of always giving the commonest training label, or for a span an empty answer."""
        gold, metrics = self.splits["validation"].gold, self.task.metrics
        if self.task.kind == "span":
            values = scores.score(metrics, [""] * len(gold), gold)
        else:
            values = scores.baseline(metrics, self.splits["train"].gold, gold)
        return {f"baseline.{name}": value for name, value in values.items()}

    def fingerprints(self) -> dict[str, str]:
        """sha256 of all that the run reads."""
        return self.rows.fingerprints() | {"model": self.encoder.revision} | own_files(self.task, self.method)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def batches(self, split: Split, count: int | None = None) -> Iterator[dict[str, Tensor]]:
        """The rows of a split in order, or the first ``count`` of them, for no-grad passes."""
        return self.batched(split.tokens if count is None else split.tokens.head(count))

    def batched(self, tokens: Tokens | LongestFirst) -> Iterator[dict[str, Tensor]]:
        """Rows in order, for no-grad passes."""
        return batched(tokens, self.encoder.tokenizer, EVALUATED, self.device)

    def hidden(self, batch: Mapping[str, Tensor]) -> tuple[tuple[Tensor, ...], Tensor]:
        """Hidden states 0..L, the last as the model returns it, and the mask."""
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        out = self.model.encoder(**inputs, output_hidden_states=True)
        return (*out.hidden_states[:-1], out.last_hidden_state), batch["attention_mask"]


def penalised_points(method: Method, sentence: Mode) -> Pooling:
    """The points that a method's penalty sees; ``sentence``, such as "last" in a decoder, stands for its [CLS]."""
    points = method.points()
    return replace(points, mode=sentence) if points.mode == "cls" else points


def finite(loss: Tensor, stage: str, step: int) -> None:
    """Raise :class:`~isonb.errors.DegenerateError` where a loss isn't finite."""
    if not bool(torch.isfinite(loss.detach())):
        fix = "Lower the learning rate or the weight of the penalty."
        fail(DegenerateError, f"the loss of {stage} must be finite", f"{loss.item()} at update {step}", fix)


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Random numbers by ``seed`` inside; afterwards the random states are as they were."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"):
        torch.manual_seed(seed)
        yield


@contextmanager
def work_folder(work: str | Path | None) -> Iterator[Path]:
    """The folder for checkpoints; without one, a folder that is gone afterwards."""
    if work is not None:
        yield Path(work)
        return
    with TemporaryDirectory(prefix="isonb-") as folder:
        yield Path(folder)
