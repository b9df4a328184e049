"""Training on the task with the Trainer, tracked, and taken up again where it stopped.

Rows come in an order that several processes share; a method has learning rates of its own; a bar shows how far it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback

from isonb.errors import fail
from isonb.integrations.trainer import IsotropyTrainerMixin
from isonb.lab.data.batches import Collator, LengthGrouped, LongestFirst
from isonb.lab.engines.checkpoint import Seal, last_whole
from isonb.lab.engines.reports import Reports
from isonb.lab.engines.stages import EVALUATED, Finetuning, Series
from isonb.lab.measuring.tracker import Tracker, series_from_log
from isonb.lab.options import OptionError
from isonb.lab.runs.arithmetic import bfloat16_pays
from isonb.lab.runs.manifest import Clock
from isonb.lab.runs.settings import FinetuneSettings
from isonb.runtime.files import note_progress

__all__ = ["Bar", "LabTrainer", "PenaltyTrainer", "train"]

# by name: the notebook's can't be imported without IPython
CHATTY = ("PrinterCallback", "ProgressCallback", "NotebookProgressCallback")
SCHEDULES = {"linear": "linear", "cosine": "cosine", "constant": "constant_with_warmup"}


class LabTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose batches follow from the seed and the epoch alone, however many processes share one."""

    def __init__(self, *args: Any, settings: FinetuneSettings, rates: Mapping[str, float], **kwargs: Any) -> None:
        self.settings, self.rates = settings, dict(rates)
        self.on_validation: Callable[[Tensor], object] | None = None
        super().__init__(*args, **kwargs)

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """The Trainer's, which then hands the sentence vectors of a validation to ``on_validation``."""
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        if metric_key_prefix == "eval" and self.on_validation is not None:
            self.on_validation(torch.as_tensor(output.predictions[1]))
        return output

    def _get_train_sampler(self, train_dataset: Any = None) -> LengthGrouped:
        rows = self.train_dataset if train_dataset is None else train_dataset
        settings = self.settings
        return LengthGrouped(rows.lengths, settings.batch_size, settings.seed, settings.group_by_length)

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW: decay on weights of two axes outside norms, a method's own learning rates for its layer."""
        if getattr(self, "optimizer", None) is None:
            decayed = set(self.get_decay_parameter_names(self.model))
            groups: dict[tuple[float, float], list[Tensor]] = {}
            for name, parameter in self.model.named_parameters():
                if parameter.requires_grad:
                    rate = self.rates.get(name.removeprefix("layer."), self.args.learning_rate)
                    rate = rate if name.startswith("layer.") else self.args.learning_rate
                    decay = self.args.weight_decay if name in decayed else 0.0
                    groups.setdefault((rate, decay), []).append(parameter)
            listed = [{"params": some, "lr": rate, "weight_decay": decay} for (rate, decay), some in groups.items()]
            self.optimizer = torch.optim.AdamW(listed, lr=self.args.learning_rate, fused=True)
        optimizer: torch.optim.Optimizer = self.optimizer
        return optimizer


class PenaltyTrainer(IsotropyTrainerMixin, LabTrainer):
    """A :class:`LabTrainer` with an isotropy penalty, which joins after ``waits`` epochs."""

    def __init__(self, *args: Any, waits: int = 0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if waits:
            self.add_callback(_Late(self, waits))


class _Late(TrainerCallback):  # type: ignore[misc]
    """Lets the penalty weigh nothing in the first epochs."""

    def __init__(self, trainer: PenaltyTrainer, waits: int) -> None:
        self.trainer, self.waits, self.weight = trainer, waits, trainer.penalty_weight

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A resumed run begins its epoch anew, too."""
        self.trainer.penalty_weight = self.weight if round(state.epoch or 0) >= self.waits else 0.0


def _trainer_class(run_: Finetuning) -> tuple[type[LabTrainer], dict[str, Any]]:
    """The class for a run, and the arguments that its penalty adds. A decoder's "cls" is its last token."""
    if run_.penalty is None:
        return LabTrainer, {}
    pooling = run_.method.points()
    points = "last" if run_.model.decoder and pooling.mode == "cls" else pooling.mode
    options = {"points": points, "layers": pooling.layers, "include_pads": pooling.include_pads}
    return PenaltyTrainer, {"penalty": run_.penalty, "waits": run_.method.waits(), **options}


class Bar(TrainerCallback):  # type: ignore[misc]
    """A bar over the updates, on a terminal or in a notebook, and a note of them for those who wait elsewhere."""

    def __init__(self, name: str, progress: bool) -> None:
        self.name, self.off = name, None if progress else True
        self.bar: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open it, at the update a resumed run stands at."""
        from tqdm import tqdm

        if state.is_world_process_zero:
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, desc=self.name, disable=self.off)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """One update on."""
        if self.bar is not None:
            self.bar.update(1)
            note_progress(args.output_dir, state.global_step, state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """The last loss beside it."""
        if self.bar is not None and logs and "loss" in logs:
            self.bar.set_postfix_str(f"loss {logs['loss']:.4g}", refresh=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close it."""
        if self.bar is not None:
            self.bar.close()


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

    ``clock`` is told what measuring takes, ``reports`` what the Trainer logs.
    """
    settings, material = run_.settings, run_.material
    kind, extra = _trainer_class(run_)
    watched = material.validation if material.held is None else material.held
    shown = LongestFirst(watched.tokens)
    trainer = kind(
        model=run_.model,
        args=_arguments(run_, folder, resumable),
        data_collator=Collator(run_.encoder.tokenizer),
        train_dataset=material.train.tokens,
        eval_dataset=shown,
        compute_metrics=lambda said: watched.score(shown.back(said.predictions[0])),
        settings=settings,
        rates=run_.method.learning_rates(),
        **extra,
    )
    _callbacks(trainer, settings, Bar(f"{settings.task} {run_.method.name}", progress))
    tracker = Tracker(run_.model.pooling, settings.track_every, measuring=(clock or Clock()).measuring)
    trainer.add_callback(tracker)
    if reports is not None and reports.trackers:
        trainer.add_callback(reports)
    classes = torch.tensor(watched.gold) if run_.task.kind == "classification" else None
    size = settings.cloud_examples
    trainer.on_validation = lambda points: tracker.validation(
        shown.back(points)[:size], None if classes is None else classes[:size]
    )
    last = last_whole(folder) if resumable else None
    trainer.train(resume_from_checkpoint=None if last is None else str(last))
    trainer.compute_metrics = None  # what follows isn't the split that was watched
    reported = LongestFirst(material.validation.tokens)
    logits = reported.back(trainer.predict(reported).predictions[0])
    return logits, series_from_log(trainer.state.log_history)


def _callbacks(trainer: Any, settings: FinetuneSettings, bar: Any) -> None:
    from transformers import EarlyStoppingCallback

    for callback in list(trainer.callback_handler.callbacks):
        if type(callback).__name__ in CHATTY:
            trainer.remove_callback(callback)
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
