"""The Trainer of the lab: rows in an order that several processes share, a method's learning rates, a bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback

from isonb.lab.data.batches import LengthGrouped
from isonb.lab.methods import Method
from isonb.lab.runs.settings import FinetuneSettings
from isonb.runtime.progress import Progress
from isonb.training.trainer import IsotropyTrainerMixin

__all__ = ["Bar", "LabTrainer", "PenaltyTrainer", "trainer_class"]


class LabTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose batches follow from the seed and the epoch alone, however many processes share one."""

    def __init__(self, *args: Any, settings: FinetuneSettings, rates: Mapping[str, float], **kwargs: Any) -> None:
        self.settings, self.rates = settings, dict(rates)
        self.on_validation: Callable[[Tensor], object] | None = None
        super().__init__(*args, **kwargs)

    def evaluation_loop(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """The Trainer's, which then hands the sentence vectors of a validation to ``on_validation``."""
        found = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        if metric_key_prefix == "eval" and self.on_validation is not None:
            self.on_validation(torch.as_tensor(found.predictions[1]))
        return found

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
            parts = [{"params": part, "lr": rate, "weight_decay": decay} for (rate, decay), part in groups.items()]
            self.optimizer = torch.optim.AdamW(parts, lr=self.args.learning_rate, fused=True)
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


def trainer_class(method: Method, decoder: bool) -> tuple[type[LabTrainer], dict[str, Any]]:
    """The class for a method, and the arguments that its penalty adds. A decoder's "cls" is its last token."""
    penalty = method.penalty()
    if penalty is None:
        return LabTrainer, {}
    pooling = method.points()
    points = "last" if decoder and pooling.mode == "cls" else pooling.mode
    options = {"points": points, "layers": pooling.layers, "include_pads": pooling.include_pads}
    return PenaltyTrainer, {"penalty": penalty, "waits": method.waits(), **options}


class Bar(TrainerCallback):  # type: ignore[misc]
    """A bar over the updates, on a terminal or in a notebook, and a note of them for those who wait elsewhere."""

    def __init__(self, name: str, progress: bool) -> None:
        self.name, self.off = name, None if progress else True
        self.bar: Any = None
        self.progress: Progress | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open it, at the update a resumed run stands at."""
        from tqdm import tqdm

        if state.is_world_process_zero:
            self.progress = Progress(args.output_dir)
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, desc=self.name, disable=self.off)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """One update on."""
        if self.bar is not None:
            self.bar.update(1)
        if self.progress is not None:
            self.progress.note(state.global_step, state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """The last loss beside it."""
        if self.bar is not None and logs and "loss" in logs:
            self.bar.set_postfix_str(f"loss {logs['loss']:.4g}", refresh=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close it."""
        if self.bar is not None:
            self.bar.close()
