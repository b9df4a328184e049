"""A fine-tuned model that is kept, layers trained behind it one at a time, and the dose and response of a layer.

What a layer does to score and isotropy can be the loss's doing, or that of a rate at which any training would ruin the
layer. So in a doses run the model is fine-tuned once, and its layer is trained from the same start with the method's
joint loss, the task's loss alone and the penalty alone, at three rates. Nothing stops it: where it would have stopped
can be read from the scores of held-out rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.lab.engines.finetune import prepare
from isonb.lab.engines.second_phase import Features, SecondModel, features, fit_second
from isonb.lab.engines.stages import Finetuning, Series, work_folder
from isonb.lab.engines.trainer import train
from isonb.lab.methods import SecondPhase, method_from
from isonb.lab.runs.inputs import recorded
from isonb.lab.runs.manifest import Clock
from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import Planned
from isonb.measures.isoscore import isoscore
from isonb.measures.registry import measure_all

RATES = (1e-5, 1e-4, 1e-3)
LOSSES = ("joint", "task", "isotropy")
SHAPE = ("isoscore", "isoscore_unbiased", *(f"explained_variance_{k}{end}" for end in ("", "_centered") for k in "123"))


def run(
    given: Mapping[str, Any] | Planned,
    *,
    data: str | Path | None = None,
    work: str | Path | None = None,
    progress: bool = True,
) -> Record:
    """Fine-tune, train the layer in every way, and return the record (unwritten).

    ``given`` as in :func:`~isonb.lab.runs.settings.plan`. The metrics are those of the fine-tuned model without the
    layer. Series, by updates of the layer from 0 on: ``step.dose.<loss>.<rate>.held`` (the main metric on held-out
    rows), ``.score`` (on the validation rows) and ``.isoscore`` (of what the layer makes of those), with the losses
    ``joint``, ``task`` and ``isotropy`` and the rates ``1e-05``, ``1e-04`` and ``1e-03``.
    """
    from tqdm import tqdm

    clock = Clock()
    run_ = prepare(given, data)
    metrics = run_.baseline()
    with work_folder(work) as folder:
        logits, series = train(run_, folder, resumable=work is not None, progress=progress)
    metrics |= run_.splits["validation"].score(logits)
    run_.model.requires_grad_(False)
    cached = {name: features(run_, split) for name, split in run_.splits.items()}
    doses = [(loss, rate) for loss in LOSSES for rate in RATES]
    for loss, rate in tqdm(doses, desc="doses", disable=None if progress else True, leave=False):
        response = _response(run_, cached, loss, rate)
        series |= {f"step.dose.{loss}.{rate:.0e}.{name}": values for name, values in response.items()}
    return recorded(run_.planned, run_.fingerprints(), clock, metrics=metrics, series=series)


def _response(run_: Finetuning, cached: Mapping[str, Features], loss: str, rate: float) -> Series:
    """Scores and IsoScore by update for one loss and one rate."""
    seed, main, cloud = run_.settings.seed, run_.task.metrics[0], cached["train"].cloud
    torch.manual_seed(seed)
    phase = replace(run_.method.second(cloud, seed), learning_rate=rate)
    if loss == "task":
        phase = replace(phase, penalty=None, joint=None)
    elif loss == "isotropy":
        phase = replace(phase, joint=_PenaltyAlone())
    model = SecondModel(run_.model, phase, cloud.shape[-1], run_.task.outputs).to(run_.device)

    def score(model: SecondModel) -> dict[str, float]:
        named = {"held": "held", "score": "validation"}
        scores = {
            name: run_.splits[split].score(model.logits(cached[split]))[main]
            for name, split in named.items()
            if split in cached
        }
        was = model.module.training
        with torch.no_grad():
            points = model.module.eval()(cached["validation"].cloud)
        model.module.train(was)
        return scores | {"isoscore": float(isoscore(points.double()))}

    start = {name: [(0.0, value)] for name, value in score(model).items()}
    later = fit_second(model, phase, cached["train"], score, seed=seed)
    return {name: values + later[f"step.second.{name}"] for name, values in start.items()}


class _PenaltyAlone(nn.Module):
    """The penalty, in the place of a joint loss of it and the task's."""

    def forward(self, task: Tensor, isotropy: Tensor) -> Tensor:
        return isotropy


@dataclass(frozen=True)
class FineTuned:
    """A model that has learned its task, frozen, and what its head reads of the training and the validation rows."""

    run: Finetuning
    train: Features
    held: Features
    seconds: float

    def layered(self, options: Mapping[str, Any], *, trained: bool = True, **changes: Any) -> Layered:
        """The module of a method with two phases behind the frozen model, trained unless it needs no training.

        ``options``: the method's name and options; ``changes`` replace fields of its
        :class:`~isonb.lab.methods.base.SecondPhase`.
        """
        seed, cloud = self.run.settings.seed, self.train.cloud
        phase: SecondPhase = replace(method_from(dict(options)).second(cloud, seed), **changes)
        model = SecondModel(self.run.model, phase, cloud.shape[-1], self.run.task.outputs)
        began = time.perf_counter()
        series = fit_second(model, phase, self.train, seed=seed) if trained else {}
        return Layered(self, model, series, time.perf_counter() - began)


@dataclass(frozen=True)
class Layered:
    """A fine-tuned model with a module behind it, and the losses of each update."""

    tuned: FineTuned
    model: SecondModel
    series: Series
    seconds: float

    @torch.no_grad()
    def measured(self) -> dict[str, float | None]:
        """Score and shape of the validation cloud ("before.", "after."), of the training cloud ("train.", after).

        ``changed`` is the share of validation rows whose answer is another one.
        """
        tuned, module = self.tuned, self.model.module
        split, main = tuned.run.splits["validation"], tuned.run.task.metrics[0]
        before, after = tuned.run.model.head(tuned.held.cloud), self.model.logits(tuned.held)
        measured: dict[str, float | None] = {
            "before.score": split.score(before)[main],
            "after.score": split.score(after)[main],
            "changed": float((before.argmax(1).cpu() != after.argmax(1)).double().mean()),
        }
        clouds = {"before": tuned.held.cloud, "after": module(tuned.held.cloud), "train": module(tuned.train.cloud)}
        for where, cloud in clouds.items():
            measured |= {f"{where}.{name}": value for name, value in measure_all(cloud.double(), SHAPE).items()}
        return measured


def fine_tune(config: Mapping[str, Any], data: str | Path | None = None) -> FineTuned:
    """Fine-tune a configuration, as in :func:`~isonb.lab.runs.settings.plan`, without a method."""
    run = prepare(dict(config) | {"method": "none"}, data)
    began = time.perf_counter()
    with work_folder(None) as folder:
        train(run, folder, resumable=False, progress=False)
    took = time.perf_counter() - began
    run.model.requires_grad_(False)
    learned_from, held = (features(run, run.splits[name]) for name in ("train", "validation"))
    return FineTuned(run, learned_from, held, took)
