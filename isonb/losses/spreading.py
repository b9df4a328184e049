r"""Penalties that spread directions or pull a cloud towards a standard normal one: GOR and SIGReg.

As those of :mod:`isonb.losses.penalties`: the points of all processes of ``group`` count as one cloud, and where there
are too few of them to mean anything the penalty is 0, still attached to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isonb.checks import border, cloud, uncompiled
from isonb.errors import ShapeError, fail
from isonb.losses.penalties import attached_zero, too_few
from isonb.measures.cosine import unit_rows
from isonb.numerics.distributed import Group, all_sum, from_first, process_group
from isonb.numerics.products import gram
from isonb.points import row_count

__all__ = ["gor_penalty", "random_directions", "sigreg_penalty"]

_NODES, _REACH = 17, 3.0  # of the trapezoid rule on [0, 3]; the other half line is its mirror image


def _pair_means(unit: Tensor, group: Group) -> tuple[Tensor, Tensor]:
    """Mean cosine and mean squared cosine of all pairs of different unit rows (n, d); zero rows are no points."""
    d = unit.shape[-1]
    n = (unit.detach() != 0).any(-1).sum().to(unit.dtype)
    total = unit.sum(0)
    if process_group(group) is None:
        square = gram(unit if len(unit) < d else unit.mT).square().sum()
    else:
        sums = all_sum(torch.cat([gram(unit.mT).flatten(), total, n.unsqueeze(0)]), group)
        square, total, n = sums[: d * d].square().sum(), sums[d * d : -1], sums[-1]
    pairs = (n * (n - 1)).clamp_min(1)
    return (total.square().sum() - n) / pairs, (square - n) / pairs


@border
def gor_penalty(
    points: Tensor,
    *,
    mean_weight: float = 1.0,
    square_weight: float = 1.0,
    hinge: bool = True,
    mask: Tensor | None = None,
    group: Group = "world",
) -> Tensor:
    r"""Global orthogonal regularisation (Zhang et al. 2017): pairs are to be as orthogonal as random directions are.

    .. math:: w_1 M_1^2 + w_2 \max(0, M_2 - 1/d)

    :math:`M_1` and :math:`M_2` are the means of the cosine and of its square over pairs :math:`i \ne j`, so neither is
    biased by a small batch; 1/d is what directions without preference have, where the penalty stops. ``hinge=False``
    adds :math:`w_2 M_2` instead: with ``mean_weight=0`` that is the spread-out term of EmbeddingGemma (2025, Eq. 4).

    Shapes: points (n, d), mask (n,) optional; returns a scalar >= 0, to be minimised. Equal points count as collapse;
    zero rows have no direction and count as none. 0 for fewer than 2 points.

    >>> x = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    >>> round(gor_penalty(x).item(), 6), round(gor_penalty(x, mean_weight=0.0, hinge=False).item(), 6)
    (0.35473, 0.466667)
    """
    points, mask = cloud(points, mask, name="points", points=0, single=True)
    if too_few(points, mask, 2, group):
        return attached_zero(points)
    mean, square = _pair_means(unit_rows(points), group)
    excess = (square - 1 / points.shape[-1]).clamp_min(0) if hinge else square
    return mean_weight * mean.square() + square_weight * excess


class _WaveSums(torch.autograd.Function):
    """Sums over the rows of s (n, k) of cos(ts) and sin(ts), for each node t: (t, 2, k). Keeps s and no wave."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, nodes: Sequence[float]) -> Tensor:
        ctx.nodes = nodes
        ctx.save_for_backward(s)
        waves = [torch.stack([(t * s).cos().sum(0), (t * s).sin().sum(0)]) for t in nodes]
        return torch.stack(waves)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (s,) = ctx.saved_tensors
        total = torch.zeros_like(s)
        for t, (real, imaginary) in zip(ctx.nodes, grad, strict=True):
            total += t * (imaginary * (t * s).cos() - real * (t * s).sin())
        return total, None


