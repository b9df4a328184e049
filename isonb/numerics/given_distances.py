"""Distances given instead of points: what a matrix of them must be, and points that look like one."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from isonb.checks import check_points, check_values
from isonb.errors import CloudWarning, DegenerateError, InputError, ShapeError, fail

METRICS = ("euclidean", "precomputed")
FEW = 100  # dimensions a point from which the points are probably the columns
# By how much of the longest distance squared the square of another may be off: torch.cdist and 1 - cosine subtract
# products, in float32, whatever the dtype that the result is kept in.
ROUNDED = 100 * torch.finfo(torch.float32).eps


def check_cloud(
    x: Tensor, mask: Tensor | None, metric: str, *, points: int = 2, single: bool = False
) -> tuple[Tensor, Tensor | None]:
    """Points (..., n, d) or, where ``metric`` is "precomputed", distances (..., n, n), checked; a mask (..., n).

    Points that look like distances or like the transpose of a cloud are told by a
    :class:`~isonb.errors.CloudWarning`, where values may be looked at. Distances that are off by rounding alone are
    made symmetric, at least 0, and 0 on the diagonal.
    """
    if metric not in METRICS:
        fix = 'Pass points, or a matrix of any distances with metric="precomputed".'
        fail(InputError, f"metric must be one of {', '.join(METRICS)}", repr(metric), fix)
    x, mask = check_points(x, mask, points=points, single=single)
    if metric == "euclidean":
        _doubt(x, mask)
        return x, mask
    if x.shape[-1] != x.shape[-2]:
        fix = "Pass all pairs, as scipy's squareform gives them."
        fail(ShapeError, "a distance matrix must be square", f"shape {tuple(x.shape)}", fix)
    if mask is not None:
        x = torch.where(mask.unsqueeze(-2), x, x.new_zeros(()))
    return (_without_rounding(x) if check_values(x) and x.numel() else x), mask


def _without_rounding(x: Tensor) -> Tensor:
    """Distances that are symmetric, at least 0, and 0 on the diagonal; those that are so already as they are."""
    detached = x.detach()
    diagonal, least = detached.diagonal(dim1=-2, dim2=-1), detached.amin()
    if not bool(diagonal.any()) and bool(least >= 0) and torch.equal(detached, detached.mT):
        return x
    longest = detached.abs().amax()
    unit = detached / torch.where(longest > 0, longest, 1.0)  # its squares can't overflow
    off = (unit.square() - unit.mT.square()).abs().amax()
    off = off + unit.diagonal(dim1=-2, dim2=-1).square().amax() + unit.amin().clamp(max=0).square()
    if not bool(off <= ROUNDED):
        unlike = (detached - detached.mT).abs().amax() + diagonal.abs().amax()
        got = f"a least entry of {float(least):.3g}, and {float(unlike):.3g} off symmetry or on the diagonal"
        fix = "Pass distances, not similarities: 1 - cosine for cosines."
        fail(DegenerateError, "distances must be symmetric, at least 0, and 0 on the diagonal", got, fix)
    identity = torch.eye(x.shape[-1], dtype=torch.bool, device=x.device)
    return ((x + x.mT) / 2).clamp(min=0).masked_fill(identity, 0)


def _doubt(x: Tensor, mask: Tensor | None) -> None:
    """Warn of points that are probably not what the caller means."""
    n, d = x.shape[-2:]
    if mask is not None or not check_values(x) or not x.numel():
        return
    message = ""
    if n == d > 2 and not bool(x.diagonal(dim1=-2, dim2=-1).any()) and torch.equal(x, x.mT) and bool(x.amin() >= 0):
        message = "x is symmetric with a zero diagonal, as distances are, but is taken as points."
        message += ' Pass metric="precomputed".'
    elif x.ndim == 2 and d >= 100 and (n <= 3 or d >= FEW * n):
        message = f"x has {n} points in {d} dimensions. Rows are points: pass x.T if they are its columns."
    if message and bool(x.any()):
        warnings.warn(message, CloudWarning, stacklevel=4)


def lengths_in(matrix: Tensor, edges: Tensor) -> Tensor:
    """The entries (..., m) of distances (..., n, n) at edges (..., m, 2); differentiable."""
    low, high = edges.unbind(-1)
    return matrix.flatten(-2).gather(-1, low * matrix.shape[-1] + high)


def nearest_in(matrix: Tensor, k: int, mask: Tensor | None) -> Tensor:
    """The k least distances (..., n, k) of each row to another one, ascending; 0 from masked rows."""
    identity = torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device)
    out = identity if mask is None else identity | ~mask.unsqueeze(-2)
    away = matrix.masked_fill(out, torch.inf).topk(k, dim=-1, largest=False).values
    return away if mask is None else torch.where(mask.unsqueeze(-1), away, 0.0)
