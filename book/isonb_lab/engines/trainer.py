"""Training on the task with the Trainer, tracked, and taken up again where it stopped.

Rows come in an order that several processes share; a method has learning rates of its own; a bar shows how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DataCollatorWithPadding, EarlyStoppingCallback, PrinterCallback, Trainer, TrainingArguments
from transformers.trainer_utils import SaveStrategy

from isonb.errors import OptionError, fail
from isonb.integrations.trainer import IsotropyTrainerMixin
from isonb_lab.data.batches import LengthGrouped, LongestFirst
from isonb_lab.engines.callbacks import (
    Bar,
    CheckpointDigest,
    DelayedPenalty,
    Reports,
    has_ended,
    last_valid_checkpoint,
)
from isonb_lab.engines.stages import EVALUATED, Finetuning, Series, penalised_points
from isonb_lab.measuring.tracker import Tracker, series_from_log
from isonb_lab.runs.manifest import Clock, bfloat16_pays
from isonb_lab.runs.settings import FinetuneSettings

CHOSEN = (
    "patience without held-out rows: the state that was kept is the best one on the rows that are reported, so their "
    "scores are too good. Set holdout=0.1, say."
)
SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


class LabTrainer(IsotropyTrainerMixin, Trainer):  # type: ignore[misc]
    """A Trainer whose batches follow from the seed and the epoch alone, however many processes share one."""

    def __init__(self, *args: Any, settings: FinetuneSettings, rates: Mapping[str, float], **kwargs: Any) -> None:
        self.settings, self.rates = settings, dict(rates)
        self.on_validation: Callable[[Tensor], object] | None = None
        self.ended = False  # at the checkpoint that it goes on from
        super().__init__(*args, **kwargs)

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """The Trainer's, which then hands the sentence vectors of a validation to ``on_validation``."""
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        if metric_key_prefix == "eval" and self.on_validation is not None:
            self.on_validation(torch.as_tensor(output.predictions[1]))
        return output

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        """The Trainer's, which would do one more update of an epoch that was left before its end."""
        if self.ended:
            self.control.should_training_stop = True
        else:
            super()._run_epoch(*args, **kwargs)

    def _get_train_sampler(self, train_dataset: Any = None) -> LengthGrouped:
        rows = self.train_dataset if train_dataset is None else train_dataset
        settings = self.settings
        return LengthGrouped(rows.lengths, settings.batch_size, settings.seed, settings.group_by_length)

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW: decay on weights of two axes outside norms, a method's own learning rates for its layer."""
        if getattr(self, "optimizer", None) is None:
            decayed = set(self.get_decay_parameter_names(self.model))
            rates = {f"layer.{name}": rate for name, rate in self.rates.items()}
            groups: dict[tuple[float, float], list[Tensor]] = {}
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    decay = self.args.weight_decay if name in decayed and parameter.ndim > 1 else 0.0
                    groups.setdefault((rates.get(name, self.args.learning_rate), decay), []).append(parameter)
            listed = [{"params": some, "lr": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]
            self.optimizer = torch.optim.AdamW(listed, lr=self.args.learning_rate, fused=True)
        optimizer: torch.optim.Optimizer = self.optimizer
        return optimizer


def train(
    run_: Finetuning,
    folder: Path,
    *,
    resumable: bool,
    progress: bool,
    clock: Clock | None = None,
    reports: Reports | None = None,
) -> tuple[Any, Series]:
    """Fine-tune; logits of the validation rows, and the logged series.

    ``clock`` is told what measuring takes and what to warn of, ``reports`` what the Trainer logs.
    """
    clock = clock or Clock()
    settings, method, watched = run_.settings, run_.method, run_.watched
    if settings.patience is not None and "held" not in run_.splits:
        clock.warned.append(CHOSEN)
    shown, points = LongestFirst(watched.tokens), penalised_points(method, run_.model.pooling.mode)
    trainer = LabTrainer(
        model=run_.model,
        args=_arguments(run_, folder, resumable),
        data_collator=DataCollatorWithPadding(run_.encoder.tokenizer),
        train_dataset=run_.splits["train"].tokens,
        eval_dataset=shown,
        compute_metrics=lambda prediction: watched.score(shown.back(prediction.predictions[0])),
        settings=settings,
        rates=method.learning_rates(),
        penalty=run_.penalty,
        points=points.mode,
        module=points.module,
        layers=points.layers,
        include_pads=points.include_pads,
    )
    inputs = run_.fingerprints()
    tracker = Tracker(run_.model.pooling, settings.track_every, measuring=clock.measuring)
    trainer.remove_callback(PrinterCallback)
    delay = 0 if run_.penalty is None else method.penalty_delay_epochs()
    for callback in (
        DelayedPenalty(trainer, delay) if delay else None,
        Bar(f"{settings.task} {method.name}", progress),
        CheckpointDigest(inputs),
        None if settings.patience is None else EarlyStoppingCallback(early_stopping_patience=settings.patience),
        tracker,
        reports,
    ):
        if callback is not None:
            trainer.add_callback(callback)
    size = settings.cloud_examples
    classes = torch.tensor(watched.gold)[:size] if run_.task.kind == "classification" else None
    trainer.on_validation = lambda vectors: tracker.validation(shown.back(vectors)[:size], classes)
    with trainer.args.main_process_first(local=False):  # what the first one removes no other looks into
        last = last_valid_checkpoint(folder, inputs) if resumable else None
    trainer.ended = last is not None and has_ended(last)
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    trainer.compute_metrics = None  # what follows isn't the split that was watched
    reported = LongestFirst(run_.splits["validation"].tokens)
    logits = reported.back(trainer.predict(reported).predictions[0])
    return logits, series_from_log(trainer.state.log_history)


def _arguments(run_: Finetuning, folder: Path, resumable: bool) -> Any:
    settings = run_.settings
    updates = len(run_.splits["train"].tokens) // settings.batch_size
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
        restore_callback_states_from_checkpoint=stopping,  # how many validations it has waited
        metric_for_best_model=f"eval_{run_.task.metrics[0]}" if stopping else None,
        greater_is_better=True if stopping else None,
        dataloader_pin_memory=not on_cpu,
        remove_unused_columns=False,
        label_names=["labels"],
        report_to="none",
        run_name=run_.planned.run_id,
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    passes = settings.accumulation * arguments.world_size
    if settings.batch_size % passes:
        got = f"{settings.batch_size} for {arguments.world_size} processes x {settings.accumulation}"
        fail(OptionError, "batch_size must be a multiple of processes times accumulation", got, "Change one of them.")
    arguments.per_device_train_batch_size = settings.batch_size // passes
    return arguments
