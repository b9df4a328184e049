"""Uniformity on the sphere by a Gaussian kernel, exact over all pairs in bounded memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isonb.checks import check_overflow, check_points, check_size, check_values, validated
from isonb.errors import InputError, fail
from isonb.numerics.distances import error_bound
from isonb.numerics.products import gram
from isonb.numerics.rows import count_nonzero_rows, directions, row_count, unit_rows
from isonb.numerics.scale import precise, square_norms

STRIP = 128  # most rows of a block on the CPU where the gradient comes with it
WHOLE = 2**22  # most numbers of all pairs at once on the CPU
ROUNDED = 1e-3  # of an exponent: the share by which its weight is then wrong
NOTHING = -0.25  # of the largest number: an exponent whose weight and derivatives are 0, unlike those of -inf


@validated
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
    x, mask = check_points(x, mask, look=not normalize)
    if not (t > 0 and math.isfinite(t)):
        fail(InputError, "t must be positive and finite", t, "0.5 is the default.")
    chunk = check_size(chunk, "chunk", "It is a number of rows.")
    if normalize:
        along = directions(x)
        x, inverse = along.rows, along.inverse.detach()
        usable, number = (None, x.shape[-2]) if along.whole else (inverse > 0, count_nonzero_rows(along, 2))
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

    def points(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The factor (..., n, 1) that gives each row its length, and the rows by it about their mean."""
        unit = x.new_full(x.shape[:-1], self.scale) if self.inverse is None else self.inverse * self.scale
        mean = self.mean(-unit.unsqueeze(-2) @ x)
        return unit.unsqueeze(-1), torch.addcmul(mean, x, unit.unsqueeze(-1))

    def log_mean(self, log_sum: Tensor) -> Tensor:
        """The logarithm of the mean over pairs from that of their sum: at most 0, and 0 where there are none.

        A sum that doesn't fit is an error here: at most 0 it would look like one that does.
        """
        check_overflow(log_sum)
        if isinstance(self.number, int):
            return (log_sum - math.log(self.number * (self.number - 1) / 2)).clamp_max(0)
        number = (self.number * (self.number - 1) / 2).clamp_min(1)
        return torch.where(self.number >= 2, log_sum - number.log(), 0.0).clamp_max(0)


def _log_mean(x: Tensor, pairs: _Pairs) -> Tensor:
    """The logarithm of the mean of exp(-|x_i - x_j|^2 / t) over pairs i < j; 0 where there are none.

    Of points near each other by the kernel, with its gradient in the same pass where one is asked for; of others, and
    for a compiler, as the formula reads.
    """
    if torch.compiler.is_compiling() or not _near(x, pairs):
        return _plain_log_mean(x, pairs)
    if x.requires_grad and torch.is_grad_enabled():
        value: Tensor = _LogMean.apply(x, pairs)  # type: ignore[no-untyped-call]
        return value
    _, sums, factors = _kernel_sums(pairs.points(x)[1], pairs, False)
    return pairs.log_mean((sums.mul_(factors).sum((-2, -1)) / 2).log())


def _near(x: Tensor, pairs: _Pairs) -> bool:
    """Whether no exponent is so small that its weight vanishes; where values are not looked at, perhaps one is.

    Rows of unit length are at most 2 from their mean, whatever their values.
    """
    lowest = math.log(torch.finfo(x.dtype).tiny) / 2
    if pairs.inverse is not None:
        return -8 * pairs.scale**2 > lowest
    if not x.numel() or not check_values(x):
        return False
    farthest = square_norms(pairs.points(x.detach())[1]).amax()
    return -2 * float(farthest) > lowest  # the diameter is at most twice the largest norm


def _plain_log_mean(x: Tensor, pairs: _Pairs) -> Tensor:
    """As the formula reads, a block of rows at a time."""
    points, usable, chunk = _about_mean(x, pairs), pairs.usable, pairs.chunk
    half, starts = points.square().sum(-1) / 2, range(0, points.shape[-2] - 1, chunk)
    if len(starts) > 1 and points.requires_grad and torch.is_grad_enabled():
        sums = [checkpoint(_block, points, half, usable, start, chunk, use_reentrant=False) for start in starts]
    else:
        sums = [_block(points, half, usable, start, chunk) for start in starts]
    total = torch.stack([item.logsumexp(-1) for item in sums], -1).logsumexp(-1)
    constant = total.detach()
    total = total + (pairs.log_mean(constant) - constant)  # the gradient is that of the sum, also where the value is 0
    return check_overflow(total.to(x.dtype))


