"""Points that follow a loss by themselves, without a model: what a loss asks of a cloud."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isonb.numerics.rows import centered

__all__ = ["walk"]


def walk(
    points: Tensor, loss: Callable[[Tensor], Tensor] | None, *, steps: int, length: float, seed: int = 0
) -> Tensor:
    """Move points (n, d) down the gradient of ``loss``, or in random directions where it is None.

    Each of ``steps`` steps moves all points together by ``length / steps`` times the norm of their deviations from
    their mean at the start, whatever the size of the gradient: losses of different scale travel equally far.

    >>> cloud = torch.tensor([[0.0, 0.0], [2.0, 0.0]], dtype=torch.float64)
    >>> walk(cloud, lambda x: (x[0] - x[1]).square().sum(), steps=1, length=0.5)
    tensor([[0.5000, 0.0000],
            [1.5000, 0.0000]], dtype=torch.float64)
    """
    generator = torch.Generator().manual_seed(seed)
    stride = length / steps * float(centered(points).norm())
    at = points
    for _ in range(steps):
        if loss is None:
            move = torch.randn(at.shape, generator=generator, dtype=at.dtype)
        else:
            live = at.detach().clone().requires_grad_()
            (slope,) = torch.autograd.grad(loss(live), live)
            move = -slope
        at = at + stride * move / move.norm().clamp_min(1e-12)
    return at
