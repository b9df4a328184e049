"""Distances between the points of one cloud, for deciding who is near whom, and the exact lengths of chosen edges.

The decision and the value are kept apart. Candidates come from squared distances that are known up to a bound, by
product where that pays; among them differences in float64 decide. Lengths that leave the library are those of the live
points.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from isonb.checks import check_values
from isonb.numerics.compiled import ANY_ORDER, can_compile, run
from isonb.numerics.products import gram
from isonb.numerics.rows import row_count
from isonb.numerics.scale import largest, power_of_two, precise

PIECE = 2**18  # coordinates of differences held at a time on the CPU
SUBTRACTED = 8  # dimensions up to which all pairs are subtracted


def localized(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """A detached copy for products: moved to its own point nearest the mean, then to unit size. It is rounded.

    A central point keeps a single far one from spoiling the rest. The scale is a power of two, so squares neither
    overflow nor vanish. Rows off the mask are zero.
    """
    moved = about_middle(x, mask)
    return moved.div_(power_of_two(largest(moved, (-2, -1))))


def about_middle(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The same in the unit of ``x``."""
    x = x.detach()
    mean = (x.sum(-2) / row_count(x, mask).clamp_min(1).unsqueeze(-1)).unsqueeze(-2)
    moved = x - mean
    away = largest(moved, -1)
    if mask is not None:
        away = away.masked_fill(~mask.unsqueeze(-1), math.inf)
    middle = away.argmin(-2, keepdim=True).expand(*x.shape[:-2], 1, x.shape[-1])
    torch.sub(x, x.gather(-2, middle), out=moved)
    return moved if mask is None else moved.masked_fill_(~mask.unsqueeze(-1), 0.0)


def squared_distances(x: Tensor) -> Tensor:
    r"""All :math:`\|x_i - x_j\|^2` of a localized cloud (..., n, d) -> (..., n, n); O(n^2) memory.

    By differences each entry is good to a few units in its own last place. As
    :math:`\|x_i\|^2 + \|x_j\|^2 - 2 x_i \cdot x_j` it is good to about :math:`4 \epsilon R^2`, with R the radius of the
    cloud and :math:`\epsilon` the precision of the dtype: one below :math:`\sqrt\epsilon R` can't be told from 0.
    """
    n, d = x.shape[-2:]
    if d <= SUBTRACTED or n * n * d <= 2**16:
        return torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square_()
    return _by_product(x, x.square().sum(-1))  # exact for integers


def _by_product(x: Tensor, norms: Tensor) -> Tensor:
    def finish(block: Tensor, rows: slice, columns: slice) -> Tensor:
        return block.mul_(-2).add_(norms[..., rows, None]).add_(norms[..., None, columns])

    return gram(x, finish)


def error_bound(x: Tensor, norms: Tensor) -> Tensor:
    """What a row of x (..., n, d) with these squared ``norms`` (..., n) adds to the error of its squared distances.

    Of a sum of d rounded products that is about the square root of d units of precision (Higham and Mary 2019, a
    probabilistic bound), and a few more for a copy that was moved and rounded; what is too small for the type is lost.
    """
    return norms * error_share(x) + x.shape[-1] * torch.finfo(x.dtype).tiny


def error_share(x: Tensor) -> float:
    """The share of a squared norm that :func:`error_bound` takes."""
    return float((6 + x.shape[-1] ** 0.5) * torch.finfo(x.dtype).eps)


def rows(x: Tensor, index: Tensor) -> Tensor:
    """Rows of each cloud: x (..., n, d), index (..., m) -> (..., m, d), differentiable in ``x``."""
    n, d = x.shape[-2:]
    batch = index.shape[:-1]
    first = torch.arange(math.prod(batch), device=x.device).view(*batch, 1) * n
    return x.reshape(-1, d).index_select(0, (index + first).flatten()).view(*index.shape, d)


