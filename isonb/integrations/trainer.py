"""Hugging Face Trainer with an isotropy penalty: ``class MyTrainer(IsotropyTrainerMixin, Trainer)``.

The penalty joins the loss in training only, so ``eval_loss`` keeps its meaning, and is logged apart. One update is the
same for one process or several and for any number of gradient accumulation steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail, needs
from isonb.integrations.accelerate import own_rows
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.union import (
    asked,
    carrying,
    penalty_gradients,
    rehearsal,
    trainable,
    value_of,
    warn_of_half_weights,
)
from isonb.losses.istar import ROWS, ShrinkageCovariance
from isonb.numerics.distributed import process_group
from isonb.points import Layers, Mode

with needs("isonb.integrations.trainer", "hf"):
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
    from transformers import TrainerCallback
    from transformers.trainer_utils import get_last_checkpoint

if TYPE_CHECKING:
    from transformers import Trainer as _Base
else:
    _Base = object


class IsotropyTrainerMixin(_Base):  # type: ignore[misc]
    r"""Adds ``weight * penalty(points)`` to the training loss of a :class:`transformers.Trainer`.

    Put it before the Trainer in the bases; its arguments are keywords, the rest goes to the Trainer. The papers take
    ``IStarLoss`` with ``points="tokens"`` and ``layers="all"``, ``PersistentEntropyLoss`` with ``points="cls"``,
    ``CosRegLoss`` with ``points="tokens"``.

    The penalty sees the whole effective batch: all micro-batches, and all processes if it reduces itself over them, as
    the losses of isonb do. With accumulation each micro-batch but the first passes the model twice for it (see
    :mod:`isonb.integrations.union`); memory stays that of one micro-batch, plus the points.

    ``"isonb_penalty"`` in the log is the mean of what was added since the last entry, as this process sees it; ``loss``
    includes it, ``eval_loss`` doesn't. What the penalty itself logs of its last call stands beside it, such as
    ``"isonb_entropy_share"`` of :class:`~isonb.losses.persistent_entropy.PersistentEntropyLoss`.

    Where a model takes a mean over its own batch and ignores ``num_items_in_batch``, as the sequence classifiers of
    transformers 5 do, the Trainer counts its loss as scaled and sums it over micro-batches and processes. This class
    finds that out once, by asking twice, and weighs such a loss by its share of the items.

    Args:
        penalty: a loss of :mod:`isonb.losses`, or a callable of points (n, d) that returns a scalar; None leaves the
            Trainer as it is. If it has a parameter ``labels``, it gets the labels of the points (n,), or None unless
            there is one integer label per sentence; for ``shrinkage_cov``, as ``IStarLoss`` has it, see below
            (``shrinkage_rows`` and ``running_shrinkage`` are refused where it uses none).
        points: "cls", "last", "mean" or "tokens" (see :func:`isonb.points.pool`), of the one transformer in the model,
            of its encoder in an encoder-decoder.
        layers: -1 for the last, a number, several, or "all" for 1..L.
        include_pads: take padding for tokens, as the released I-STAR code does.
        module: the name of another submodule that gives the vectors, such as a projection; any
            :class:`torch.nn.Module`.
        weight: of the penalty.
        per_micro_batch: average the penalties of the micro-batches instead: cheaper, and another objective.
        shrinkage_rows: at each epoch's start the covariance of so many points of the training data (all, when there are
            fewer) is measured with the model in evaluation mode, and kept in the checkpoints of that epoch.
        running_shrinkage: measure it once, when training begins; from then on the points that the penalty sees replace
            older ones (:meth:`isonb.ShrinkageCovariance.update`): cheaper by a pass an epoch, and with dropout in the
            points.
    """

    def __init__(
        self,
        *args: Any,
        penalty: Callable[..., Tensor] | None,
        points: Mode = "cls",
        layers: Layers = -1,
        include_pads: bool = False,
        module: str | None = None,
        weight: float = 1.0,
        per_micro_batch: bool = False,
        shrinkage_rows: int = ROWS,
        running_shrinkage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if self.args.n_gpu > 1:
            fix = "Launch one process a device: torchrun --nproc-per-node=N train.py (or set CUDA_VISIBLE_DEVICES)."
            fail(InputError, "each process must have one device", f"{self.args.n_gpu} under nn.DataParallel", fix)
        if not (self.is_deepspeed_enabled or self.is_fsdp_enabled):  # those keep a float32 copy
            warn_of_half_weights(self.model)
        self.penalty, self.penalty_weight, self.per_micro_batch = penalty, weight, per_micro_batch
        self.running_shrinkage = running_shrinkage
        self.pooling = Pooling(points, layers, include_pads, module)
        if penalty is not None:
            self.pooling.check(self.model)  # refuses a model that it can't read before any step
        self.shrinkage: ShrinkageCovariance | None = None
        self.resumed_from: str | Path | None = None
        self._micro_batches: list[dict[str, Any]] = []  # those of the update under way
        self._gradients: Iterator[Tensor] | None = None  # of the union's penalty at the points of each
        self._union_value: Tensor | float = 0.0
        self._ignores: bool | None = None
        self._penalty_sum: Tensor | float = 0.0
        self._penalty_updates = 0
        if penalty is not None and asked(penalty, shrinkage_cov=None):
            # layer 0, pads included: the points come chosen
            self.shrinkage = ShrinkageCovariance(0, True, shrinkage_rows, forward=self._points_of)
            self.add_callback(_ShrinkageRefresh(self, self.shrinkage))
        elif penalty is not None and (running_shrinkage or shrinkage_rows != ROWS):
            invariant = "shrinkage_rows and running_shrinkage must come with a penalty that uses a shrinkage_cov"
            fail(InputError, invariant, repr(penalty), "Leave them out, or pass an IStarLoss with zeta above 0.")

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs: Any) -> Any:
        """The Trainer's training; the shrinkage covariance goes on with the checkpoint, too."""
        if resume_from_checkpoint is True:
            resume_from_checkpoint = get_last_checkpoint(self.args.output_dir) or True
        self.resumed_from = resume_from_checkpoint if isinstance(resume_from_checkpoint, str | Path) else None
        return super().train(resume_from_checkpoint=resume_from_checkpoint, **kwargs)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
        """The Trainer's prefetch of one update's micro-batches, remembered for the rehearsal."""
        batches, items = super().get_batch_samples(*args, **kwargs)
        self._micro_batches, self._gradients = batches, None
        self._penalty_updates += bool(batches)  # none are left where an epoch's length isn't known
        return batches, items

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The Trainer's loss; in training, plus this micro-batch's share of the penalty."""
        items = num_items_in_batch
        if self.penalty is None or not self.model.training:
            return super().compute_loss(model, inputs, return_outputs=return_outputs, num_items_in_batch=items)
        count = max(len(self._micro_batches), 1)
        ignored = self._items_ignored(model, inputs, items)
        loss, outputs, points, labels = self._forward(model, inputs, items)
        if count > 1 and not self.per_micro_batch and self._gradients is None:
            self._gradients = self._rehearse(model, items, points, labels)
        if self._gradients is None:
            added = self._penalty_of(trainable(points), labels) / count
        else:
            added = carrying(trainable(points), next(self._gradients)) + self._union_value / count
        self._penalty_sum += added.detach()
        if ignored:  # a mean over this micro-batch: weigh it by its share of the update's items
            loss = loss * inputs["labels"].ne(-100).sum() / items
        loss = loss + (added if self._counts_as_scaled(items) else count * added)
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """The Trainer's log, with the penalty beside the training loss."""
        if "loss" in logs and self.penalty is not None:
            logs["isonb_penalty"] = float(self._penalty_sum) / max(self._penalty_updates, 1)
            logs |= {f"isonb_{name}": float(value) for name, value in getattr(self.penalty, "logged", {}).items()}
            self._penalty_sum, self._penalty_updates = 0.0, 0
        super().log(logs, *args, **kwargs)

    def _penalty_of(self, points: Tensor, labels: Tensor | None) -> Tensor:
        assert self.penalty is not None
        cov = None if self.shrinkage is None else self.shrinkage.cov
        value = value_of(self.penalty, points, labels=labels, shrinkage_cov=cov)
        if self.shrinkage is not None and self.running_shrinkage:
            self.shrinkage.update(points)
        return self.penalty_weight * value

    def _points_of(self, model: nn.Module, batch: dict[str, Any]) -> tuple[list[Tensor], None]:
        inputs = self._prepare_inputs(batch)
        with self.compute_loss_context_manager(), self.pooling.watch(model) as states:
            model(**inputs)
        rows = partial(own_rows, self.accelerator)  # the last batch is filled up with copies
        return [self.pooling.points(states, inputs, rows)[0].unsqueeze(0)], None

    def _forward(self, model: nn.Module, inputs: dict[str, Any], items: Tensor | int | None) -> Any:
        """Task loss, outputs, points and labels of one micro-batch. The Trainer may pop labels, hence the copy."""
        with self.pooling.watch(self.model) as states:
            loss, outputs = super().compute_loss(model, dict(inputs), return_outputs=True, num_items_in_batch=items)
        return loss, outputs, *self.pooling.points(states, inputs)

    def _rehearse(
        self, model: nn.Module, items: Tensor | int | None, points: Tensor, labels: Tensor | None
    ) -> Iterator[Tensor]:
        """Gradients at the points of each micro-batch; those of the first, which has its graph already, are given."""
        with rehearsal(self.model):
            others = [self._forward(model, self._prepare_inputs(batch), items)[2:] for batch in self._micro_batches[1:]]
        self._union_value, gradients = penalty_gradients(self._penalty_of, [(points, labels), *others])
        return iter(gradients)

    def _counts_as_scaled(self, items: Tensor | int | None) -> bool:
        """Whether the Trainer takes the loss for one that is summed, not averaged, over micro-batches."""
        if (scaled := getattr(self, "loss_is_scaled_for_ga", None)) is not None:
            return bool(scaled)
        return bool(self.model_accepts_loss_kwargs and items is not None) or self.compute_loss_func is not None

    def _items_ignored(self, model: nn.Module, inputs: dict[str, Any], items: Tensor | int | None) -> bool:
        """Whether the Trainer takes for scaled a loss that doesn't look at ``items``; asked once, by doubling them."""
        alone = len(self._micro_batches) <= 1 and self.args.world_size == 1
        if alone or items is None or getattr(self, "loss_is_scaled_for_ga", None) is not None:
            return False
        if self._ignores is None:
            losses = []
            for count in (items, 2 * items):
                with rehearsal(self.model):
                    losses.append(float(super().compute_loss(model, dict(inputs), num_items_in_batch=count)))
            self._ignores = math.isclose(*losses, rel_tol=0.1)
        return self._ignores


