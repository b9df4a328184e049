"""Fine-tune an encoder on a task with a method, and leave one record.

The stages are those of :mod:`isonb.lab.methods.base`; no method is known here by name. On one process or several
(torchrun) a run gives the same record: the batches are the same, and every statistic is of the whole batch. Dropout
draws differ between processes, so equality to rounding needs ``dropout: 0``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from isonb.checks import fail
from isonb.lab import manifest as manifests
from isonb.lab.batches import Collator, batched
from isonb.lab.material import Material, Part, read_material
from isonb.lab.measures import attempt, cloud_measures
from isonb.lab.methods import Method, method_from
from isonb.lab.models import Encoder, load_for_training
from isonb.lab.options import OptionError, build
from isonb.lab.profile import profile
from isonb.lab.records import Record
from isonb.lab.second_phase import Features, SecondModel, fit_second
from isonb.lab.settings import FinetuneSettings, resolve
from isonb.lab.task_model import TaskModel
from isonb.lab.tasks import Task, task_named
from isonb.lab.tracker import Tracker, series_from_log
from isonb.shrinkage import ShrinkageCovariance
from isonb.spectrum import explained_variance

__all__ = ["run"]

EVALUATED = 64  # rows a forward pass without gradients
CLOUD_ROWS = 1500  # points of the second phase that are measured
CURVE = 20  # components of its curve of explained variance
SHRINKAGE_ROWS = 50_000  # token vectors behind the shrinkage covariance of the reported IsoScore*
SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}
Series = dict[str, list[tuple[float, float]]]


def run(
    config: Mapping[str, Any], *, data: str | Path | None = None, work: str | Path | None = None, progress: bool = True
) -> Record:
    """Train, measure, and return the record (unwritten).

    ``config`` as in :func:`~isonb.lab.settings.resolve`; ``data`` a folder in the hub's layout or "hub". ``work`` is a
    folder for checkpoints: a run that was stopped goes on from its last epoch there. The same configuration gives the
    same metrics and series on the same machine.
    """
    clock = manifests.Clock()
    run_ = _prepare(resolve(config), data)
    seed = run_.settings.seed
    metrics: dict[str, float | None] = {f"baseline.{name}": value for name, value in run_.material.baseline().items()}
    series: Series = {}
    _measure(run_, "start", metrics, series)
    series |= _contrast(run_, progress)
    with _folder(work) as folder:
        logits, logged = _train(run_, folder, resumable=work is not None, progress=progress)
    series |= logged
    scores = run_.material.validation.score(logits)
    if run_.method.two_phases:
        metrics |= {f"first_phase.{name}": value for name, value in scores.items()}
        scores = _second(run_, metrics, series, progress)
    metrics |= scores
    _measure(run_, "end", metrics, series)
    print_of = run_.material.fingerprints() | {"model": run_.encoder.revision}
    made = manifests.manifest(seed=seed, data=print_of, clock=clock)
    return Record(config=run_.config, metrics=metrics, series=series, manifest=made)


@dataclass(frozen=True)
class _Run:
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
        return next(self.model.parameters()).device

    def batches(self, part: Part, count: int | None = None) -> Iterator[dict[str, Tensor]]:
        tokens = part.tokens if count is None else part.tokens.head(count)
        return batched(tokens, self.encoder.tokenizer, EVALUATED, self.device)


def _prepare(config: dict[str, Any], data: str | Path | None) -> _Run:
    from transformers import set_seed

    settings = build(FinetuneSettings, {f.name: config[f.name] for f in fields(FinetuneSettings)}, "a finetune run")
    method, task = method_from(config["method"]), task_named(settings.task)
    set_seed(settings.seed)
    encoder = load_for_training(settings.model, settings.dropout, "cuda" if torch.cuda.is_available() else "cpu")
    material = read_material(task, settings, data, encoder)
    set_seed(settings.seed)  # the head doesn't depend on what loading drew
    rate = settings.dropout if settings.dropout is not None else _own_dropout(encoder.model.config)
    model = TaskModel(encoder.model, task.kind, task.outputs, method, settings.head, rate)
    return _Run(config, settings, method, task, encoder, material, model.to(next(encoder.model.parameters()).device))


def _own_dropout(config: Any) -> float:
    """The dropout before the classifier that the architecture's own heads use."""
    for name in ("classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout", "hidden_dropout_prob"):
        if (value := getattr(config, name, None)) is not None:
            return float(value)
    return float(getattr(config, "resid_pdrop", 0.1))


