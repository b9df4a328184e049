"""The dose and response of a layer behind a fine-tuned model.

What a layer does to score and isotropy can be the loss's doing, or that of a rate at which any training would ruin the
layer. So in a doses run the model is fine-tuned once, and its layer is trained from the same start with the method's
joint loss, the task's loss alone and the penalty alone, at three rates. Nothing stops it: where it would have stopped
can be read from the scores of held-out rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.measures.isoscore import isoscore
from isonb_lab.engines.finetune import prepare
from isonb_lab.engines.second_phase import Features, SecondModel, features, fit_second
from isonb_lab.engines.stages import Finetuning, Series, work_folder
from isonb_lab.engines.trainer import train
from isonb_lab.runs.inputs import recorded
from isonb_lab.runs.manifest import Clock
from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import Planned

RATES = (1e-5, 1e-4, 1e-3)
LOSSES = ("joint", "task", "isotropy")


def run(
    request: Mapping[str, Any] | Planned,
    *,
    data: str | Path | None = None,
    work: str | Path | None = None,
    progress: bool = True,
) -> Record:
    """Fine-tune, train the layer in every way, and return the record (unwritten).

    The metrics are those of the fine-tuned model without the layer. Series, by updates of the layer from 0 on:
    ``step.dose.<loss>.<rate>.held`` (the main metric on held-out rows), ``.score`` (on the validation rows) and
    ``.isoscore`` (of what the layer makes of those), with the losses ``joint``, ``task`` and ``isotropy`` and the rates
    ``1e-05``, ``1e-04`` and ``1e-03``.
    """
    from tqdm import tqdm

    clock = Clock()
    run_ = prepare(request, data)
    metrics = run_.baseline()
    with work_folder(work) as folder:
        logits, series = train(run_, folder, resumable=work is not None, progress=progress, clock=clock)
    metrics |= run_.splits["validation"].score(logits)
    run_.model.requires_grad_(False)
    cached = {name: features(run_, split) for name, split in run_.splits.items()}
    doses = [(loss, rate) for loss in LOSSES for rate in RATES]
    for loss, rate in tqdm(doses, desc="doses", disable=None if progress else True, leave=False):
        response = _response(run_, cached, loss, rate)
        series |= {f"step.dose.{loss}.{rate:.0e}.{name}": values for name, values in response.items()}
    scored = run_.rows.scored(run_.task)
    return recorded(run_.planned, run_.fingerprints(), clock, scored, metrics=metrics, series=series)


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
