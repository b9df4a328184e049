"""Training on the features of a frozen encoder: cached once, so an epoch costs a few matrix products."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from isonb.integrations.union import asked
from isonb.lab.encoders.task_model import TaskModel, task_loss
from isonb.lab.methods import SecondPhase

__all__ = ["Features", "SecondModel", "fit_second"]


@dataclass(frozen=True)
class Features:
    """Cached features of some rows: vectors (N, d) with labels, or for a span task one (T_i, d) tensor a window."""

    rows: Sequence[Tensor] | Tensor
    labels: Tensor

    @property
    def cloud(self) -> Tensor:
        """Every vector as one cloud (n, d)."""
        return self.rows if isinstance(self.rows, Tensor) else torch.cat(list(self.rows))

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """Features, mask (spans only) and labels of the rows ``index``."""
        labels = self.labels[index]
        if isinstance(self.rows, Tensor):
            return self.rows[index], None, labels
        parts = [self.rows[i] for i in index.tolist()]
        lengths = torch.tensor([len(part) for part in parts], device=labels.device)
        padded = pad_sequence(parts, batch_first=True)
        mask = torch.arange(padded.shape[1], device=labels.device)[None] < lengths[:, None]
        return padded, mask, labels


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
            self.head = copy.deepcopy(model)
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
    def logits(self, features: Features, size: int = 512) -> Tensor | list[Tensor]:
        """Logits of every row: (N, C), or one (T_i, 2) a window."""
        self.eval()
        found = []
        for index in torch.split(torch.arange(len(features), device=features.labels.device), size):
            rows, mask, _ = features.batch(index)
            logits = self(rows, mask)[0].float().cpu()
            found += (
                [logits] if mask is None else [part[:n] for part, n in zip(logits, mask.sum(-1).tolist(), strict=True)]
            )
        return torch.cat(found) if isinstance(features.rows, Tensor) else found


def fit_second(
    model: SecondModel,
    phase: SecondPhase,
    train: Features,
    score: Callable[[SecondModel], dict[str, float]],
    *,
    seed: int,
    select: bool,
    progress: bool = True,
) -> dict[str, list[tuple[float, float]]]:
    """Train what ``phase`` leaves trainable; returns the series of the losses by update and of ``score`` by epoch.

    With ``select`` the first score decides (it must come from rows kept apart): training stops after ``phase.patience``
    epochs without improvement, and the best state is put back. Without, the last state of all epochs stays. With
    nothing to train, nothing is done.
    """
    from tqdm import tqdm

    trained = [p for p in model.parameters() if p.requires_grad]
    series: dict[str, list[tuple[float, float]]] = {}
    if not trained:
        return series
    optimizer = torch.optim.AdamW(trained, lr=phase.learning_rate, weight_decay=0.0)
    best, best_state, waited, step = -float("inf"), copy.deepcopy(model.state_dict()), 0, 0
    for epoch in tqdm(range(phase.epochs), desc="second phase", disable=None if progress else True, leave=False):
        model.module.train()
        for index in _order(len(train), phase.batch_size, seed, epoch):
            losses = _step(model, phase, optimizer, *train.batch(index.to(train.labels.device)))
            step += 1
            for name, value in losses.items():
                series.setdefault(f"step.second.{name}", []).append((step, value))
        scores = score(model)
        for name, value in scores.items():
            series.setdefault(f"step.second.{name}", []).append((step, value))
        main = next(iter(scores.values()))
        better = main > best
        waited = 0 if better else waited + 1
        if select and better:
            best, best_state = main, copy.deepcopy(model.state_dict())
        if select and phase.patience is not None and waited >= phase.patience:
            break
    if select:
        model.load_state_dict(best_state)
    return series


def _order(rows: int, size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    """Shuffled batches of like size; a last one of fewer than half the rows joins the one before."""
    draw = torch.Generator().manual_seed((seed << 20) + epoch)
    count = max(1, round(rows / size))
    return iter(torch.randperm(rows, generator=draw).tensor_split(count))


def _step(
    model: SecondModel, phase: SecondPhase, optimizer: Any, rows: Tensor, mask: Tensor | None, labels: Tensor
) -> dict[str, float]:
    logits, points = model(rows, mask)
    task = task_loss(model.kind, logits, labels)
    losses = {"task": task}
    if phase.penalty is None:
        total = task
    else:
        single = labels if labels.ndim == 1 and not labels.is_floating_point() else None
        losses["isotropy"] = phase.penalty(points, **asked(phase.penalty, labels=single))
        if phase.joint is None:
            total = task + losses["isotropy"]
        else:
            total = phase.joint(task, losses["isotropy"])
            losses |= {name: value for name, value in phase.joint.named_buffers() if value.is_floating_point()}
    losses["loss"] = total
    optimizer.zero_grad(set_to_none=True)
    torch.autograd.backward(total)
    optimizer.step()
    return {name: float(value.detach()) for name, value in losses.items()}
