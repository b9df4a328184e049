"""What the stages of a fine-tuning run share: settings, method, task, encoder, rows, and the model that is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.lab.batches import batched
from isonb.lab.material import Material, Part, read_material
from isonb.lab.methods import Method, method_from
from isonb.lab.models import Encoder, load_for_training
from isonb.lab.settings import FinetuneSettings, settings_of
from isonb.lab.task_model import TaskModel
from isonb.lab.tasks import Task, task_named

__all__ = ["EVALUATED", "Finetuning", "Series", "prepare"]

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
