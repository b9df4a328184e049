"""Uniformity on the sphere by a Gaussian kernel, exact over all pairs in bounded memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isonb.checks import border, check_values, cloud, fits
from isonb.errors import InputError, fail
from isonb.measures.cosine import directed, directions, unit_rows
from isonb.numerics.distances import slack
from isonb.numerics.precision import precise
from isonb.numerics.products import gram
from isonb.numerics.scale import square_norms
from isonb.points import row_count

__all__ = ["rbf_uniformity"]

STRIP = 128  # most rows of a block on the CPU where the gradient comes with it
WHOLE = 2**22  # most numbers of all pairs at once on the CPU
ROUNDED = 1e-3  # of an exponent: the share by which its weight is then wrong
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
    x, mask = cloud(x, mask, look=not normalize)
    if not (t > 0 and math.isfinite(t)):
        fail(InputError, "t must be positive and finite", t, "0.5 is the default.")
    if chunk < 1:
        fail(InputError, "chunk must be at least 1", chunk, "It is a number of rows.")
    if normalize:
        found = directions(x)
        x, inverse = found.rows, found.inverse.detach()
        usable, number = (None, x.shape[-2]) if found.whole else (inverse > 0, directed(found, 2))
    else:
        inverse, usable = None, mask
        number = x.shape[-2] if mask is None else row_count(x, mask)
    return _log_mean(x, _Pairs(usable, inverse, number, math.sqrt(2 / t), chunk))


class _Pairs(NamedTuple):
    """Which rows count, 1/|row| where rows are to be of unit length, how many count, in which unit, rows a block.

    Where all rows count ``usable`` is None and ``number`` an int, else one a cloud.
    """

    usable: Tensor | None
    inverse: Tensor | None
    number: Tensor | int
    scale: float
    chunk: int

    def mean(self, total: Tensor) -> Tensor:
        """The mean row (..., 1, d) from the sum of rows."""
        return total / (self.number if isinstance(self.number, int) else self.number.clamp_min(1)[..., None, None])

    def log_mean(self, log_sum: Tensor) -> Tensor:
        """The logarithm of the mean over pairs from that of their sum: at most 0, and 0 where there are none.

        A sum that doesn't fit is an error here: at most 0 it would look like one that does.
        """
        fits(log_sum)
        if isinstance(self.number, int):
            return (log_sum - math.log(self.number * (self.number - 1) / 2)).clamp_max(0)
        number = (self.number * (self.number - 1) / 2).clamp_min(1)
        return torch.where(self.number >= 2, log_sum - number.log(), 0.0).clamp_max(0)


def _log_mean(x: Tensor, pairs: _Pairs) -> Tensor:
    """The logarithm of the mean of exp(-|x_i - x_j|^2 / t) over pairs i < j; 0 where there are none.

    With its gradient in the same pass where one is asked for; a compiler derives the plain form instead.
    """
    if torch.compiler.is_compiling():
        return _plain_log_mean(x, pairs)
    if x.requires_grad and torch.is_grad_enabled():
        value: Tensor = _LogMean.apply(x, pairs)  # type: ignore[no-untyped-call]
        return value
    points = _points(x, pairs)
    half = square_norms(points) / 2
    if points.dtype != x.dtype or not (_fits_whole(points, pairs.chunk) and _all_near(half, pairs)):
        return _plain_log_mean(x, pairs)
    factors = _factors(half, pairs.usable)
    return pairs.log_mean(((_kernel(points) @ factors).mul_(factors).sum((-2, -1)) / 2).log())


def _points(x: Tensor, pairs: _Pairs) -> Tensor:
    """The rows as the kernel takes them: of unit length where that is asked for, in its unit, about their mean.

    No distance depends on the mean; it is taken away as a constant, so that the products of the rows keep their digits.
    In float64 where some rows are so far from it that they don't.
    """
    rows = (x if pairs.inverse is None else unit_rows(x)) * pairs.scale
    rows = rows - pairs.mean(rows.detach().sum(-2, keepdim=True))
    return _points(precise(x), pairs) if pairs.inverse is None and _coarse(rows.detach()) else rows


def _coarse(points: Tensor) -> bool:
    """Whether float32 may round an exponent by more than ``ROUNDED``; no, where values are not looked at."""
    if points.dtype != torch.float32 or not points.numel() or not check_values(points):
        return False
    return not float(slack(points, square_norms(points)).amax()) < ROUNDED


def _plain_log_mean(x: Tensor, pairs: _Pairs) -> Tensor:
    """As the formula reads."""
    points, usable, chunk = _points(x, pairs), pairs.usable, pairs.chunk
    half, starts = points.square().sum(-1) / 2, range(0, points.shape[-2] - 1, chunk)
    if len(starts) > 1 and points.requires_grad and torch.is_grad_enabled():
        parts = [checkpoint(_block, points, half, usable, start, chunk, use_reentrant=False) for start in starts]
    else:
        parts = [_block(points, half, usable, start, chunk) for start in starts]
    total = torch.stack([part.logsumexp(-1) for part in parts], -1).logsumexp(-1)
    known = total.detach()
    total = total + (pairs.log_mean(known) - known)  # the gradient is that of the sum, also where the value is 0
    return fits(total.to(x.dtype))


class _LogMean(torch.autograd.Function):
    """The same with its gradient in closed form. A second derivative is that of the plain form."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: _Pairs) -> Tensor:
        rows, unit, points = _LogMean.points(x, pairs)
        if pairs.inverse is None and _coarse(points):
            rows, unit, points = _LogMean.points(precise(x), pairs)
        total, pull, share, own = _sum_and_pull(points, pairs)
        slope = pull.mul_(share * unit).addcmul_(own * unit, points, value=-1)
        if pairs.inverse is not None:  # a row of fixed length moves across itself
            along = torch.mul(slope, rows, out=points).sum(-1, keepdim=True)  # new memory costs more than the product
            slope.addcmul_(rows, along.mul_(pairs.inverse.square().unsqueeze(-1)), value=-1)
        if not isinstance(pairs.number, int):  # no pair, no gradient
            slope.masked_fill_((pairs.number < 2)[..., None, None], 0.0)
        ctx.save_for_backward(x, slope.to(x.dtype))
        ctx.pairs = pairs
        return fits(pairs.log_mean(total).to(x.dtype))

    @staticmethod
    def points(x: Tensor, pairs: _Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """The rows, the factor that gives each its length, and the product of both about its mean."""
        unit = x.new_full(x.shape[:-1], pairs.scale) if pairs.inverse is None else pairs.inverse * pairs.scale
        mean = pairs.mean(-unit.unsqueeze(-2) @ x)
        unit = unit.unsqueeze(-1)
        return x, unit, torch.addcmul(mean, x, unit)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            return torch.autograd.grad(_plain_log_mean(x, ctx.pairs), x, grad, create_graph=True)[0], None
        return slope * grad[..., None, None], None


def _sum_and_pull(points: Tensor, pairs: _Pairs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""The logarithm of the sum, and its gradient by these points as three factors: share * pull - own * points.

    That is :math:`\sum_j w_{ij} (x_j - x_i) / \sum_{k<l} w_{kl}`; the factors (..., n, 1) and (..., 1, 1) are cheap to
    change.
    """
    half = square_norms(points) / 2
    share: Tensor | float
    top: Tensor | float
    if _all_near(half, pairs):
        share, top = _factors(half, pairs.usable), 0.0
        pull, sums = _kernel_sums(points, share, pairs.chunk)
        sums.mul_(share)
    else:
        share, (pull, sums, top) = 1.0, _by_blocks(points, half, pairs.usable, pairs.chunk)
    total = sums.sum(-2, keepdim=True) / 2
    return top + total[..., 0, 0].log(), pull, share / total, sums / total


def _all_near(half: Tensor, pairs: _Pairs) -> bool:
    """Whether no exponent is so small that its weight vanishes; where values are not looked at, perhaps one is.

    Rows of unit length are at most 2 from their mean, whatever their values.
    """
    lowest = math.log(torch.finfo(half.dtype).tiny) / 2
    if pairs.inverse is not None and -8 * pairs.scale**2 > lowest:
        return True
    if not half.numel() or not check_values(half):
        return False
    return -4 * float(half.amax()) > lowest  # the diameter is at most twice the largest norm


def _fits_whole(x: Tensor, chunk: int) -> bool:
    """Whether the weights of all pairs may be in memory together."""
    n = x.shape[-2]
    return n <= chunk and (x.device.type != "cpu" or x.shape[:-1].numel() * n <= WHOLE)


def _kernel(x: Tensor) -> Tensor:
    r"""K (..., n, n): :math:`K_{ij} = e^{x_i \cdot x_j}`, 0 for i = j.

    With u by :func:`_factors` the weight :math:`e^{-|x_i - x_j|^2 / 2}` is :math:`u_i K_{ij} u_j`. All are normal
    numbers where points are near each other; the weights themselves would take two more passes.
    """
    kernel = gram(x, lambda block, *_: block.exp_())
    kernel.diagonal(dim1=-2, dim2=-1).zero_()
    return kernel


def _factors(half: Tensor, usable: Tensor | None) -> Tensor:
    r"""The factors u (..., n, 1): :math:`e^{-|x_i|^2 / 2}`, 0 where a row doesn't count."""
    factors = half.neg().exp_()
    if usable is not None:
        factors.masked_fill_(~usable, 0.0)
    return factors.unsqueeze(-1)


def _kernel_sums(points: Tensor, factors: Tensor, chunk: int) -> tuple[Tensor, Tensor]:
    r"""Of each point :math:`\sum_j K_{ij} u_j x_j` (..., n, d) and :math:`\sum_j K_{ij} u_j` (..., n, 1).

    Of few points by the whole kernel, else a block at a time, what is above its diagonal in both directions.
    """
    weighted = points * factors
    if _fits_whole(points, chunk):
        kernel = _kernel(points)
        return kernel @ weighted, kernel @ factors
    n, d = points.shape[-2:]
    x, others, each = points.reshape(-1, n, d), weighted.reshape(-1, n, d), factors.reshape(-1, n, 1)
    pull, sums, step = torch.zeros_like(x), torch.zeros_like(each), _strip_height(x, chunk)
    for start in range(0, n - 1, step):
        rows = slice(start, start + step)
        kernel = (x[:, rows] @ x[:, start:].mT).exp_()
        kernel[..., : kernel.shape[1]].triu_(1)
        pull[:, rows].baddbmm_(kernel, others[:, start:])
        pull[:, start:].baddbmm_(kernel.mT, others[:, rows])
        sums[:, rows].baddbmm_(kernel, each[:, start:])
        sums[:, start:].baddbmm_(kernel.mT, each[:, rows])
    return pull.view(points.shape), sums.view(factors.shape)


def _by_blocks(points: Tensor, half: Tensor, usable: Tensor | None, chunk: int) -> tuple[Tensor, Tensor, Tensor]:
    r"""Of each point :math:`\sum_j w_{ij} x_j` and :math:`\sum_j w_{ij}`, divided by e to the power of the third.

    Two products a block beside its own. Weights are kept relative to the largest so far.
    """
    lead, (n, d) = points.shape[:-2], points.shape[-2:]
    x, half = points.reshape(-1, n, d), half.reshape(-1, n)
    usable = None if usable is None else usable.reshape(-1, n)
    step = _strip_height(x, chunk)
    top = x.new_full(x.shape[:1], NOTHING * torch.finfo(x.dtype).max)
    pull, sums = torch.zeros_like(x), torch.zeros_like(x[..., :1])
    for start in range(0, n - 1, step):
        weights, rows = _exponents(x, half, usable, start, step), slice(start, start + step)
        before, top = top, torch.maximum(top, weights.amax((-2, -1)))
        weights.sub_(top[:, None, None]).exp_()
        fade = (before - top).exp()[:, None, None]
        pull, sums = pull.mul_(fade), sums.mul_(fade)
        pull[:, rows].baddbmm_(weights, x[:, start:])
        pull[:, start:].baddbmm_(weights.mT, x[:, rows])
        sums[:, rows] += weights.sum(-1, keepdim=True)
        sums[:, start:] += weights.sum(-2).unsqueeze(-1)
    return pull.view(points.shape), sums.view(*lead, n, 1), top.view(lead)


def _strip_height(x: Tensor, chunk: int) -> int:
    """Rows of a block: on the CPU few, because what lies below the diagonal of a block is computed in vain."""
    return min(chunk, STRIP, max(STRIP // 2, x.shape[1] // 4)) if x.device.type == "cpu" else chunk


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
