r"""The number behind IsoScore: how concentrated a covariance is, with its gradient at the price of one more product.

The purity of a covariance is :math:`q = \lVert S\rVert_F^2 / (\operatorname{tr} S)^2`, the sum of squared eigenvalue
shares: 1 when one direction holds all variance, 1/d when d directions share it evenly. Its inverse is the participation
ratio. It needs no eigenvalue, only sums over the entries of S or of the Gram matrix, whichever is smaller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from isonb.checks import check_values
from isonb.errors import DegenerateError, fail
from isonb.numerics.distributed import Group, all_sum, process_group, rows_about_mean, union_moments
from isonb.numerics.products import gram
from isonb.numerics.rows import center_rows, row_count
from isonb.numerics.scale import unit_sized


def _square(matrix: Tensor) -> Tensor:
    if matrix.requires_grad and torch.is_grad_enabled():
        return matrix.square().sum((-2, -1))
    norm: Tensor = torch.linalg.vector_norm(matrix, dim=(-2, -1))
    return norm.square()


def _trace(matrix: Tensor) -> Tensor:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)


def _usable(trace: Tensor) -> Tensor:
    """Where a trace can be divided by: not zero, negative, below the smallest normal number, infinite or NaN."""
    return (trace > torch.finfo(trace.dtype).tiny) & (trace < torch.inf)


class _Parts(NamedTuple):
    """What value and gradient share. The mixed covariance over its trace is P = scale * y^T y + weight * base."""

    y: Tensor  # centred rows (..., n, d)
    small: Tensor  # P (..., d, d), or where rows are few the Gram matrix scale * y y^T (..., n, n)
    product: Tensor | None  # y base, beside a Gram matrix
    scale: Tensor
    weight: Tensor
    purity: Tensor
    trace: Tensor


def _parts(x: Tensor, mask: Tensor | None, zeta: float, base: Tensor | None, few: bool) -> _Parts:
    y, n = center_rows(x, mask)[0], x.shape[-2] if mask is None else row_count(x, mask).clamp_min(2)
    small, product = gram(y if few else y.mT), None
    share = (1 - zeta) / (n - 1)
    total = 0.0 if base is None else _trace(base)
    trace = share * _trace(small) + zeta * total
    inverse = trace.reciprocal().nan_to_num(0.0, 0.0).clamp_min(0)  # 0 where there is nothing to divide by
    scale, weight = share * inverse, zeta * inverse
    small = (small * scale[..., None, None]).nan_to_num(0.0, 0.0)
    rest: Tensor | float = 0.0
    if base is not None and few:
        product = y @ base
        crossed = scale * weight * (product * y).sum((-2, -1))
        rest = _square(base * weight[..., None, None]).add(crossed, alpha=2)
    elif base is not None:
        small = torch.addcmul(small, base, weight[..., None, None])
    return _Parts(y, small, product, scale, weight, torch.where(inverse > 0, rest + _square(small), 1.0), trace)


def _slope(grad: Tensor, parts: _Parts, few: bool) -> Tensor:
    """The gradient 4 scale (y P - q y) times grad. Its columns sum to zero: the centring needs no step of its own."""
    factor = (4 * parts.scale * grad)[..., None, None]
    small = parts.small * factor
    out = small @ parts.y if few else parts.y @ small
    out = torch.addcmul(out, parts.y, factor * parts.purity[..., None, None], value=-1)
    if parts.product is None:
        return out
    return torch.addcmul(out, parts.product, factor * parts.weight[..., None, None])


class _Purity(torch.autograd.Function):
    """The purity and the trace of (1 - zeta) S(x) + zeta base; the gradient of the first with respect to x."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, mask: Tensor | None, zeta: float, base: Tensor | None, few: bool
    ) -> tuple[Tensor, Tensor]:
        parts = _parts(x, mask, zeta, base, few)
        ctx.save_for_backward(x, mask, base, *parts)
        ctx.options = zeta, few
        ctx.mark_non_differentiable(parts.trace)
        ctx.set_materialize_grads(False)
        return parts.purity, parts.trace

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, _: Tensor) -> tuple[Tensor | None, ...]:
        if grad is None:  # the purity was not used
            return (None,) * 5
        x, mask, base, *saved = ctx.saved_tensors
        zeta, few = ctx.options
        # a second derivative asks for the graph: compute the parts again, this time recorded
        parts = _parts(x, mask, zeta, base, few) if torch.is_grad_enabled() else _Parts(*saved)
        return _slope(grad, parts, few), None, None, None, None


def purity(
    x: Tensor, mask: Tensor | None = None, zeta: float = 0.0, base: Tensor | None = None, group: Group = None
) -> Tensor:
    """The purity (...) of (1 - zeta) * covariance of x + zeta * base; x a checked cloud, base constant (..., d, d).

    Where that matrix has no trace: :class:`DegenerateError` if values may be looked at, else 1 with zero gradient.
    Without a base it doesn't depend on the size of x. The processes of a group hold one cloud (n, d) together.
    """
    if process_group(group) is not None:
        union = union_moments(x, mask, group)
        cov = union.scatter / (union.n - 1).clamp_min(1)
        return purity_of(cov if base is None else cov + zeta * (base - cov))
    x = unit_sized(x) if base is None else x
    n, d = x.shape[-2:]
    few = n <= d if base is None else 2 * n <= d  # then the Gram matrix takes fewer multiplications, both ways
    q: Tensor
    q, trace = _Purity.apply(x, mask, zeta, base, few)  # type: ignore[no-untyped-call]
    if check_values(x):
        _refuse_flat(trace, q, "the points must not all be equal")
    return q


def purity_of(matrix: Tensor) -> Tensor:
    """The purity (...) of a covariance matrix (..., d, d); 1 where its trace is not positive."""
    trace = _trace(matrix)
    usable = _usable(trace)
    share = _square(matrix / torch.where(usable, trace, 1.0)[..., None, None])
    q = torch.where(usable, share, 1.0)
    if check_values(matrix):
        _refuse_flat(trace, q, "the covariance must not be zero")
    return q


def _refuse_flat(trace: Tensor, q: Tensor, invariant: str) -> None:
    good = _usable(trace) & torch.isfinite(q)
    if not bool(good.all()):
        got = f"trace of covariance {trace[~good][0].item():.3g}"
        fail(DegenerateError, f"{invariant}, and their scale must fit {q.dtype}", got, "Drop such clouds, or rescale.")


def length_kurtosis(x: Tensor, mask: Tensor | None = None, group: Group = None) -> tuple[Tensor, Tensor]:
    """The ratio n sum r^2 / (sum r)^2 of squared distances r to the mean, 1 when all are equal, and n, of points.

    x is a checked cloud, which the processes of a group hold together.
    """
    x = unit_sized(x) if process_group(group) is None else x  # each process would have a size of its own
    n, _, y = rows_about_mean(x, mask, group)
    r = (y * y).sum(-1)
    mean = all_sum(r.sum(-1), group) / n.clamp_min(1)
    usable = _usable(mean)
    r = torch.where(usable.unsqueeze(-1), r, 0.0) / torch.where(usable, mean, 1.0).unsqueeze(-1)
    return torch.where(usable, all_sum((r * r).sum(-1), group) / n.clamp_min(1), 1.0), n
