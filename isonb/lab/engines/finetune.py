"""Fine-tune an encoder on a task with a method, and leave one record.

The stages are those of :mod:`isonb.lab.methods.base`; no method is known here by name. On one process or several
(torchrun) a run gives the same record: the batches are the same, and every statistic is of the whole batch. Dropout
draws differ between processes, so equality to rounding needs ``dropout: 0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from isonb.lab.engines import frozen, task_training
from isonb.lab.engines.contrast import tune
from isonb.lab.engines.stages import Finetuning, Series, prepare, work_folder
from isonb.lab.measuring.profile import profile
from isonb.lab.runs import manifest as manifests
from isonb.lab.runs.inputs import own_files
from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import resolve
from isonb.losses.istar import ShrinkageCovariance

__all__ = ["run"]

SHRINKAGE_ROWS = 50_000  # token vectors behind the shrinkage covariance of the reported IsoScore*


def run(
    config: Mapping[str, Any], *, data: str | Path | None = None, work: str | Path | None = None, progress: bool = True
) -> Record:
    """Train, measure, and return the record (unwritten).

    ``config`` as in :func:`~isonb.lab.runs.settings.resolve`; ``data`` a folder in the hub's layout or "hub". ``work``
    is a folder for checkpoints: a run that was stopped goes on from its last epoch there. The same configuration gives
    the same metrics and series on the same machine.
    """
    clock = manifests.Clock()
    run_ = prepare(resolve(config), data)
    seed = run_.settings.seed
    metrics: dict[str, float | None] = {f"baseline.{name}": value for name, value in run_.material.baseline().items()}
    series: Series = {}
    with clock.measuring():
        _measure(run_, "start", metrics, series)
    series |= _contrast(run_, progress)
    with work_folder(work) as folder:
        resumable = work is not None
        logits, logged = task_training.train(run_, folder, resumable=resumable, progress=progress, clock=clock)
    series |= logged
    scores = run_.material.validation.score(logits)
    if run_.method.two_phases:
        metrics |= {f"first_phase.{name}": value for name, value in scores.items()}
        scores = frozen.second(run_, metrics, series, progress)
    metrics |= scores
    with clock.measuring():
        _measure(run_, "end", metrics, series)
    print_of = run_.material.fingerprints() | {"model": run_.encoder.revision} | own_files(run_.task, run_.method)
    made = manifests.manifest(seed=seed, data=print_of, clock=clock)
    return Record(config=run_.config, metrics=metrics, series=series, manifest=made)


def _contrast(run_: Finetuning, progress: bool) -> Series:
    contrast = run_.method.contrast()
    if contrast is None:
        return {}
    rows = run_.material.train.rows
    sentences = sorted({text for column in run_.task.inputs for text in rows[column]})
    found: Series = tune(run_.encoder, sentences, contrast, seed=run_.settings.seed, progress=progress)
    run_.model.unfreeze()
    return {name.replace("step.", "step.contrast.", 1): values for name, values in found.items()}


@torch.no_grad()
def _measure(run_: Finetuning, where: str, metrics: dict[str, float | None], series: Series) -> None:
    """The isotropy profile of the validation cloud, under names with ``where`` in them."""
    if not run_.settings.cloud_examples:
        return
    model = run_.model
    was, _ = model.training, model.eval()

    seen = where != "start" or model.layer is None  # a layer that has seen nothing may have no values yet

    def forward(batch: Mapping[str, Tensor]) -> tuple[tuple[Tensor, ...], Tensor, Tensor | None]:
        states, mask = run_.hidden(batch)
        return states, mask, model.represent(model.vector(states[-1], mask), mask) if seen else None

    shrinkage = ShrinkageCovariance("all", False, SHRINKAGE_ROWS, group=None)
    cov = shrinkage.refresh(model.encoder, run_.batches(run_.material.train))
    batches = run_.batches(run_.material.validation, run_.settings.cloud_examples)
    points: Literal["cls", "last"] = "last" if model.decoder else "cls"
    found = profile(forward, batches, layers=run_.encoder.layers, points=points, shrinkage_cov=cov).at(where)
    metrics.update(found.metrics)
    series.update(found.series)
    model.train(was)
