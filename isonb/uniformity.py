"""Uniformity on the sphere by a Gaussian kernel, exact over all pairs in bounded memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isonb.checks import border, check_values, cloud, fits
from isonb.clouds import row_count
from isonb.cosine import directed, directions, unit_rows
from isonb.errors import InputError, fail
from isonb.products import gram
from isonb.scale import square_norms

__all__ = ["rbf_uniformity"]

STRIP = 128  # most rows of a block on the CPU where the gradient comes with it
WHOLE = 2**22  # most numbers of all pairs at once on the CPU
NOTHING = -0.25  # of the largest number: an exponent whose weight and derivatives are 0, unlike those of -inf


@border
def rbf_uniformity(
    x: Tensor, t: float = 0.5, normalize: bool = True, *, mask: Tensor | None = None, chunk: int = 1024
) -> Tensor:
    r"""RBF_dis (SoftDecay, Yan et al., UAI 2022), the uniformity of Wang and Isola 2020, over pairs i < j.

    .. math:: \log \frac{2}{n(n-1)} \sum_{i<j} e^{-|x_i - x_j|^2 / t}

    Rows are brought to unit length first, zero rows left out; ``normalize=False`` takes points as they are. t = 0.5 is
    the factor 2 of Wang and Isola and of the official evaluation. The sum is kept as a logarithm, so far points do not
    underflow. Blocks of at most ``chunk`` rows are computed one after another, the gradient with them: memory
    O(n chunk), time O(n^2 d).

    Shapes: x (..., n, d), mask (..., n) optional; returns (...), at most 0 (all points equal); lower is more uniform.
    Differentiable twice. Errors: t not positive or chunk < 1 :class:`~isonb.errors.InputError`; fewer than 2 points
    :class:`~isonb.errors.ShapeError`, fewer than 2 nonzero ones :class:`~isonb.errors.DegenerateError`, on an
    accelerator 0; points whose squared distances don't fit their dtype (``normalize=False`` from about 1e19 on in
    float32) :class:`~isonb.errors.DegenerateError`.

    >>> round(rbf_uniformity(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    -1.547913
    """
    x, mask = cloud(x, mask)
    if not (t > 0 and math.isfinite(t)):
        fail(InputError, "t must be positive and finite", t, "0.5 is the default.")
    if chunk < 1:
        fail(InputError, "chunk must be at least 1", chunk, "It is a number of rows.")
    count, usable = row_count(x, mask), mask
    inverse = None
    if normalize:
        x, inverse = directions(x)
        inverse = inverse.detach()
        count = directed(inverse, 2)
        usable = None if check_values(x) and bool((count == x.shape[-2]).all()) else inverse > 0
    total = fits(_log_sum(x, _Pairs(usable, inverse, count.clamp_min(1), math.sqrt(2 / t), chunk)))
    total = torch.where(count >= 2, total, 0.0)
    known = total.detach()
    return total + ((known - (count * (count - 1) / 2).clamp_min(1).log()).clamp_max(0) - known)


class _Pairs(NamedTuple):
    """Which rows count, 1/|row| where rows are to be of unit length, how many they are, in which unit, rows a block."""

    usable: Tensor | None
    inverse: Tensor | None
    number: Tensor
    scale: float
    chunk: int


def _log_sum(x: Tensor, pairs: _Pairs) -> Tensor:
    """The logarithm of exp(-|x_i - x_j|^2 / t) summed over pairs i < j, a block of rows at a time.

    With its gradient in the same pass where one is asked for; a compiler derives the plain form instead.
    """
    if torch.compiler.is_compiling():
        return _plain_log_sum(_points(x, pairs), pairs)
    if x.requires_grad and torch.is_grad_enabled():
        value: Tensor = _LogSum.apply(x, pairs)  # type: ignore[no-untyped-call]
        return value
    points = _points(x, pairs)
    half = square_norms(points) / 2
    if _fits_whole(points, pairs.chunk) and _all_near(half):
        return (_weights(points, half, pairs.usable).sum((-2, -1)) / 2).log()
    return _plain_log_sum(points, pairs)


def _points(x: Tensor, pairs: _Pairs) -> Tensor:
    """The rows as the kernel takes them: of unit length where that is asked for, in its unit, about their mean.

    No distance depends on the mean; it is taken away as a constant, so that the products of the rows keep their digits.
    """
    rows = (x if pairs.inverse is None else unit_rows(x)) * pairs.scale
    return rows - _mean(rows.detach(), pairs)


def _mean(rows: Tensor, pairs: _Pairs) -> Tensor:
    return (rows.sum(-2) / pairs.number.unsqueeze(-1)).unsqueeze(-2)


def _plain_log_sum(points: Tensor, pairs: _Pairs) -> Tensor:
    """As the formula reads."""
    usable, chunk = pairs.usable, pairs.chunk
    half, starts = points.square().sum(-1) / 2, range(0, points.shape[-2] - 1, chunk)
    if len(starts) > 1 and points.requires_grad and torch.is_grad_enabled():
        parts = [checkpoint(_block, points, half, usable, start, chunk, use_reentrant=False) for start in starts]
    else:
        parts = [_block(points, half, usable, start, chunk) for start in starts]
    return torch.stack([part.logsumexp(-1) for part in parts], -1).logsumexp(-1)


class _LogSum(torch.autograd.Function):
    """The same with its gradient in closed form. A second derivative is that of the plain form."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: _Pairs) -> Tensor:
        unit = pairs.scale if pairs.inverse is None else pairs.inverse.unsqueeze(-1) * pairs.scale
        rows = x * unit
        points = rows - _mean(rows, pairs)
        value, slope = _value_and_slope(points, pairs)
        if pairs.inverse is not None:  # a row of fixed length moves across itself
            along = torch.mul(slope, rows, out=points).sum(-1, keepdim=True)  # new memory costs more than the product
            slope.addcmul_(rows, along, value=-1 / pairs.scale**2)
        slope *= unit
        ctx.save_for_backward(x, slope)
        ctx.pairs = pairs
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            return torch.autograd.grad(_plain_log_sum(_points(x, ctx.pairs), ctx.pairs), x, grad, create_graph=True)[
                0
            ], None
        return slope * grad[..., None, None], None


def _value_and_slope(points: Tensor, pairs: _Pairs) -> tuple[Tensor, Tensor]:
    r"""The logarithm of the sum; its gradient :math:`\sum_j w_{ij} (x_j - x_i) / \sum_{k<l} w_{kl}` by these points.

    Of few points all pairs at once: one more product. Else a block at a time.
    """
    x = points.reshape(-1, *points.shape[-2:])
    usable = None if pairs.usable is None else pairs.usable.reshape(x.shape[:-1])
    half = square_norms(x) / 2
    near = _all_near(half)
    if near and _fits_whole(x, pairs.chunk):
        weights = _weights(x, half, usable)
        sums, top = weights.sum(-1), x.new_zeros(len(x))
        weights.diagonal(dim1=-2, dim2=-1).copy_(-sums)
        moved = weights @ x
    else:
        moved, sums, top = _by_blocks(x, half, usable, pairs.chunk, near)
        moved = moved.addcmul_(sums, x, value=-1)
    total = sums.flatten(1).sum(-1) / 2
    slope = moved.div_(total[:, None, None])
    return (top + total.log()).view(points.shape[:-2]), slope.view_as(points)


def _fits_whole(x: Tensor, chunk: int) -> bool:
    """Whether the weights of all pairs may be in memory together."""
    n = x.shape[-2]
    return n <= chunk and x.device.type == "cpu" and x.shape[:-1].numel() * n <= WHOLE


def _weights(x: Tensor, half: Tensor, usable: Tensor | None) -> Tensor:
    """exp(-|x_i - x_j|^2 / 2) of all pairs (..., n, n), 0 for i = j and where a row doesn't count."""
    weights = gram(x, lambda block, i, j: block.sub_(half[..., i, None]).sub_(half[..., None, j]).exp_())
    weights.diagonal(dim1=-2, dim2=-1).zero_()
    if usable is not None:
        weights.masked_fill_(~(usable.unsqueeze(-1) & usable.unsqueeze(-2)), 0.0)
    return weights


def _by_blocks(x: Tensor, half: Tensor, usable: Tensor | None, chunk: int, near: bool) -> tuple[Tensor, Tensor, Tensor]:
    r"""Of each point :math:`\sum_j w_{ij} x_j` and :math:`\sum_j w_{ij}`, divided by e to the power of the third.

    Two products a block beside its own. Weights are kept relative to the largest so far, unless all are known to be
    normal numbers (``near``).
    """
    step = _strip_height(x, chunk)
    top = x.new_full(x.shape[:1], 0.0 if near else NOTHING * torch.finfo(x.dtype).max)
    moved, sums = torch.zeros_like(x), torch.zeros_like(x[..., :1])
    for start in range(0, x.shape[1] - 1, step):
        weights, rows = _exponents(x, half, usable, start, step), slice(start, start + step)
        if not near:
            before, top = top, torch.maximum(top, weights.amax((-2, -1)))
            weights.sub_(top[:, None, None])
            fade = (before - top).exp()[:, None, None]
            moved, sums = moved.mul_(fade), sums.mul_(fade)
        weights.exp_()
        moved[:, rows].baddbmm_(weights, x[:, start:])
        moved[:, start:].baddbmm_(weights.mT, x[:, rows])
        sums[:, rows] += weights.sum(-1, keepdim=True)
        sums[:, start:] += weights.sum(-2).unsqueeze(-1)
    return moved, sums, top


def _strip_height(x: Tensor, chunk: int) -> int:
    """Rows of a block: on the CPU few, because what lies below the diagonal of a block is computed in vain."""
    return min(chunk, STRIP, max(STRIP // 2, x.shape[1] // 4)) if x.device.type == "cpu" else chunk


def _all_near(half: Tensor) -> bool:
    """Whether no exponent is so small that its weight vanishes; where values are not looked at, perhaps one is."""
    if not half.numel() or not check_values(half):
        return False
    lowest = -4 * float(half.amax())  # the diameter is at most twice the largest norm
    return lowest > math.log(torch.finfo(half.dtype).tiny) / 2


def _block(x: Tensor, half: Tensor, usable: Tensor | None, start: int, chunk: int) -> Tensor:
    """The logarithm of the sum of each row start <= i < start + chunk over all later j."""
    return _exponents(x, half, usable, start, chunk).logsumexp(-1)


def _exponents(x: Tensor, half: Tensor, usable: Tensor | None, start: int, chunk: int) -> Tensor:
    """-|x_i - x_j|^2 / 2 of rows start <= i < start + chunk and all j >= start, next to nothing unless i < j.

    ``half`` holds |x_i|^2 / 2.
    """
    stop = min(start + chunk, x.shape[-2])
    exponent = (x[..., start:stop, :] @ x[..., start:, :].mT).sub_(half[..., None, start:])
    exponent = exponent.sub_(half[..., start:stop, None])
    nothing = NOTHING * torch.finfo(x.dtype).max
    if usable is not None:
        exponent.masked_fill_(~(usable[..., start:stop, None] & usable[..., None, start:]), nothing)
    below = torch.ones(stop - start, stop - start, dtype=torch.bool, device=x.device).tril()
    exponent[..., : stop - start].masked_fill_(below, nothing)
    return exponent