def _contrast(run_: _Run, progress: bool) -> Series:
    contrast = run_.method.contrast()
    if contrast is None:
        return {}
    from isonb.lab.contrast import tune

    rows = run_.material.train.rows
    sentences = sorted({text for column in run_.task.inputs for text in rows[column]})
    found: Series = tune(run_.encoder, sentences, contrast, seed=run_.settings.seed, progress=progress)
    run_.model.unfreeze()
    return {name.replace("step.", "step.contrast.", 1): values for name, values in found.items()}


@contextmanager
def _folder(work: str | Path | None) -> Iterator[Path]:
    if work is not None:
        yield Path(work)
        return
    with tempfile.TemporaryDirectory(prefix="isonb-") as folder:
        yield Path(folder)


def _train(run_: _Run, folder: Path, *, resumable: bool, progress: bool) -> tuple[Any, Series]:
    """Fine-tune; logits of the validation rows, and the logged series."""
    from isonb.lab.trainers import Bar, trainer_class

    settings, material = run_.settings, run_.material
    kind, extra = trainer_class(run_.method, run_.model.decoder)
    watched = material.validation if material.held is None else material.held
    trainer = kind(
        model=run_.model,
        args=_arguments(run_, folder, resumable),
        data_collator=Collator(run_.encoder.tokenizer),
        train_dataset=material.train.tokens,
        eval_dataset=watched.tokens,
        compute_metrics=lambda found: watched.score(found.predictions[0]),
        settings=settings,
        rates=run_.method.learning_rates(),
        **extra,
    )
    _callbacks(trainer, settings, Bar(f"{settings.task} {run_.method.name}", progress))
    tracker = Tracker(run_.model.point_rule, settings.track_every)
    trainer.add_callback(tracker)
    classes = torch.tensor(list(watched.rows[run_.task.target])) if run_.task.kind == "classification" else None
    size = settings.cloud_examples
    trainer.on_validation = lambda points: tracker.validation(
        points[:size], None if classes is None else classes[:size]
    )
    trainer.train(resume_from_checkpoint=_checkpoint(folder) if resumable else None)
    trainer.compute_metrics = None  # what follows isn't the part that was watched
    found = trainer.predict(material.validation.tokens)
    return found.predictions[0], series_from_log(trainer.state.log_history)


def _callbacks(trainer: Any, settings: FinetuneSettings, bar: Any) -> None:
    from transformers import EarlyStoppingCallback, PrinterCallback, ProgressCallback
    from transformers.utils.notebook import NotebookProgressCallback

    for chatty in (PrinterCallback, ProgressCallback, NotebookProgressCallback):
        trainer.remove_callback(chatty)
    trainer.add_callback(bar)
    if settings.patience is not None:
        trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=settings.patience))


def _checkpoint(folder: Path) -> str | None:
    """The last whole checkpoint in ``folder``: the Trainer writes the state file last of all that is needed."""
    found = sorted(folder.glob("checkpoint-*/trainer_state.json"), key=lambda path: int(path.parent.name[11:]))
    return str(found[-1].parent) if found else None


def _arguments(run_: _Run, folder: Path, resumable: bool) -> Any:
    from transformers import TrainingArguments
    from transformers.trainer_utils import SaveStrategy

    settings, rows = run_.settings, len(run_.material.train.tokens)
    updates = rows // settings.batch_size
    steps = min(settings.epochs * updates, settings.max_steps or settings.epochs * updates)
    every = max(1, round(updates / settings.validations))
    on_cpu = run_.device.type == "cpu"
    stopping = settings.patience is not None
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=1,  # set below: the number of processes is known only then
        per_device_eval_batch_size=EVALUATED,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        lr_scheduler_type=SCHEDULES[settings.schedule],
        warmup_steps=settings.warmup,
        max_grad_norm=settings.max_grad_norm,
        bf16=settings.precision == "bfloat16",
        fp16=settings.precision == "float16",
        use_cpu=on_cpu,
        seed=settings.seed,
        data_seed=settings.seed,
        logging_steps=settings.track_every or 10,
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy=SaveStrategy.STEPS if stopping else SaveStrategy.EPOCH if resumable else SaveStrategy.NO,
        save_steps=every,
        save_total_limit=2 if stopping else 1,
        load_best_model_at_end=stopping,
        metric_for_best_model=f"eval_{run_.task.metrics[0]}" if stopping else None,
        greater_is_better=True if stopping else None,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    parts = settings.accumulation * arguments.world_size
    if settings.batch_size % parts:
        got = f"{settings.batch_size} for {arguments.world_size} processes x {settings.accumulation}"
        fail(OptionError, "batch_size must be a multiple of processes times accumulation", got, "Change one of them.")
    arguments.per_device_train_batch_size = settings.batch_size // parts
    return arguments


