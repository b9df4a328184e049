"""What a method does to the features of a frozen encoder: cached once, so an epoch costs a few matrix products.

:func:`second` is the stage of a fine-tuning run. :func:`fit_second` follows a task's labels, :func:`fit_views` two
views of the same sentences.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from isonb.errors import FitWarning
from isonb.integrations.union import asked
from isonb_lab.encoders.task_model import TaskModel, task_loss
from isonb_lab.engines.contrast import info_nce
from isonb_lab.engines.stages import Finetuning, Series, Split, finite
from isonb_lab.measuring.cloud import cloud_measures, variance_curves
from isonb_lab.methods import SecondPhase

CLOUD_ROWS = 1500  # points that are measured
AT_ONCE = 512  # rows of a forward pass that only reads logits


@dataclass(frozen=True)
class Features:
    """Cached features of some rows: vectors (N, d) with labels, or for a span task one (T_i, d) tensor a window."""

    rows: Sequence[Tensor] | Tensor
    labels: Tensor

    @property
    def cloud(self) -> Tensor:
        """Every vector as one cloud (n, d)."""
        return self.rows if isinstance(self.rows, Tensor) else torch.cat(list(self.rows))

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Features, mask (spans only) and labels of the rows ``index``."""
        labels = self.labels[index]
        if isinstance(self.rows, Tensor):
            return self.rows[index], None, labels
        windows = [self.rows[i] for i in index.tolist()]
        lengths = torch.tensor([len(window) for window in windows], device=labels.device)
        padded = pad_sequence(windows, batch_first=True)
        return padded, torch.arange(padded.shape[1], device=labels.device)[None] < lengths[:, None], labels


