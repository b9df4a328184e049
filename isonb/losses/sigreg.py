"""SIGReg (LeJEPA, Balestriero and LeCun 2025): the cloud is drawn towards a standard normal one, slice by slice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isonb.checks import check_points, check_values, validated
from isonb.errors import DegenerateError, ShapeError, fail
from isonb.losses.common import POOLED, Loss, attached_zero, too_few
from isonb.numerics.distributed import Group, all_sum, from_first
from isonb.numerics.rows import row_count, unit_rows
from isonb.options import option

_NODES, _REACH = 17, 3.0  # of the trapezoid rule on [0, 3]; the other half line is its mirror image
_WAVES = 2**15  # numbers whose waves are computed together on the CPU


@dataclass(eq=False, repr=False)
class SIGRegLoss(Loss):
    """SIGReg (LeJEPA, 2025): ``weight`` times :func:`isonb.losses.sigreg.sigreg_penalty` along random directions.

    Each call draws new directions from torch's generator, the first process for all; with a ``seed`` they are the same
    in every call.

    >>> import isonb, torch
    >>> loss = isonb.SIGRegLoss()
    >>> round(loss(torch.tensor([[-1.0], [0.0], [1.0]])).item(), 5)  # there is one direction, and its opposite
    0.03295
    """

    weight: float = option(1.0, "weight; in the paper the other loss has 1 less it")
    slices: int = option(1024, "random directions a batch", low=1)
    _: KW_ONLY
    seed: int | None = option(None, "of the directions, the same in every call; None: new ones", low=0)
    normalize: bool = option(False, "rows at length sqrt(d); otherwise as they are, scale and mean included")
    group: Group = option("world", POOLED)

    @validated
    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        """Points (n, d), mask (n,); returns a scalar."""
        points, mask = check_points(points, mask, name="points", points=0, single=True, look=False)
        drawn = random_directions(points.shape[-1], self.slices, seed=self.seed, device=points.device, group=self.group)
        return self.weight * sigreg_penalty(points, drawn, normalize=self.normalize, mask=mask, group=self.group)


@validated
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
    trapezoid rule on 17 nodes of [0, 3], doubled. It asks for mean 0 and variance 1 along every direction, so scale
    matters: unit rows in d dimensions have variance 1/d and read as collapsed. ``normalize=True`` takes
    :math:`\sqrt d\, x/|x|` for x, which leaves the shape alone to be judged.

    It grows with n where the cloud isn't normal, and is about 1.05 for a normal one of any n. A batch of 64 can't tell
    many directions from few: from about n = 1,000 on it can. At a cloud that is all zero the gradient is zero.

    Shapes: points (n, d), directions (K, d), not checked for their length, mask (n,) optional; returns a scalar >= 0,
    to be minimised. Differentiable once; the memory is that of n K numbers. 0 for fewer than 2 points (where values
    aren't looked at, not for a mask that leaves fewer). Directions of another dimension, or none:
    :class:`~isonb.errors.ShapeError`. Points so far out that their angles have no digit left:
    :class:`~isonb.errors.DegenerateError`. They are beyond 2.8e6 along a direction in float32, 1.5e15 in float64.

    >>> x = torch.tensor([[-1.0], [0.0], [1.0]])
    >>> round(sigreg_penalty(x, torch.ones(1, 1)).item(), 5)
    0.03295
    """
    points, mask = check_points(points, mask, name="points", points=0, single=True)
    directions, _ = check_points(directions, name="directions", points=1, single=True)
    d = points.shape[-1]
    if directions.shape[-1] != d:
        fix = "Draw them with random_directions."
        fail(ShapeError, f"directions must have the {d} dimensions of the points", directions.shape[-1], fix)
    if too_few(points, mask, 2, group):
        return attached_zero(points)
    rows = unit_rows(points) * d**0.5 if normalize else points
    return _epps_pulley(_near(rows @ directions.to(rows).mT), row_count(points, mask), group)


def _near(slices: Tensor) -> Tensor:
    """``slices`` as they are, where the largest angle is known to a radian: the cosine of one that isn't is noise."""
    if len(slices) and check_values(slices):  # a process may hold no points
        limit = 1 / (_REACH * torch.finfo(slices.dtype).eps)
        low, high = (end.item() for end in slices.detach().aminmax())
        if not max(-low, high) <= limit:
            want = f"points must reach at most {limit:.2g} along a direction, past which {slices.dtype} knows no angle"
            fail(DegenerateError, want, f"{max(-low, high):.3g}", "Rescale them, or pass normalize=True.")
    return slices


