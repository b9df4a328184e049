"""The second phase of a similarity run: a module is trained on the vectors of a frozen encoder, without labels."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import DegenerateError, fail
from isonb.integrations.union import asked
from isonb.lab.engines.contrast import Series, info_nce
from isonb.lab.methods import SecondPhase

__all__ = ["fit_views"]


def fit_views(
    phase: SecondPhase, first: Tensor, second: Tensor, *, temperature: float, seed: int, progress: bool = True
) -> Series:
    """Train ``phase.module`` in place on two dropout views (n, d) of the same sentences; returns losses by update.

    The contrastive loss stands for the task loss; ``phase.penalty`` sees the module's output for the first view, and
    ``phase.joint`` balances the two. There are no rows kept apart, so all epochs are run. A module without anything to
    train is left as it is. Series: ``step.second.`` and task, isotropy, loss, and the running means of ``joint``.
    Raises :class:`~isonb.checks.DegenerateError` where a loss isn't finite.
    """
    from tqdm import tqdm

    parts = [phase.module, *(part for part in (phase.penalty, phase.joint) if part is not None)]
    trained = [p for p in phase.module.parameters() if p.requires_grad]
    series: Series = {}
    if not trained:
        return series
    for part in parts:
        part.to(first.device).train()
    optimizer = torch.optim.AdamW(trained, lr=phase.learning_rate, weight_decay=0.0)
    draw, step = torch.Generator().manual_seed(seed), 0
    count = max(1, round(len(first) / phase.batch_size))
    with torch.enable_grad():
        for _ in tqdm(range(phase.epochs), "second phase", leave=False, disable=None if progress else True):
            for rows in torch.randperm(len(first), generator=draw).tensor_split(count):
                step += 1
                losses = _losses(phase, first[rows.to(first.device)], second[rows.to(first.device)], temperature)
                _finite(losses["loss"], step)
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(losses["loss"])
                optimizer.step()
                for name, value in losses.items():
                    series.setdefault(f"step.second.{name}", []).append((step, float(value.detach())))
    for part in parts:
        part.eval().requires_grad_(False)
    return series


def _losses(phase: SecondPhase, first: Tensor, second: Tensor, temperature: float) -> dict[str, Tensor]:
    points, others = phase.module(first), phase.module(second)
    task = info_nce(points, others, temperature)
    if phase.penalty is None:
        return {"task": task, "loss": task}
    isotropy = phase.penalty(points, **asked(phase.penalty, labels=None))
    if phase.joint is None:
        return {"task": task, "isotropy": isotropy, "loss": task + isotropy}
    total = phase.joint(task, isotropy)
    means = {name: value for name, value in phase.joint.named_buffers() if value.is_floating_point()}
    return {"task": task, "isotropy": isotropy, "loss": total, **means}


def _finite(loss: Tensor, step: int) -> None:
    if not bool(torch.isfinite(loss.detach())):
        got = f"{loss.item()} at update {step}"
        fail(DegenerateError, "the loss of the second phase must be finite", got, "Lower its learning rate.")
