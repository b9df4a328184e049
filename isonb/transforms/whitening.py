"""From a covariance to the linear map of a transform: principal axes, PCA and ZCA whitening, mean direction."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import border, cloud, pooled
from isonb.errors import DegenerateError, ShapeError, fail
from isonb.layers.soft_decay import left_factors
from isonb.measures.cosine import unit_rows

__all__ = [
    "directional_mean",
    "mean_direction",
    "principal_axes",
    "top_directions",
    "whitening_matrix",
    "zca_matrix",
]


def _signed(axes: Tensor) -> Tensor:
    """Columns with their entry of largest size positive, so that a fit can be repeated."""
    largest = axes.gather(-2, axes.abs().argmax(-2, keepdim=True))
    return axes * torch.where(largest < 0, -1.0, 1.0)


def _square(cov: Tensor) -> Tensor:
    cov, _ = cloud(cov, name="cov", points=1, single=True)
    if cov.shape[0] != cov.shape[1]:
        fail(ShapeError, "cov must be square, (d, d)", tuple(cov.shape), "Pass a covariance, not points.")
    if not bool(cov.diagonal().sum() > 0):
        fail(DegenerateError, "the points must not all be equal", "a covariance of trace 0", "Give more points.")
    return cov


@border
@torch.no_grad()
def principal_axes(cov: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (d), descending, and eigenvectors (d, d) in columns of a covariance (d, d), in a fixed sign.

    The entry of largest size of each eigenvector is positive. Not differentiable.

    >>> values, axes = principal_axes(torch.tensor([[1.0, 0.0], [0.0, 4.0]]))
    >>> values.tolist(), axes.tolist()
    ([4.0, 1.0], [[0.0, 1.0], [1.0, 0.0]])
    """
    values, axes = torch.linalg.eigh(_square(cov))
    return values.flip(-1).clamp_min(0), _signed(axes.flip(-1))


@border
@torch.no_grad()
def whitening_matrix(cov: Tensor, k: int | None = None, floor: float = 1e-10) -> tuple[Tensor, int]:
    r"""The map (d, k) that whitens points of covariance ``cov``, and the rank of ``cov``.

    Columns :math:`u_j / \sqrt{e_j}` of the k largest eigenvalues (BERT-whitening, Su et al. 2021). Directions with
    :math:`e_j < 10^{-10} e_1` (``floor``, or d times the eps of the dtype, if that is more) have no variance to scale
    and are left out, so there may be fewer columns than k. Not differentiable.

    >>> matrix, rank = whitening_matrix(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
    >>> matrix.tolist(), rank
    ([[0.5], [0.0]], 1)
    """
    values, axes = principal_axes(cov)
    least = max(floor, len(values) * torch.finfo(values.dtype).eps)
    rank = int((values >= least * values[0]).sum())
    kept = rank if k is None else min(k, rank)
    return (axes[:, :kept] / values[:kept].sqrt()).contiguous(), rank


@border
@torch.no_grad()
def zca_matrix(cov: Tensor, eps: float = 0.0, shrinkage: float = 0.0) -> Tensor:
    r"""The symmetric whitening map :math:`U(\Lambda' + \epsilon I)^{-1/2}U^\top` (d, d).

    :math:`\Lambda' = (1-z)\Lambda + z\,\tfrac{\operatorname{tr}}{d}` with ``shrinkage`` z. ``eps`` is in units of
    variance (Soft-ZCA, Diera, Galke and Scherp 2024). Every :math:`\Lambda' + \epsilon` must reach :math:`10^{-10}` of
    the largest eigenvalue, or d times the eps of the dtype, if that is more: otherwise
    :class:`~isonb.errors.DegenerateError`, as without either where ``cov`` lacks full rank. Not differentiable.

    >>> zca_matrix(torch.tensor([[4.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.5, 0.0], [0.0, 1.0]]
    """
    values, axes = principal_axes(cov)
    softened = (1 - shrinkage) * values + shrinkage * values.mean() + eps
    least = max(1e-10, len(values) * torch.finfo(values.dtype).eps) * values[0]
    if not bool((softened >= least).all()):
        fix = "Give eps > 0, or more points than dimensions."
        fail(DegenerateError, "ZCA needs variance in every direction", f"{softened.min().item():.3g}", fix)
    return (axes / softened.sqrt()) @ axes.mT


@border
@torch.no_grad()
def top_directions(x: Tensor, k: int) -> Tensor:
    """The k leading right singular vectors (d, k) of the rows (n, d); zero columns beyond the rank.

    The caller centres. Through the smaller of the two Gram matrices. Not differentiable.

    >>> top_directions(torch.tensor([[0.0, 2.0], [0.0, -1.0]]), 2).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """
    x, _ = cloud(x, points=0, single=True)
    n, d = x.shape
    if n == 0:
        return x.new_zeros(d, k)
    basis, _, inverse = left_factors(x.mT if n > d else x)
    axes = basis * (inverse > 0) if n > d else x.mT.to(basis) @ (basis * inverse)
    axes = _signed(axes.flip(-1)[:, :k])
    return torch.nn.functional.pad(axes, (0, k - axes.shape[1])).to(x.dtype)


@border
@torch.no_grad()
def directional_mean(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mean (d) of the rows' directions; x (..., d), all leading axes one cloud; zero rows have none.

    Raises :class:`~isonb.errors.DegenerateError` where the directions cancel. Not differentiable.

    >>> directional_mean(torch.tensor([[2.0, 0.0], [0.0, 0.5]])).tolist()
    [0.5, 0.5]
    """
    unit = unit_rows(pooled(x, mask, points=1)[0])
    total = unit.sum(0)
    if not bool((total != 0).any()):
        fail(
            DegenerateError, "the rows must have a mean direction", "directions that cancel", "There is none to remove."
        )
    mean: Tensor = total / (unit != 0).any(-1).sum()
    return mean


def mean_direction(x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The unit vector (d) along :func:`directional_mean`.

    >>> mean_direction(torch.tensor([[2.0, 0.0], [0.0, 0.5]])).tolist()
    [0.7071, 0.7071]
    """
    mean = directional_mean(x, mask)
    direction: Tensor = mean / torch.linalg.vector_norm(mean)
    return direction