class SecondModel(nn.Module):
    """Features -> ``phase.module`` -> head -> logits. The head is the fine-tuned model's, or a new linear one."""

    def __init__(self, model: TaskModel, phase: SecondPhase, dim: int, outputs: int) -> None:
        super().__init__()
        self.module, self.kind = phase.module, model.kind
        with torch.no_grad():
            width = self.module(torch.zeros(2, dim, device=next(model.parameters()).device)).shape[-1]
        if phase.head == "new":
            self.head: nn.Module = nn.Linear(width, outputs)
            self.read: Callable[..., Tensor] = lambda z, mask: self.head(z)
        else:
            self.head = copy.deepcopy(model, {id(model.encoder): nn.Identity()})  # the encoder itself has no part in it
            del self.head.encoder
            self.read = self.head.head
        self.head.requires_grad_(phase.head != "frozen")
        self.head.eval()  # no dropout in this phase

    def forward(self, features: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits and the points that the penalty sees (n, k)."""
        z = self.module(features)
        logits = self.read(z, mask)
        if mask is not None:
            logits = logits.masked_fill(~mask[..., None], torch.finfo(logits.dtype).min)
        return logits, z if mask is None else z[mask]

    @torch.no_grad()
    def logits(self, features: Features) -> Tensor:
        """Logits of every row, (N, C), or of every window, (N, T, 2); ``module`` is in evaluation mode for it."""
        was = self.module.training
        self.eval()
        batches: list[Tensor] = []
        for index in torch.split(torch.arange(len(features.rows), device=features.labels.device), AT_ONCE):
            rows, mask, _ = features.batch(index)
            logits = self(rows, mask)[0].float().cpu()
            batches += [logits] if mask is None else [row[m.cpu()] for row, m in zip(logits, mask, strict=True)]
        self.module.train(was)
        return torch.cat(batches) if isinstance(features.rows, Tensor) else pad_sequence(batches, batch_first=True)


def fit_second(
    model: SecondModel,
    phase: SecondPhase,
    train: Features,
    score: Callable[[SecondModel], dict[str, float]] | None = None,
    *,
    seed: int,
    select: bool = False,
    progress: bool = False,
) -> Series:
    """Train what ``phase`` leaves trainable; returns the series of the losses by update and of ``score`` by epoch.

    With ``select`` the first score decides (it must come from held-out rows): training stops after ``phase.patience``
    epochs without improvement, and the best state is put back. Without, the last state of all epochs stays. With
    nothing to train, nothing is done.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    series: Series = {}
    if not trained:
        return series

    def batches(epoch: int) -> Iterable[Tensor]:
        draw = torch.Generator().manual_seed((seed << 20) + epoch)
        return _shuffled(len(train.rows), phase.batch_size, draw)

    def losses(rows: Tensor, step: int) -> dict[str, Tensor]:
        features, mask, labels = train.batch(rows.to(train.labels.device))
        logits, points = model(features, mask)
        single = labels if labels.ndim == 1 and not labels.is_floating_point() else None
        return _balanced(phase, task_loss(model.kind, logits, labels), points, single)

    model.module.train()
    best, best_state, waited = -float("inf"), copy.deepcopy(model.state_dict()), 0
    for step in _descend(phase, trained, batches, losses, series, progress):
        scores = {} if score is None else score(model)
        for name, value in scores.items():
            series.setdefault(f"step.second.{name}", []).append((step, value))
        if not select:
            continue
        main = next(iter(scores.values()))
        waited = 0 if main > best else waited + 1
        if main > best:
            best, best_state = main, copy.deepcopy(model.state_dict())
        if phase.patience is not None and waited >= phase.patience:
            break
    if select:
        model.load_state_dict(best_state)
    model.eval()
    return series


def fit_views(
    phase: SecondPhase, first: Tensor, second: Tensor, *, temperature: float, seed: int, progress: bool = True
) -> Series:
    """Train ``phase.module`` in place on two dropout views (n, d) of the same sentences; returns losses by update.

    The contrastive loss stands for the task loss; ``phase.penalty`` sees the module's output for the first view, and
    ``phase.joint`` balances the two. There are no held-out rows, so all epochs are run. A module without anything to
    train is left as it is. Series: ``step.second.`` and task, isotropy, loss, and the running means of ``joint``.
    Raises :class:`~isonb.errors.DegenerateError` where a loss isn't finite.
    """
    modules = [module for module in (phase.module, phase.penalty, phase.joint) if module is not None]
    trained = [p for p in phase.module.parameters() if p.requires_grad]
    series: Series = {}
    if not trained:
        return series
    for module in modules:
        module.to(first.device).train()
    draw = torch.Generator().manual_seed(seed)

    def losses(rows: Tensor, step: int) -> dict[str, Tensor]:
        points, others = (phase.module(view[rows.to(view.device)]) for view in (first, second))
        values = _balanced(phase, info_nce(points, others, temperature), points)
        finite(values["loss"], "the second phase", step)
        return values

    shuffled = lambda epoch: _shuffled(len(first), phase.batch_size, draw)  # noqa: E731
    for _ in _descend(phase, trained, shuffled, losses, series, progress):
        pass  # no held-out rows could end it early
    for module in modules:
        module.eval().requires_grad_(False)
    return series


def _descend(
    phase: SecondPhase,
    trained: Sequence[Tensor],
    batches: Callable[[int], Iterable[Tensor]],
    losses: Callable[[Tensor, int], dict[str, Tensor]],
    series: Series,
    progress: bool,
) -> Iterator[int]:
    """Minimize ``losses(rows, update)["loss"]`` over ``batches(epoch)``; after each epoch, the updates so far.

    Every loss is logged in ``series`` as ``step.second.<name>``.
    """
    from tqdm import tqdm

    optimizer = torch.optim.AdamW(trained, lr=phase.learning_rate, weight_decay=0.0)
    step = 0
    for epoch in tqdm(range(phase.epochs), desc="second phase", disable=None if progress else True, leave=False):
        for rows in batches(epoch):
            step += 1
            with torch.enable_grad():
                values = losses(rows, step)
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(values["loss"])
            optimizer.step()
            for name, value in values.items():
                series.setdefault(f"step.second.{name}", []).append((step, float(value.detach())))
        yield step


def _shuffled(rows: int, size: int, draw: torch.Generator) -> Iterable[Tensor]:
    """Shuffled batches of like size; a last one of fewer than half the rows joins the one before."""
    return torch.randperm(rows, generator=draw).tensor_split(max(1, round(rows / size)))


def _balanced(phase: SecondPhase, task: Tensor, points: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
    """``task``, the penalty on ``points`` as ``isotropy``, their sum by ``phase.joint`` as ``loss``, and its means."""
    if phase.penalty is None:
        return {"task": task, "loss": task}
    isotropy = phase.penalty(points, **asked(phase.penalty, labels=labels))
    if phase.joint is None:
        return {"task": task, "isotropy": isotropy, "loss": task + isotropy}
    loss = phase.joint(task, isotropy)
    means = {name: value for name, value in phase.joint.named_buffers() if value.is_floating_point()}
    return {"task": task, "isotropy": isotropy, "loss": loss, **means}


def second(
    run_: Finetuning, metrics: dict[str, float | None], series: Series, progress: bool
) -> tuple[Tensor, nn.Module]:
    """Stage 3 on cached features: the logits of the validation rows after it, and the module that it has trained."""
    seed, cached = run_.settings.seed, {name: features(run_, split) for name, split in run_.splits.items()}
    train, validation, held_out = cached["train"], cached["validation"], cached.get("held")

    def score(model: SecondModel) -> dict[str, float]:
        return run_.watched.score(model.logits(validation if held_out is None else held_out))

    torch.manual_seed(seed)
    phase = run_.method.second(train.cloud, seed)
    model = SecondModel(run_.model, phase, train.cloud.shape[-1], run_.task.outputs).to(run_.device)
    select = held_out is not None
    series.update(fit_second(model, phase, train, score, seed=seed, select=select, progress=progress))
    main = run_.task.metrics[0]
    scores = [value for _, value in series.get(f"step.second.{main}", ())]
    if phase.cut_short(scores, phase.epochs, phase.patience):
        warnings.warn(
            f"second phase: {main} still rose when training ended, after {phase.epochs} passes. What was trained isn't "
            "finished, and its score decides nothing. Allow more passes where the method has an option for them.",
            FitWarning,
            stacklevel=2,
        )
    with torch.no_grad():
        points = phase.module(validation.cloud)[:CLOUD_ROWS]
    metrics.update({f"end.second.{name}": v for name, v in cloud_measures(points).items() if v is not None})
    series.update({f"k.end.second.{name}": curve for name, curve in variance_curves(points).items()})
    return model.logits(validation), phase.module


@torch.no_grad()
def features(run_: Finetuning, split: Split) -> Features:
    """What the head reads (or a method's own features) of every row of a split, computed once."""
    run_.model.eval()
    span = run_.task.kind == "span"
    rows: list[Tensor] = []
    labels = []
    for batch in run_.batches(split):
        states, mask = run_.hidden(batch)
        vector = run_.model.vector(states[-1], mask)
        custom = None if span else run_.method.features(torch.stack(states), mask)
        vector = vector if custom is None else custom
        rows += [vector] if vector.ndim == 2 else [row[m] for row, m in zip(vector, mask.bool(), strict=True)]
        labels.append(batch["labels"])
    return Features(rows if span else torch.cat(rows), torch.cat(labels))
