"""Uniformity on the sphere by a Gaussian kernel, exact over all pairs in bounded memory."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isonb.checks import border, cloud, fits
from isonb.clouds import row_count
from isonb.cosine import directed, directions
from isonb.errors import InputError, fail

__all__ = ["rbf_uniformity"]

STRIP = 128  # rows of a block on the CPU where the gradient comes with it: what lies below the diagonal is left out
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
    if normalize:
        x, inverse = directions(x)
        count, usable, x = directed(inverse, 2), inverse > 0, x * inverse.unsqueeze(-1)
    # no distance depends on the mean: take it away, as a constant, so that the products below keep their digits
    mean = (x.detach().sum(-2) / count.clamp_min(1).unsqueeze(-1)).unsqueeze(-2)
    total = fits(_log_sum((x - mean) * math.sqrt(2 / t), usable, chunk))
    enough = count >= 2
    value = torch.where(enough, total - (count * (count - 1) / 2).clamp_min(1).log(), 0.0)
    return value + (value.clamp_max(0) - value).detach()


def _log_sum(x: Tensor, usable: Tensor | None, chunk: int) -> Tensor:
    """The logarithm of exp(-|x_i - x_j|^2 / 2) summed over pairs i < j, a block of rows at a time.

    With its gradient in the same pass where one is asked for; a compiler derives the plain form instead.
    """
    if x.requires_grad and torch.is_grad_enabled() and not torch.compiler.is_compiling():
        value: Tensor = _LogSum.apply(x, usable, chunk)  # type: ignore[no-untyped-call]
        return value
    return _plain_log_sum(x, usable, chunk)


def _plain_log_sum(x: Tensor, usable: Tensor | None, chunk: int) -> Tensor:
    """As the formula reads."""
    starts = range(0, x.shape[-2] - 1, chunk)
    if len(starts) > 1 and x.requires_grad and torch.is_grad_enabled():
        parts = [checkpoint(_block, x, usable, start, chunk, use_reentrant=False) for start in starts]
    else:
        parts = [_block(x, usable, start, chunk) for start in starts]
    return torch.stack([part.logsumexp(-1) for part in parts], -1).logsumexp(-1)


class _LogSum(torch.autograd.Function):
    r"""The same with its gradient :math:`\sum_j w_{ij} (x_j - x_i) / \sum_{k<l} w_{kl}` by two more products a block.

    Weights are kept relative to the largest so far. A second derivative is that of the plain form.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, usable: Tensor | None, chunk: int) -> Tensor:
        step = min(chunk, STRIP) if x.device.type == "cpu" else chunk
        top = x.new_full(x.shape[:-2], NOTHING * torch.finfo(x.dtype).max)
        points = torch.cat([x, torch.ones_like(x[..., :1])], -1)  # the products give the sums of weights, too
        moved = torch.zeros_like(points)
        for start in range(0, x.shape[-2] - 1, step):
            weights, rows = _exponents(x, usable, start, step), slice(start, start + step)
            before, top = top, torch.maximum(top, weights.amax((-2, -1)))
            weights = weights.sub_(top[..., None, None]).exp_()
            moved *= (before - top).exp()[..., None, None]
            moved[..., rows, :] += weights @ points[..., start:, :]
            moved[..., start:, :] += weights.mT @ points[..., rows, :]
        moved, sums = moved[..., :-1], moved[..., -1:]
        total = sums.sum((-2, -1)) / 2
        ctx.save_for_backward(x, usable, (moved - sums * x) / total[..., None, None])
        ctx.chunk = chunk
        return top + total.log()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x, usable, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *torch.autograd.grad(_plain_log_sum(x, usable, ctx.chunk), x, grad, create_graph=True), None, None
        return slope * grad[..., None, None], None, None


def _block(x: Tensor, usable: Tensor | None, start: int, chunk: int) -> Tensor:
    """The logarithm of the sum of each row start <= i < start + chunk over all later j."""
    return _exponents(x, usable, start, chunk).logsumexp(-1)


def _exponents(x: Tensor, usable: Tensor | None, start: int, chunk: int) -> Tensor:
    """-|x_i - x_j|^2 / 2 of rows start <= i < start + chunk and all j >= start, next to nothing unless i < j."""
    stop = min(start + chunk, x.shape[-2])
    half = x[..., start:, :].square().sum(-1) / 2
    exponent = (x[..., start:stop, :] @ x[..., start:, :].mT).sub_(half.unsqueeze(-2))
    exponent = exponent.sub_(half[..., : stop - start].unsqueeze(-1))
    nothing = NOTHING * torch.finfo(x.dtype).max
    if usable is not None:
        exponent.masked_fill_(~(usable[..., start:stop, None] & usable[..., None, start:]), nothing)
    below = torch.ones(stop - start, stop - start, dtype=torch.bool, device=x.device).tril()
    exponent[..., : stop - start].masked_fill_(below, nothing)
    return exponent
