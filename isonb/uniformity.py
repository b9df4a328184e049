"""Uniformity on the sphere by a Gaussian kernel, exact over all pairs in bounded memory."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from isonb.checks import border, cloud, fits
from isonb.clouds import row_count
from isonb.cosine import directed, directions
from isonb.errors import InputError, fail

__all__ = ["rbf_uniformity"]


@border
def rbf_uniformity(
    x: Tensor, t: float = 0.5, normalize: bool = True, *, mask: Tensor | None = None, chunk: int = 1024
) -> Tensor:
    r"""RBF_dis (SoftDecay, Yan et al., UAI 2022), the uniformity of Wang and Isola 2020, over pairs i < j.

    .. math:: \log \frac{2}{n(n-1)} \sum_{i<j} e^{-|x_i - x_j|^2 / t}

    Rows are brought to unit length first, zero rows left out; ``normalize=False`` takes points as they are. t = 0.5 is
    the factor 2 of Wang and Isola and of the official evaluation. The sum is kept as a logarithm, so far points do not
    underflow. Blocks of ``chunk`` rows are computed one after another, and again in the backward pass: memory
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
    """The logarithm of exp(-|x_i - x_j|^2 / 2) summed over pairs i < j, a block of rows at a time."""
    starts = range(0, x.shape[-2] - 1, chunk)
    if len(starts) > 1 and x.requires_grad and torch.is_grad_enabled():
        parts = [checkpoint(_block, x, usable, start, chunk, use_reentrant=False) for start in starts]
    else:
        parts = [_block(x, usable, start, chunk) for start in starts]
    return torch.cat(parts, -1).logsumexp(-1)


def _block(x: Tensor, usable: Tensor | None, start: int, chunk: int) -> Tensor:
    """The same for each row start <= i < start + chunk, over all later j."""
    stop = min(start + chunk, x.shape[-2])
    half = x[..., start:, :].square().sum(-1) / 2
    exponent = x[..., start:stop, :] @ x[..., start:, :].mT - half.unsqueeze(-2)
    left_out = torch.ones(exponent.shape[-2:], dtype=torch.bool, device=x.device).tril()
    if usable is not None:
        left_out = left_out | ~(usable[..., start:stop, None] & usable[..., None, start:])
    nothing = torch.finfo(x.dtype).min / 4  # a weight of zero whose derivatives are zero too, unlike those of -inf
    return exponent.masked_fill(left_out, nothing).logsumexp(-1) - half[..., : stop - start]
