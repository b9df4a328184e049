"""Measures while a Trainer trains: of the points of training batches, and of validation points.

Values go to the Trainer's ``log_history``, which its checkpoints keep, so a resumed run has those of the steps before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from isonb.integrations.hidden_states import Pooling
from isonb.integrations.watch import TrainingPoints
from isonb.numerics.distributed import all_rows
from isonb_lab.measuring.cloud import Values, cloud_measures

NAMES = {"loss": "loss", "isonb_penalty": "penalty", "learning_rate": "learning_rate", "grad_norm": "grad_norm"}
TIMES = ("runtime", "samples_per_second", "steps_per_second", "jit_compilation_time", "model_preparation_time")
OWN = ("train.cls.", "validation.cls.")
CLOUD_ROWS = 1500  # points that are measured, at most


class Tracker(TrainerCallback):  # type: ignore[misc]
    """Logs :func:`~isonb_lab.measuring.cloud.cloud_measures` every ``every`` updates (0: never) and at each validation.

    The training points are those of the forward passes of one update, dropout on: all its micro-batches and all
    processes, so every process logs the same. ``pooling`` says which (the last layer's "cls", or "last" for decoders);
    no pass is added, and passes without gradients, such as rehearsals of a penalty, are not looked at. At most
    :data:`CLOUD_ROWS` points are measured, drawn with a fixed seed.

    Entries of the log have the keys ``train.cls.<measure>`` and ``validation.cls.<measure>``, of what is defined,
    and ``step`` and ``epoch`` as the Trainer's own. ``measuring()`` is entered while it measures. They don't pass
    through ``Trainer.log``: called at a step's end, that would withdraw the request to log the loss of the same
    step.
    """

    def __init__(
        self,
        pooling: Pooling | None = None,
        every: int = 10,
        *,
        measuring: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.pooling, self.every, self.measuring = pooling or Pooling(), every, measuring
        self._state: Any = None  # the Trainer's, from the start of training
        self._points = TrainingPoints(self.pooling)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._state = state

    def on_step_begin(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        self._points.stop()
        if self.every and (state.global_step + 1) % self.every == 0 and model is not None:
            self._points.start(model)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        points = self._points.take()
        if points is not None:
            with self.measuring():
                values = self._measures(all_rows(points), None)
            self._log(state, "train.cls", values)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._points.stop()  # hooks that an interrupted update left

    def validation(self, points: Tensor, labels: Tensor | None = None) -> Values:
        """Measures of validation points (n, d); logged once training has begun. Integer ``labels`` (n,) add more."""
        with self.measuring():
            values = self._measures(points, labels)
        if self._state is not None:
            self._log(self._state, "validation.cls", values)
        return values

    def _measures(self, points: Tensor, labels: Tensor | None) -> Values:
        if len(points) > CLOUD_ROWS:
            draw = torch.Generator().manual_seed(0)
            keep = torch.randperm(len(points), generator=draw)[:CLOUD_ROWS].sort().values
            points, labels = points[keep.to(points.device)], None if labels is None else labels[keep.to(labels.device)]
        return cloud_measures(points, labels)

    def _log(self, state: Any, cloud: str, values: Values) -> None:
        named = {f"{cloud}.{name}": value for name, value in values.items() if value is not None}
        if named:
            state.log_history.append({**named, "epoch": state.epoch, "step": state.global_step})


def series_from_log(log_history: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Series of a Trainer's log by step, each step once: of several entries the last counts. Only finite numbers.

    ``step.train.loss`` (the penalty included), ``step.train.penalty``, ``step.train.learning_rate``,
    ``step.train.grad_norm``, ``step.train.cls.<measure>``, ``step.validation.<metric>``,
    ``step.validation.cls.<measure>``. Times and totals are left out.

    >>> log = [{"loss": 0.5, "epoch": 0.1, "step": 2}, {"loss": 0.4, "step": 1}, {"eval_accuracy": 0.9, "step": 2}]
    >>> series_from_log(log)
    {'step.train.loss': [(1, 0.4), (2, 0.5)], 'step.validation.accuracy': [(2, 0.9)]}
    """
    by_step: dict[str, dict[float, float]] = {}
    for entry in log_history:
        for key, value in entry.items():
            metric = key.removeprefix("eval_")
            if key in NAMES:
                name = f"step.train.{NAMES[key]}"
            elif key.startswith(OWN):
                name = f"step.{key}"
            elif metric != key and not metric.endswith(TIMES):
                name = f"step.validation.{metric}"
            else:
                continue
            if isinstance(value, int | float) and math.isfinite(value):
                by_step.setdefault(name, {})[entry["step"]] = float(value)
    return {name: sorted(values.items()) for name, values in by_step.items()}
