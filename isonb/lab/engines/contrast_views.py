"""The second phase of a similarity run: a module is trained on the vectors of a frozen encoder, without labels."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.errors import DegenerateError, fail
from isonb.lab.engines.contrast import Series, info_nce
from isonb.lab.engines.second_phase import balanced, descend, shuffled
from isonb.lab.methods import SecondPhase

__all__ = ["fit_views"]


def fit_views(
    phase: SecondPhase, first: Tensor, second: Tensor, *, temperature: float, seed: int, progress: bool = True
) -> Series:
    """Train ``phase.module`` in place on two dropout views (n, d) of the same sentences; returns losses by update.

    The contrastive loss stands for the task loss; ``phase.penalty`` sees the module's output for the first view, and
    ``phase.joint`` balances the two. There are no rows kept apart, so all epochs are run. A module without anything to
    train is left as it is. Series: ``step.second.`` and task, isotropy, loss, and the running means of ``joint``.
    Raises :class:`~isonb.errors.DegenerateError` where a loss isn't finite.
    """
    parts = [phase.module, *(part for part in (phase.penalty, phase.joint) if part is not None)]
    trained = [p for p in phase.module.parameters() if p.requires_grad]
    series: Series = {}
    if not trained:
        return series
    for part in parts:
        part.to(first.device).train()
    draw = torch.Generator().manual_seed(seed)

    def losses(rows: Tensor, step: int) -> dict[str, Tensor]:
        points, others = (phase.module(view[rows.to(view.device)]) for view in (first, second))
        found = balanced(phase, info_nce(points, others, temperature), points)
        _finite(found["loss"], step)
        return found

    for _ in descend(phase, trained, lambda _: shuffled(len(first), phase.batch_size, draw), losses, series, progress):
        pass  # no rows are kept apart that could end it early
    for part in parts:
        part.eval().requires_grad_(False)
    return series


def _finite(loss: Tensor, step: int) -> None:
    if not bool(torch.isfinite(loss.detach())):
        got = f"{loss.item()} at update {step}"
        fail(DegenerateError, "the loss of the second phase must be finite", got, "Lower its learning rate.")
