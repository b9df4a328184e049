"""Stage 2 of a fine-tuning run: training on the task with the Trainer, tracked, and taken up again where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from isonb.errors import fail
from isonb.lab.data.batches import Collator, LongestFirst
from isonb.lab.engines.checkpoint import Seal, last_whole
from isonb.lab.engines.stages import EVALUATED, Finetuning, Series
from isonb.lab.measuring.tracker import Tracker, series_from_log
from isonb.lab.options import OptionError
from isonb.lab.runs.arithmetic import bfloat16_pays
from isonb.lab.runs.manifest import Clock
from isonb.lab.runs.settings import FinetuneSettings

__all__ = ["train"]

SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


def train(
    run_: Finetuning, folder: Path, *, resumable: bool, progress: bool, clock: Clock | None = None
) -> tuple[Any, Series]:
    """Fine-tune; logits of the validation rows, and the logged series. ``clock`` is told what measuring takes."""
    from isonb.lab.engines.trainer import Bar, trainer_class

    settings, material = run_.settings, run_.material
    kind, extra = trainer_class(run_.method, run_.model.decoder)
    watched = material.validation if material.held is None else material.held
    shown = LongestFirst(watched.tokens)
    trainer = kind(
        model=run_.model,
        args=_arguments(run_, folder, resumable),
        data_collator=Collator(run_.encoder.tokenizer),
        train_dataset=material.train.tokens,
        eval_dataset=shown,
        compute_metrics=lambda found: watched.score(shown.back(found.predictions[0])),
        settings=settings,
        rates=run_.method.learning_rates(),
        **extra,
    )
    _callbacks(trainer, settings, Bar(f"{settings.task} {run_.method.name}", progress))
    tracker = Tracker(run_.model.pooling, settings.track_every, measuring=(clock or Clock()).measuring)
    trainer.add_callback(tracker)
    classes = torch.tensor(watched.gold) if run_.task.kind == "classification" else None
    size = settings.cloud_examples
    trainer.on_validation = lambda points: tracker.validation(
        shown.back(points)[:size], None if classes is None else classes[:size]
    )
    last = last_whole(folder) if resumable else None
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    trainer.compute_metrics = None  # what follows isn't the part that was watched
    reported = LongestFirst(material.validation.tokens)
    found = trainer.predict(reported)
    return reported.back(found.predictions[0]), series_from_log(trainer.state.log_history)


def _callbacks(trainer: Any, settings: FinetuneSettings, bar: Any) -> None:
    from transformers import EarlyStoppingCallback, PrinterCallback, ProgressCallback
    from transformers.utils.notebook import NotebookProgressCallback

    for chatty in (PrinterCallback, ProgressCallback, NotebookProgressCallback):
        trainer.remove_callback(chatty)
    trainer.add_callback(bar)
    trainer.add_callback(Seal())
    if settings.patience is not None:
        trainer.add_callback(EarlyStoppingCallback(early_stopping_patience=settings.patience))


def _arguments(run_: Finetuning, folder: Path, resumable: bool) -> Any:
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
        bf16=settings.precision == "bfloat16" and bfloat16_pays(run_.device),
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