def _about_mean(x: Tensor, pairs: _Pairs) -> Tensor:
    """The rows as the formula takes them: of unit length where that is asked for, in its unit, about their mean.

    No distance depends on the mean; it is taken away as a constant, so that the products of the rows keep their digits.
    In float64 where float32 may still round an exponent by more than ``ROUNDED``.
    """
    rows = (x if pairs.inverse is None else unit_rows(x)) * pairs.scale
    rows = rows - pairs.mean(rows.detach().sum(-2, keepdim=True))
    if pairs.inverse is None and x.dtype == torch.float32 and x.numel() and check_values(x):
        constant = rows.detach()
        if not float(error_bound(constant, square_norms(constant)).amax()) < ROUNDED:
            return _about_mean(precise(x), pairs)
    return rows


def _block(x: Tensor, half: Tensor, usable: Tensor | None, start: int, chunk: int) -> Tensor:
    """The logarithm of the sum of -|x_i - x_j|^2 / 2 of each row start <= i < start + chunk over all later j.

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
    return exponent.logsumexp(-1)


class _LogMean(torch.autograd.Function):
    r"""The same of near points with its gradient in closed form; a second derivative is that of the plain form.

    By a point x_i it is :math:`\sum_j w_{ij} (x_j - x_i) / \sum_{k<l} w_{kl}`.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: _Pairs) -> Tensor:
        unit, points = pairs.points(x)
        pull, sums, factors = _kernel_sums(points, pairs)
        sums.mul_(factors)
        total = sums.sum(-2, keepdim=True) / 2
        slope = pull.mul_(factors / total * unit).addcmul_(sums / total * unit, points, value=-1)
        if pairs.inverse is not None:  # a row of fixed length moves across itself
            along = torch.mul(slope, x, out=points).sum(-1, keepdim=True)  # new memory costs more than the product
            slope.addcmul_(x, along.mul_(pairs.inverse.square().unsqueeze(-1)), value=-1)
        if not isinstance(pairs.number, int):  # no pair, no gradient
            slope.masked_fill_((pairs.number < 2)[..., None, None], 0.0)
        ctx.save_for_backward(x, slope)
        ctx.pairs = pairs
        return check_overflow(pairs.log_mean(total[..., 0, 0].log()))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, slope = ctx.saved_tensors
        if torch.is_grad_enabled():
            return torch.autograd.grad(_plain_log_mean(x, ctx.pairs), x, grad, create_graph=True)[0], None
        return slope * grad[..., None, None], None


def _kernel_sums(points: Tensor, pairs: _Pairs, pulled: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    r"""Of each point :math:`\sum_j K_{ij} u_j x_j` (..., n, d), where asked for, :math:`\sum_j K_{ij} u_j`, and u.

    :math:`K_{ij} = e^{x_i \cdot x_j}`, 0 for i = j: the weight :math:`e^{-|x_i - x_j|^2 / 2}` is
    :math:`u_i K_{ij} u_j` with :math:`u_i = e^{-|x_i|^2 / 2}`, 0 where a row doesn't count. All are normal numbers
    where points are near each other; the weights themselves would take two more passes.

    Of few points at once, u read off the diagonal before it goes. Else a block of rows at a time, what is above its
    diagonal in both directions: on the CPU few rows, because what lies below it is computed in vain.
    """

    def counted(factors: Tensor) -> Tensor:
        return (factors if pairs.usable is None else factors.masked_fill_(~pairs.usable, 0.0)).unsqueeze(-1)

    n, chunk, on_cpu = points.shape[-2], pairs.chunk, points.device.type == "cpu"
    if n <= chunk and not (on_cpu and points.shape[:-1].numel() * n > WHOLE):
        kernel = gram(points, lambda block, *_: block.exp_())
        diagonal = kernel.diagonal(dim1=-2, dim2=-1)
        factors = counted(diagonal.rsqrt())
        diagonal.zero_()
        return kernel @ (points * factors) if pulled else points, kernel @ factors, factors
    factors = counted(square_norms(points).mul_(-0.5).exp_())
    x, others, each = (part.reshape(-1, n, part.shape[-1]) for part in (points, points * factors, factors))
    pull, sums = torch.zeros_like(x), torch.zeros_like(each)
    step = min(chunk, STRIP, max(STRIP // 2, n // 4)) if on_cpu else chunk
    for start in range(0, n - 1, step):
        rows = slice(start, start + step)
        kernel = (x[:, rows] @ x[:, start:].mT).exp_()
        kernel[..., : kernel.shape[1]].triu_(1)
        for total, parts in ((pull, others), (sums, each))[not pulled :]:
            total[:, rows].baddbmm_(kernel, parts[:, start:])
            total[:, start:].baddbmm_(kernel.mT, parts[:, rows])
    return pull.view(points.shape), sums.view(factors.shape), factors
