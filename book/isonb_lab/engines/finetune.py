"""Fine-tune an encoder on a task with a method, and leave one record.

The stages are those of :mod:`isonb_lab.methods.base`; no method is known here by name. On one process or several
(torchrun) a run gives the same record: the batches are the same, and every statistic is of the whole batch. Dropout
draws differ between processes, so equality to rounding needs ``dropout: 0``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import set_seed

from isonb.losses.istar import ShrinkageCovariance
from isonb.models.loading import load_for_training
from isonb_lab.data.sources import rows_folder
from isonb_lab.encoders.lower_layers import first_layers, trained_above
from isonb_lab.encoders.task_model import TaskModel
from isonb_lab.engines.callbacks import Reports
from isonb_lab.engines.contrast import tune
from isonb_lab.engines.preflight import preflight
from isonb_lab.engines.readers import read
from isonb_lab.engines.second_phase import second
from isonb_lab.engines.stages import Finetuning, Series, Split, work_folder
from isonb_lab.engines.trainer import train
from isonb_lab.measuring.profile import profile
from isonb_lab.runs.inputs import RunRows, recorded
from isonb_lab.runs.manifest import Clock
from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import Planned, plan
from isonb_lab.runs.table import write_table

SHRINKAGE_ROWS = 50_000  # token vectors behind the shrinkage covariance of the reported IsoScore*
# what architectures call the dropout before their own classifiers
DROPOUTS = ("classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout", "hidden_dropout_prob")


def run(
    request: Mapping[str, Any] | Planned,
    *,
    data: str | Path | None = None,
    work: str | Path | None = None,
    progress: bool = True,
    report_to: str = "",
    predictions: str | Path | None = None,
) -> Record:
    """Train, measure, and return the record (unwritten), as :func:`isonb_lab.engines.experiment.run` says.

    A run that was stopped goes on from its last epoch in ``work``. ``predictions`` has one row a validation example.
    """
    clock, reports = Clock(), Reports(report_to)
    run_ = prepare(request, data, progress)
    validation, metrics, series = run_.splits["validation"], run_.baseline(), Series()
    with clock.measuring():
        _measure(run_, "start", metrics, series)
    if (contrast := run_.method.contrast()) is not None:
        rows = run_.splits["train"].rows
        sentences = sorted({text for column in run_.task.inputs for text in rows[column]})
        pairs = run_.rows.labelled_pairs()
        losses = tune(run_.encoder, sentences, contrast, seed=run_.settings.seed, pairs=pairs, progress=progress)
        run_.model.unfreeze()
        series |= {name.replace("step.", "step.contrast.", 1): values for name, values in losses.items()}
    with work_folder(work) as folder:
        logits, logged = train(
            run_, folder, resumable=work is not None, progress=progress, clock=clock, reports=reports
        )
    series |= logged
    module = None
    if run_.method.two_phases:
        metrics |= {f"first_phase.{name}": value for name, value in validation.score(logits).items()}
        with clock.fitting():
            logits, module = second(run_, metrics, series, progress)
    metrics |= validation.score(logits)
    with clock.measuring():
        _measure(run_, "end", metrics, series)
        if run_.settings.readers:
            metrics |= read(run_, module)
    if predictions is not None:
        write_table(validation.predictions(logits), predictions)
    reports.end(metrics)
    scored = run_.rows.scored(run_.task)
    return recorded(run_.planned, run_.fingerprints(), clock, scored, metrics=metrics, series=series)


def prepare(request: Mapping[str, Any] | Planned, data: str | Path | None, progress: bool = True) -> Finetuning:
    """Write the run out and check it, if that isn't done; read model and rows, and make the head and the penalty."""
    planned = preflight(plan(request), data)
    settings, method, task = planned.settings, planned.method, planned.task
    set_seed(settings.seed)
    encoder = load_for_training(settings.model, settings.dropout, "cuda" if torch.cuda.is_available() else "cpu")
    penalty = method.penalty()
    lower = None
    if settings.layers is not None:
        first_layers(encoder, settings.layers)
    if settings.train_layers is not None:
        encoder, lower = trained_above(encoder, settings.train_layers)
    folder = rows_folder(planned.selections.values(), data)
    rows = RunRows.read(planned.selections, folder, settings.holdout)
    splits = {name: Split.tokenized(task, split, settings, encoder) for name, split in rows.splits.items()}
    if lower is not None:
        for split in splits.values():
            lower.read(split.tokens.rows, progress)
    set_seed(settings.seed)  # the head doesn't depend on what loading drew
    rate = settings.dropout
    if rate is None:
        config = encoder.model.config
        named = [value for name in DROPOUTS if (value := getattr(config, name, None)) is not None]
        rate = float(named[0] if named else getattr(config, "resid_pdrop", 0.1))
    model = TaskModel(encoder.model, task.kind, task.outputs, method, settings.head, rate, settings.pooling)
    model.to(next(encoder.model.parameters()).device)
    return Finetuning(planned, task, encoder, rows, splits, model, penalty, lower)


@torch.no_grad()
def _measure(run_: Finetuning, where: str, metrics: dict[str, float | None], series: Series) -> None:
    """The isotropy profile of the validation cloud, under names with ``where`` in them."""
    if not run_.settings.cloud_examples:
        return
    model = run_.model
    was = model.training
    model.eval()
    values = where != "start" or model.layer is None  # a layer that has seen nothing may have no values yet

    def forward(batch: Mapping[str, Tensor]) -> tuple[tuple[Tensor, ...], Tensor, Tensor | None]:
        states, mask = run_.hidden(batch)
        return states, mask, model.represent(model.vector(states[-1], mask), mask) if values else None

    shrinkage = ShrinkageCovariance("all", False, SHRINKAGE_ROWS, group=None)
    cov = shrinkage.refresh(model.encoder, run_.batches(run_.splits["train"]))
    batches = run_.batches(run_.splits["validation"], run_.settings.cloud_examples)
    points = model.pooling.mode
    measured = profile(forward, batches, layers=run_.encoder.layers, points=points, shrinkage_cov=cov).at(where)
    metrics.update(measured.metrics)
    series.update(measured.series)
    model.train(was)
