"""Dose and response of a second phase: one fine-tuned model, its layer trained with each loss and each learning rate.

What a layer does to score and isotropy can be the loss's doing, or that of a rate at which any training would ruin the
layer. So the model is fine-tuned once, and its layer is trained from the same start with the method's joint loss, the
task's loss alone and the penalty alone, at three rates. Nothing stops it: where it would have stopped can be read
from the scores of held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.lab.engines.finetune import prepare
from isonb.lab.engines.second_phase import Features, SecondModel, features, fit_second, scored
from isonb.lab.engines.stages import Finetuning, Series, Split, work_folder
from isonb.lab.engines.trainer import train
from isonb.lab.methods import SecondPhase
from isonb.lab.runs.inputs import recorded
from isonb.lab.runs.manifest import Clock
from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import Planned
from isonb.measures.isoscore import isoscore

RATES = (1e-5, 1e-4, 1e-3)
LOSSES = ("joint", "task", "isotropy")


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
    clock = Clock()
    run_ = prepare(given, data)
    metrics: dict[str, float | None] = {f"baseline.{name}": value for name, value in run_.material.baseline().items()}
    with work_folder(work) as folder:
        logits, series = train(run_, folder, resumable=work is not None, progress=progress)
    metrics |= run_.material.validation.score(logits)
    run_.model.requires_grad_(False)
    series |= responses(run_, progress)
    return recorded(run_.planned, run_.fingerprints(), clock, metrics=metrics, series=series)


def responses(run_: Finetuning, progress: bool = False) -> Series:
    """The series of :func:`run` for a fine-tuned model."""
    from tqdm import tqdm

    material = run_.material
    learned_from = features(run_, material.train)
    scored_on = {"score": (material.validation, features(run_, material.validation))}
    if material.held is not None:
        scored_on = {"held": (material.held, features(run_, material.held))} | scored_on
    series: Series = {}
    doses = [(loss, rate) for loss in LOSSES for rate in RATES]
    for loss, rate in tqdm(doses, desc="doses", disable=None if progress else True, leave=False):
        response = _response(run_, learned_from, scored_on, loss, rate)
        series |= {f"step.dose.{loss}.{rate:.0e}.{name}": values for name, values in response.items()}
    return series


def _response(
    run_: Finetuning, train: Features, scored_on: Mapping[str, tuple[Split, Features]], loss: str, rate: float
) -> Series:
    """Scores and IsoScore by update for one loss and one rate."""
    seed, main = run_.settings.seed, run_.task.metrics[0]
    torch.manual_seed(seed)
    phase = _alone(replace(run_.method.second(train.cloud, seed), learning_rate=rate), loss)
    model = SecondModel(run_.model, phase, train.cloud.shape[-1], run_.task.outputs).to(run_.device)

    def score(model: SecondModel) -> dict[str, float]:
        scores = {name: scored(split, model, cached)[main] for name, (split, cached) in scored_on.items()}
        return scores | {"isoscore": _isoscore(model.module, scored_on["score"][1].cloud)}

    start = {name: [(0.0, value)] for name, value in score(model).items()}
    later = fit_second(model, phase, train, score, seed=seed, select=False, progress=False)
    return {name: values + later[f"step.second.{name}"] for name, values in start.items()}


class _DosePenalty(nn.Module):
    """The penalty alone, in the place of a joint loss."""

    def forward(self, task: Tensor, isotropy: Tensor) -> Tensor:
        """Both losses, scalars; returns the second."""
        return isotropy


def _alone(phase: SecondPhase, loss: str) -> SecondPhase:
    """The phase with one of :data:`LOSSES`."""
    if loss == "task":
        return replace(phase, penalty=None, joint=None)
    return replace(phase, joint=_DosePenalty()) if loss == "isotropy" else phase


@torch.no_grad()
def _isoscore(module: nn.Module, cloud: Tensor) -> float:
    was = module.training
    value = float(isoscore(module.eval()(cloud).double()))
    module.train(was)
    return value