def weighted_rows(x: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    r""":math:`\sum_j w_{ij} x_{\mathrm{index}(i, j)}`: x (..., n, d), index and weights (..., m, k) -> (..., m, d).

    On the CPU no row is copied; there is no second derivative then.
    """
    n, d = x.shape[-2:]
    if x.device.type != "cpu":
        return (weights.unsqueeze(-2) @ rows(x, index.flatten(-2)).view(*index.shape, d)).squeeze(-2)
    first = torch.arange(math.prod(index.shape[:-2]), device=x.device).view(*index.shape[:-2], 1, 1) * n
    flat, flat_weights = (index + first).flatten(0, -2), weights.flatten(0, -2)
    out: Tensor = torch.nn.functional.embedding_bag(flat, x.reshape(-1, d), mode="sum", per_sample_weights=flat_weights)
    return out.view(*index.shape[:-1], d)


def edge_lengths(x: Tensor, edges: Tensor, constant_lengths: Tensor | None = None) -> Tensor:
    """Lengths of edges (..., m, 2) of the cloud (..., n, d) -> (..., m); the gradient of a zero length is 0.

    ``constant_lengths``: their numbers, where the caller has them.
    """
    if constant_lengths is not None and not (x.requires_grad and torch.is_grad_enabled()):
        return constant_lengths
    constant_lengths = None if constant_lengths is None else constant_lengths.reshape(-1)
    lengths: Tensor = _Lengths.apply(x.reshape(-1, x.shape[-1]), numbered(edges, x.shape[-2]), constant_lengths)  # type: ignore[no-untyped-call]
    return lengths.view(edges.shape[:-1])


def numbered(edges: Tensor, n: int) -> Tensor:
    """Edges (..., m, 2) of a batch of clouds of n points as edges (..., 2) between the rows of all clouds."""
    clouds = math.prod(edges.shape[:-2])
    if clouds > 1:
        edges = edges + torch.arange(clouds, device=edges.device).view(*edges.shape[:-2], 1, 1) * n
    return edges.reshape(-1, 2)


class _Lengths(torch.autograd.Function):
    """Lengths of edges (m, 2) between rows (n, d), a piece of edges at a time; no difference is kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Tensor, constant_lengths: Tensor | None) -> Tensor:
        length = lengths_between(x, edges) if constant_lengths is None else constant_lengths
        ctx.save_for_backward(x, edges, length)
        return length

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x, edges, length = ctx.saved_tensors
        return edge_length_grad(x, edges, None if torch.is_grad_enabled() else length, grad), None, None


def lengths_between(x: Tensor, edges: Tensor) -> Tensor:
    """Lengths (m,) of edges (m, 2) between rows (n, d), as numbers."""
    if x.dtype == torch.float32 and can_compile(x):
        lengths = x.new_empty(len(edges))
        run(_between, ANY_ORDER, x.detach().contiguous(), edges, lengths)
        return lengths
    wide = precise(x) if x.device.type == "cpu" else x
    return torch.cat([_lengths(_gaps(wide, piece)) for piece in _pieces(x, edges)]).to(x.dtype)


def _between(x: Any, edges: Any, lengths: Any) -> None:
    for e in range(len(edges)):
        start_row, other, square = x[edges[e, 0]], x[edges[e, 1]], 0.0
        for t in range(len(start_row)):
            gap = 1.0 * other[t] - start_row[t]  # in float64
            square += gap * gap
        lengths[e] = square**0.5


def edge_length_grad(x: Tensor, edges: Tensor, length: Tensor | None, slope: Tensor) -> Tensor:
    r"""The gradient (n, d) of a function with derivative ``slope`` (m,) by each length (m,).

    The derivative of :math:`\|x_a - x_b\|` is the unit vector from b to a. Where that is to be derived again ``length``
    is None, and computed anew.
    """
    out, low = torch.zeros_like(x), 0
    for piece in _pieces(x, edges):
        gap, high = _gaps(x, piece), low + len(piece)
        size = _lengths(gap) if length is None else length[low:high]
        unit = gap / torch.where(size > 0, size, 1.0).unsqueeze(-1)  # at first: a slope over a short length overflows
        pull = unit * slope[low:high].unsqueeze(-1)
        out.index_add_(0, piece[:, 0], pull).index_add_(0, piece[:, 1], pull, alpha=-1)
        low = high
    return out


def _pieces(x: Tensor, edges: Tensor) -> tuple[Tensor, ...]:
    """On the CPU as many edges at a time as its cache holds differences of."""
    return torch.split(edges, max(1, PIECE // x.shape[-1])) if x.device.type == "cpu" else (edges,)


def _gaps(x: Tensor, edges: Tensor) -> Tensor:
    return x.index_select(0, edges[:, 0]) - x.index_select(0, edges[:, 1])


def _lengths(gap: Tensor) -> Tensor:
    """Squares of float32 are summed in float64 on the CPU, where they neither overflow nor vanish.

    Elsewhere, where they might, each difference is first brought to unit size, by a power of two.
    """
    if gap.device.type == "cpu" and gap.dtype == torch.float32:
        exact: Tensor = torch.linalg.vector_norm(gap.double(), dim=-1)
        return exact.float()
    length: Tensor = torch.linalg.vector_norm(gap, dim=-1)
    if check_values(gap) and length.numel():
        least, most = (float(end) for end in length.detach().aminmax())
        if torch.finfo(gap.dtype).tiny ** 0.25 < least and most < torch.inf:
            return length
    scale = power_of_two(largest(gap.detach(), -1))
    scaled: Tensor = torch.linalg.vector_norm(gap / scale, dim=-1)
    return scaled * scale.squeeze(-1)
