"""Dose and response of a second phase: one fine-tuned model, its layer trained with each loss and each learning rate.

What a layer does to score and isotropy can be the loss's doing, or that of a rate at which any training would ruin the
layer. So the model is fine-tuned once, and its layer is trained from the same start with the method's joint loss, the
task's loss alone and the penalty alone, at three rates. Nothing stops it: where it would have stopped can be read
from the scores of the rows kept apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.lab.engines import task_training
from isonb.lab.engines.frozen import features, scored
from isonb.lab.engines.second_phase import Features, SecondModel, fit_second
from isonb.lab.engines.stages import Finetuning, Part, Series, prepare, work_folder
from isonb.lab.methods import SecondPhase
from isonb.lab.runs import manifest as manifests
from isonb.lab.runs.inputs import own_files
from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.measures.isoscore import isoscore

__all__ = ["LOSSES", "RATES", "run"]

RATES = (1e-5, 1e-4, 1e-3)
LOSSES = ("joint", "task", "isotropy")


def run(
    config: Mapping[str, Any], *, data: str | Path | None = None, work: str | Path | None = None, progress: bool = True
) -> Record:
    """Fine-tune, train the layer in every way, and return the record (unwritten).

    ``config`` as in :func:`~isonb.lab.runs.settings.resolve`. The metrics are those of the fine-tuned model without
    the layer. Series, by updates of the layer from 0 on: ``step.dose.<loss>.<rate>.held`` (the main metric on the rows
    kept apart), ``.score`` (on the validation rows) and ``.isoscore`` (of what the layer makes of those), with the
    losses ``joint``, ``task`` and ``isotropy`` and the rates ``1e-05``, ``1e-04`` and ``1e-03``.
    """
    clock = manifests.Clock()
    run_ = prepare(resolve(config), data)
    metrics: dict[str, float | None] = {f"baseline.{name}": value for name, value in run_.material.baseline().items()}
    with work_folder(work) as folder:
        logits, series = task_training.train(run_, folder, resumable=work is not None, progress=progress)
    metrics |= run_.material.validation.score(logits)
    run_.model.requires_grad_(False)
    series |= responses(run_, progress)
    print_of = run_.material.fingerprints() | {"model": run_.encoder.revision} | own_files(run_.task, run_.method)
    made = manifests.manifest(seed=run_.settings.seed, data=print_of, clock=clock)
    return Record(config=run_.config, metrics=metrics, series=series, manifest=made)


def responses(run_: Finetuning, progress: bool = False) -> Series:
    """The series of :func:`run` for a fine-tuned model."""
    from tqdm import tqdm

    material = run_.material
    train, validation = features(run_, material.train), features(run_, material.validation)
    parts = {"score": (material.validation, validation)}
    if material.held is not None:
        parts = {"held": (material.held, features(run_, material.held))} | parts
    series: Series = {}
    doses = [(loss, rate) for loss in LOSSES for rate in RATES]
    for loss, rate in tqdm(doses, desc="doses", disable=None if progress else True, leave=False):
        found = _response(run_, train, parts, loss, rate)
        series |= {f"step.dose.{loss}.{rate:.0e}.{name}": values for name, values in found.items()}
    return series


def _response(
    run_: Finetuning, train: Features, parts: Mapping[str, tuple[Part, Features]], loss: str, rate: float
) -> Series:
    """Scores and IsoScore by update for one loss and one rate."""
    seed, main = run_.settings.seed, run_.task.metrics[0]
    torch.manual_seed(seed)
    phase = _alone(replace(run_.method.second(train.cloud, seed), learning_rate=rate), loss)
    model = SecondModel(run_.model, phase, train.cloud.shape[-1], run_.task.outputs).to(run_.device)

    def score(model: SecondModel) -> dict[str, float]:
        found = {name: scored(part, model, cloud)[main] for name, (part, cloud) in parts.items()}
        return found | {"isoscore": _isoscore(model.module, parts["score"][1].cloud)}

    start = {name: [(0.0, value)] for name, value in score(model).items()}
    found = fit_second(model, phase, train, score, seed=seed, select=False, progress=False)
    return {name: values + found[f"step.second.{name}"] for name, values in start.items()}


class _Penalty(nn.Module):
    """The penalty alone, in the place of a joint loss."""

    def forward(self, task: Tensor, isotropy: Tensor) -> Tensor:
        """Both losses, scalars; returns the second."""
        return isotropy


def _alone(phase: SecondPhase, loss: str) -> SecondPhase:
    """The phase with one of :data:`LOSSES`."""
    if loss == "task":
        return replace(phase, penalty=None, joint=None)
    return replace(phase, joint=_Penalty()) if loss == "isotropy" else phase


@torch.no_grad()
def _isoscore(module: nn.Module, cloud: Tensor) -> float:
    was, _ = module.training, module.eval()
    value = float(isoscore(module(cloud).double()))
    module.train(was)
    return value