def _second(run_: _Run, metrics: dict[str, float | None], series: Series, progress: bool) -> dict[str, float]:
    """Stage 3 on cached features: the scores after it."""
    material, seed = run_.material, run_.settings.seed
    train, validation = _features(run_, material.train), _features(run_, material.validation)
    watched = validation if material.held is None else _features(run_, material.held)
    part = material.validation if material.held is None else material.held
    torch.manual_seed(seed)
    phase = run_.method.second(train.cloud, seed)
    model = SecondModel(run_.model, phase, train.cloud.shape[-1], run_.task.outputs).to(run_.device)
    found = fit_second(
        model,
        phase,
        train,
        lambda model: part.score(_padded(model.logits(watched))),
        seed=seed,
        select=material.held is not None,
        progress=progress,
    )
    series.update(found)
    with torch.no_grad():
        points = phase.module(validation.cloud)[:CLOUD_ROWS]
    metrics.update({f"end.second.{name}": v for name, v in cloud_measures(points).items() if v is not None})
    for ending, center in (("", False), ("_centered", True)):
        shares = attempt(explained_variance, points, min(CURVE, *points.shape), center=center)
        if shares is not None:
            series[f"k.end.second.explained_variance{ending}"] = list(enumerate(shares.tolist(), start=1))
    return material.validation.score(_padded(model.logits(validation)))


def _padded(logits: Tensor | list[Tensor]) -> Tensor:
    return logits if isinstance(logits, Tensor) else torch.nn.utils.rnn.pad_sequence(logits, batch_first=True)


@torch.no_grad()
def _features(run_: _Run, part: Part) -> Features:
    run_.model.eval()
    rows: list[Tensor] = []
    labels = []
    for batch in run_.batches(part):
        states, mask = _hidden(run_.model, batch)
        vector = run_.model.vector(states[-1], mask)
        own = None if run_.task.kind == "span" else run_.method.features(torch.stack(states), mask)
        vector = vector if own is None else own
        rows += [vector] if vector.ndim == 2 else [row[m] for row, m in zip(vector, mask.bool(), strict=True)]
        labels.append(batch["labels"])
    return Features(rows if run_.task.kind == "span" else torch.cat(rows), torch.cat(labels))


def _hidden(model: TaskModel, batch: Mapping[str, Tensor]) -> tuple[tuple[Tensor, ...], Tensor]:
    """Hidden states 0..L, the last as the model returns it, and the mask."""
    out = model.encoder(**{n: value for n, value in batch.items() if n != "labels"}, output_hidden_states=True)
    return (*out.hidden_states[:-1], out.last_hidden_state), batch["attention_mask"]


@torch.no_grad()
def _measure(run_: _Run, where: str, metrics: dict[str, float | None], series: Series) -> None:
    """The isotropy profile of the validation cloud, under names with ``where`` in them."""
    if not run_.settings.cloud_examples:
        return
    model = run_.model
    was, _ = model.training, model.eval()

    seen = where != "start" or model.layer is None  # a layer that has seen nothing may have no values yet

    def forward(batch: Mapping[str, Tensor]) -> tuple[tuple[Tensor, ...], Tensor, Tensor | None]:
        states, mask = _hidden(model, batch)
        return states, mask, model.represent(model.vector(states[-1], mask), mask) if seen else None

    shrinkage = ShrinkageCovariance("all", False, SHRINKAGE_ROWS, group=None)
    cov = shrinkage.refresh(model.encoder, run_.batches(run_.material.train))
    batches = run_.batches(run_.material.validation, run_.settings.cloud_examples)
    points: Literal["cls", "last"] = "last" if model.decoder else "cls"
    found = profile(forward, batches, layers=run_.encoder.layers, points=points, shrinkage_cov=cov).at(where)
    metrics.update(found.metrics)
    series.update(found.series)
    model.train(was)