@border
def sigreg_penalty(
    points: Tensor,
    directions: Tensor,
    *,
    normalize: bool = False,
    mask: Tensor | None = None,
    group: Group = "world",
) -> Tensor:
    r"""SIGReg (LeJEPA, Balestriero and LeCun 2025): how far the cloud is from a standard normal one, slice by slice.

    .. math:: \frac1K \sum_k n \int \Bigl|\frac1n \sum_j e^{i t a_k^\top x_j} - e^{-t^2/2}\Bigr|^2 e^{-t^2/2}\, dt

    over K unit ``directions`` :math:`a_k` (:func:`random_directions`): the statistic of Epps and Pulley (1983), by the
    trapezoid rule on 17 nodes of [0, 3], doubled. Mean 0 and variance 1 along every direction are part of what it asks
    for, so scale matters: unit rows in d dimensions have variance 1/d and read as collapsed. ``normalize=True`` takes
    :math:`\sqrt d\, x/|x|` for x, which leaves the shape alone to be judged.

    It grows with n where the cloud isn't normal, and is about 1.05 for a normal one of any n. A batch of 64 can't tell
    many directions from few: from about n = 1,000 on it can. At a cloud that is all zero the gradient is zero.

    Shapes: points (n, d), directions (K, d), not checked for their length, mask (n,) optional; returns a scalar >= 0,
    to be minimised. Differentiable once; the memory is that of n K numbers. 0 for fewer than 2 points (where values
    aren't looked at, not for a mask that leaves fewer). Directions of another dimension, or none:
    :class:`~isonb.errors.ShapeError`.

    >>> x = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> round(sigreg_penalty(x, torch.ones(1, 1)).item(), 5)
    0.03295
    """
    points, mask = cloud(points, mask, name="points", points=0, single=True)
    directions, _ = cloud(directions, name="directions", points=1, single=True)
    d = points.shape[-1]
    if directions.shape[-1] != d:
        fix = "Draw them with random_directions."
        fail(ShapeError, f"directions must have the {d} dimensions of the points", directions.shape[-1], fix)
    if too_few(points, mask, 2, group):
        return attached_zero(points)
    rows = unit_rows(points) * d**0.5 if normalize else points
    return _epps_pulley(rows @ directions.to(rows).mT, row_count(points, mask), group)


def _epps_pulley(slices: Tensor, count: Tensor, group: Group) -> Tensor:
    """The statistic of ``count`` real rows, the others zero, of each slice (n, K); the mean over slices."""
    step = _REACH / (_NODES - 1)
    nodes = [k * step for k in range(_NODES)]
    normal = [math.exp(-(t**2) / 2) for t in nodes]
    weights = [
        (1 if t in (nodes[0], nodes[-1]) else 2) * step * height for t, height in zip(nodes, normal, strict=True)
    ]
    waves: Tensor = _WaveSums.apply(slices, nodes)  # type: ignore[no-untyped-call]
    real = waves - (slices.shape[0] - count) * waves.new_tensor([[1.0], [0.0]])  # a zero row adds a cosine of 1
    sums = all_sum(torch.cat([real.flatten(), count.unsqueeze(0)]), group)
    n = sums[-1]
    mean = sums[:-1].view_as(waves) / n.clamp_min(1)
    apart = mean - mean.new_tensor(normal)[:, None, None] * mean.new_tensor([[1.0], [0.0]])
    return n * (apart.square().sum(1) * mean.new_tensor(weights).unsqueeze(-1)).sum(0).mean()


@border
@uncompiled
def random_directions(
    dims: int,
    count: int,
    *,
    seed: int | None = None,
    device: torch.device | str = "cpu",
    group: Group = "world",
) -> Tensor:
    """``count`` unit vectors (count, dims) in float32, drawn evenly on the sphere; all processes have the same.

    Drawn on the CPU, from a generator with that ``seed`` or from torch's own, where the first process draws for all.
    :class:`~isonb.errors.ShapeError` unless both numbers are at least 1.

    >>> found = random_directions(3, 5, seed=0)
    >>> found.shape, torch.allclose(found.norm(dim=-1), torch.ones(5))
    (torch.Size([5, 3]), True)
    """
    if dims < 1 or count < 1:
        fail(ShapeError, "dims and count must be at least 1", (dims, count), "A thousand directions are usual.")
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return from_first(unit_rows(torch.randn(count, dims, generator=generator)).to(device), group)