class _ShrinkageRefresh(TrainerCallback):  # type: ignore[misc]
    """Measures the shrinkage covariance of I-STAR when an epoch or, where it runs on, the training begins.

    It is kept in the checkpoints. A training that goes on in the middle of an epoch goes on with that of this epoch.
    """

    FILE = "isonb_shrinkage.safetensors"

    def __init__(self, trainer: IsotropyTrainerMixin, shrinkage: ShrinkageCovariance) -> None:
        self.trainer, self.shrinkage, self.epoch = trainer, shrinkage, 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.shrinkage.load_state_dict({})

    def on_epoch_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any, **kwargs: Any) -> None:
        self.epoch = int(state.epoch or 0)
        saved = self._saved()
        if saved:
            device = self.trainer.args.device
            self.shrinkage.load_state_dict({name: value.to(device) for name, value in saved.items()})
        if saved or (self.trainer.running_shrinkage and self.shrinkage.state_dict()):
            return
        if hasattr(train_dataloader, "set_epoch"):  # it stands at the order of the epoch before, also when resumed
            train_dataloader.set_epoch(max(self.epoch - 1, 0))
        self.shrinkage.refresh(self.trainer.model, train_dataloader)
        if hasattr(train_dataloader, "end"):  # left early, Accelerate's loader would count as under way
            train_dataloader.end()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if args.should_save and folder.is_dir():
            tensors = {name: value.cpu().contiguous() for name, value in self.shrinkage.state_dict().items()}
            save_file(tensors, folder / self.FILE, {"epoch": str(self.epoch)})

    def _saved(self) -> dict[str, Tensor]:
        """What the checkpoint resumed from has of this epoch (of any, where it runs on): that of the first process."""
        folder, self.trainer.resumed_from = self.trainer.resumed_from, None
        found: list[dict[str, Tensor]] = [{}]
        if folder is not None and (file := Path(folder) / self.FILE).is_file():
            with safe_open(file, "pt") as header:
                same = header.metadata()["epoch"] == str(self.epoch)
            found = [load_file(file) if same or self.trainer.running_shrinkage else {}]
        if (group := process_group("world")) is not None:
            torch.distributed.broadcast_object_list(found, 0, group)
        return found[0]