def _epps_pulley(slices: Tensor, count: Tensor, group: Group) -> Tensor:
    """The statistic of ``count`` real rows, the others zero, of each slice (n, K); the mean over slices."""
    step = _REACH / (_NODES - 1)
    nodes = [k * step for k in range(_NODES)]
    normal = [math.exp(-(t**2) / 2) for t in nodes]
    weights = [
        (1 if t in (nodes[0], nodes[-1]) else 2) * step * height for t, height in zip(nodes, normal, strict=True)
    ]
    waves: Tensor = _WaveSums.apply(slices, step, _NODES)  # type: ignore[no-untyped-call]
    real = waves - (slices.shape[0] - count) * waves.new_tensor([[1.0], [0.0]])  # a zero row adds a cosine of 1
    sums = all_sum(torch.cat([real.flatten(), count.unsqueeze(0)]), group)
    n = sums[-1]
    mean = sums[:-1].view_as(waves) / n.clamp_min(1)
    apart = mean - mean.new_tensor(normal)[:, None, None] * mean.new_tensor([[1.0], [0.0]])
    return n * (apart.square().sum(1) * mean.new_tensor(weights).unsqueeze(-1)).sum(0).mean()


def _waves(s: Tensor, step: float, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """cos(ts) and sin(ts) for t = step, 2 step, ..., by angle addition: two trigonometric functions in all.

    What was yielded is overwritten by the next step.
    """
    angle = s * step
    first_cos, first_sin = angle.cos(), angle.sin()
    cos, sin, other = first_cos.clone(), first_sin.clone(), torch.empty_like(s)
    yield cos, sin
    for _ in range(count - 1):
        torch.mul(cos, first_cos, out=other).addcmul_(sin, first_sin, value=-1)
        sin.mul_(first_cos).addcmul_(cos, first_sin)
        cos, other = other, cos
        yield cos, sin


class _WaveSums(torch.autograd.Function):
    """Sums over the rows of s (n, k) of cos(ts) and sin(ts), for t = 0, step, ...: (t, 2, k). Keeps s and no wave."""

    @staticmethod
    def forward(ctx: Any, s: Tensor, step: float, count: int) -> Tensor:
        ctx.step = step
        ctx.save_for_backward(s)
        sums = s.new_zeros(count, 2, s.shape[1])
        sums[0, 0] = len(s)
        for rows in torch.split(s, _rows(s)):
            for total, (cos, sin) in zip(sums[1:], _waves(rows, step, count - 1), strict=True):
                total[0].add_(cos.sum(0))
                total[1].add_(sin.sum(0))
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (s,) = ctx.saved_tensors
        total = torch.zeros_like(s)
        slopes = grad[1:] * (ctx.step * torch.arange(1, len(grad), device=s.device, dtype=s.dtype)[:, None, None])
        for out, rows in zip(torch.split(total, _rows(s)), torch.split(s, _rows(s)), strict=True):
            for (real, imaginary), (cos, sin) in zip(slopes, _waves(rows, ctx.step, len(slopes)), strict=True):
                out.addcmul_(imaginary, cos).addcmul_(real, sin, value=-1)
        return total, None, None


def _rows(s: Tensor) -> int:
    """Rows at a time: on the CPU what its cache holds the waves of."""
    return max(1, _WAVES // s.shape[1]) if s.device.type == "cpu" else max(1, len(s))


@validated
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

    >>> drawn = random_directions(3, 5, seed=0)
    >>> drawn.shape, torch.allclose(drawn.norm(dim=-1), torch.ones(5))
    (torch.Size([5, 3]), True)
    """
    if dims < 1 or count < 1:
        fail(ShapeError, "dims and count must be at least 1", (dims, count), "A thousand directions are usual.")
    return from_first(unit_rows(_normal(count, dims, seed)).to(device), group)


@torch.library.custom_op(
    "isonb::normal",
    mutates_args=(),
    schema="(int n, int d, int? seed) -> Tensor",
    tags=(torch.Tag.nondeterministic_seeded,),
)
def _normal(n: int, d: int, seed: int | None) -> Tensor:
    """Drawn on the CPU; to a compiler one operator, since it knows no generators."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float32)


@_normal.register_fake
def _(n: int, d: int, seed: int | None) -> Tensor:
    return torch.empty(n, d, dtype=torch.float32)
