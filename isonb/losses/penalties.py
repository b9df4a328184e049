"""What each loss adds to the task loss, as pure functions of the points; :mod:`isonb.losses` wraps them.

Points of all processes of ``group`` count as one cloud (see :mod:`isonb.numerics.distributed`). A training run must
survive its last, smallest batch: where there are too few points for a penalty to mean anything it is 0, still attached
to the points, so that ``backward`` works and every gradient is zero. Malformed input raises as everywhere.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import border, check_values, cloud, fits
from isonb.errors import InputError, fail
from isonb.measures.cosine import directed, directions
from isonb.measures.isoscore import (
    checked_zeta,
    isoscore,
    isoscore_from_cov,
    isoscore_star,
    shrinkage_matrix,
    unbiased_ratio,
)
from isonb.measures.purity import purity_of
from isonb.measures.spectrum import singular_values
from isonb.numerics.distributed import Group, all_rows, all_sum, process_group, union_moments
from isonb.points import row_count

__all__ = [
    "balanced_sum",
    "cosreg_penalty",
    "isoscore_penalty",
    "istar_penalty",
    "spectrum_penalty",
]


def attached_zero(points: Tensor) -> Tensor:
    """0 with a graph to the points."""
    return points[..., :0].sum()


def too_few(points: Tensor, mask: Tensor | None, least: int, group: Group) -> bool:
    """Whether all processes together hold fewer than ``least`` points; False where that would wait for the device."""
    if process_group(group) is None and (mask is None or points.shape[-2] < least):
        return points.shape[-2] < least
    if not check_values(points):
        return False
    return int(all_sum(row_count(points, mask).detach(), group)) < least


def _union_isoscore(points: Tensor, mask: Tensor | None, unbiased: bool, group: Group) -> Tensor:
    """IsoScore of the cloud that all processes hold together."""
    if process_group(group) is None:
        return isoscore(points, unbiased=unbiased, mask=mask)
    union = union_moments(points, mask, group)
    if not unbiased:
        return isoscore_from_cov(union.scatter)
    lengths = union.rows.square().sum(-1)
    total, squares = all_sum(torch.stack([lengths.sum(), lengths.square().sum()]), group)
    kurtosis = union.n * squares / total.clamp_min(torch.finfo(total.dtype).tiny).square()
    return (unbiased_ratio(purity_of(union.scatter), kurtosis, union.n) - 1) / (points.shape[-1] - 1)


@border
def isoscore_penalty(
    points: Tensor,
    *,
    unbiased: bool = False,
    floor: float | None = None,
    mask: Tensor | None = None,
    group: Group = "world",
) -> Tensor:
    r""":math:`-\ln \mathrm{IsoScore}` of the points, the isotropy loss of the IsoLayer (Attieh et al., ICDAR 2023).

    The score is clamped from below at ``floor`` (1e-12; 1e-3 with ``unbiased``, whose estimate may be negative), where
    the gradient is zero. A batch of B points scores at most (B - 2)/(d - 1), so with B <= d the loss can't reach 0;
    ``unbiased=True`` is free of that limit. Shapes: points (n, d), d >= 2; returns a scalar >= 0 (unbiased: any sign).
    0 for fewer than 2 points (4 unbiased); where values aren't looked at, a mask that leaves fewer gives -ln(floor).

    >>> round(isoscore_penalty(torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])).item(), 6)
    0.753772
    """
    points, mask = cloud(points, mask, name="points", points=0, dims=2, single=True)
    if too_few(points, mask, 4 if unbiased else 2, group):
        return attached_zero(points)
    score = _union_isoscore(points, mask, unbiased, group)
    least = (1e-3 if unbiased else 1e-12) if floor is None else floor
    return -score.clamp_min(least).log()


@border
def istar_penalty(
    points: Tensor,
    shrinkage_cov: Tensor | None = None,
    *,
    zeta: float | str = 0.2,
    unbiased: bool = False,
    mask: Tensor | None = None,
    group: Group = "world",
) -> Tensor:
    r""":math:`1 - \mathrm{IsoScore}^*`, what I-STAR (Rudman and Eickhoff, ICLR 2024, Section 4) adds times its weight.

    ``shrinkage_cov`` (d, d) is the covariance of a larger sample, constant for an epoch; without it, the identity
    scaled to the trace of the batch covariance. ``unbiased=True`` takes the unbiased IsoScore instead, which needs
    neither. Shapes: points (n, d), d >= 2, mask (n,) optional; returns a scalar in [0, 1] (unbiased: any). 0 for fewer
    than 2 points (4 unbiased); where values aren't looked at, a mask that leaves fewer gives a constant.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])
    >>> round(istar_penalty(x, torch.eye(2), zeta=0.3).item(), 6)
    0.371056
    """
    points, mask = cloud(points, mask, name="points", points=0, dims=2, single=True)
    if too_few(points, mask, 4 if unbiased else 2, group):
        return attached_zero(points)
    if unbiased:
        return 1 - _union_isoscore(points, mask, True, group)
    if process_group(group) is None:
        return 1 - isoscore_star(points, zeta, shrinkage_cov, mask=mask)
    if zeta == "auto":  # needs fourth moments of the union, which its rows give
        return 1 - isoscore_star(all_rows(points if mask is None else points[mask], group), zeta, shrinkage_cov)
    weight = checked_zeta(zeta)
    union = union_moments(points, mask, group)
    cov = union.scatter / (union.n - 1).clamp_min(1)
    identity = torch.eye(cov.shape[-1], dtype=cov.dtype, device=cov.device)
    base = identity * cov.trace() / cov.shape[-1] if shrinkage_cov is None else shrinkage_matrix(shrinkage_cov, points)
    return 1 - isoscore_from_cov(cov + weight * (base - cov))


@border
def cosreg_penalty(points: Tensor, *, mask: Tensor | None = None, group: Group = "world") -> Tensor:
    r"""Sum of the cosines of all pairs :math:`i \ne j` over :math:`M^2`, the cosine regularisation of Gao et al. 2019.

    :math:`(\lVert\sum_i \hat x_i\rVert^2 - M)/M^2` with unit rows :math:`\hat x_i`:
    :func:`isonb.measures.cosine.cosine_penalty` of the points of all processes, in one collective of d + 2 numbers. A
    zero row counts in M and adds 0. Shapes: points (M, d), mask (M,) optional; returns a scalar in [-1/M, 1). 0 for
    fewer than 2 points.

    >>> round(cosreg_penalty(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).item(), 6)
    0.31427
    """
    points, mask = cloud(points, mask, name="points", points=0, single=True)
    if too_few(points, mask, 2, group):
        return attached_zero(points)
    found = directions(points)
    counts = torch.stack([row_count(points, mask), directed(found, 0)])
    sums = all_sum(torch.cat([found.inverse @ found.rows, counts]), group)
    return (sums[:-2].square().sum() - sums[-1]) / sums[-2].clamp_min(1).square()


@border
def spectrum_penalty(
    points: Tensor,
    *,
    prior: str = "exponential",
    c1: float = 1.0,
    c2: float = 1.0,
    power: float = 2.0,
    top: int | None = None,
    mask: Tensor | None = None,
    group: Group = "world",
) -> Tensor:
    r"""Squared distance of the singular values from a prior curve, spectrum control (Wang et al. 2020).

    .. math:: &\sum_k (s_k - c_1 e^{-c_2 k^\gamma})^2 \quad\text{(exponential)}, \\
              &\sum_k (s_k - c_1 k^{-\gamma})^2 \quad\text{(polynomial)}, \qquad k = 1, 2, \dots

    over the ``top`` largest singular values of the raw matrix (all if None). The constants of the original aren't
    public; SoftDecay's adaptation has c1 = c2 = 1, power 2, the 5 largest, and weight 1e-4, but leaves out the square:
    the squared form is used here. Masked rows add singular values of 0, which are compared with the curve as well.
    Shapes: points (n, d) or (..., n, d) without a process group; returns a scalar, the mean over leading axes. Rows of
    all processes are gathered, into one matrix where there are several. 0 for an empty tensor; a mask must leave a row
    of every matrix (:class:`~isonb.errors.ShapeError` where values are looked at). Singular values whose squares don't
    fit the dtype (from about 1e19 on in float32) raise :class:`~isonb.errors.DegenerateError`.

    >>> s = torch.diag(torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64))
    >>> round(spectrum_penalty(s, prior="polynomial", c1=3.0, power=0.5).item(), 6)
    2.775309
    """
    points, mask = cloud(points, mask, name="points", points=0)
    if prior not in ("exponential", "polynomial"):
        fail(InputError, 'prior must be "exponential" or "polynomial"', repr(prior), "Choose one of the two curves.")
    if process_group(group) is not None:
        points = all_rows(points if mask is None else points[mask], group)
        mask = None
    if points.numel() == 0:
        return attached_zero(points)
    s = singular_values(points, mask=mask)
    s = s if top is None else s[..., :top]
    k = torch.arange(1, s.shape[-1] + 1, dtype=s.dtype, device=s.device)
    curve = c1 * torch.exp(-c2 * k**power) if prior == "exponential" else c1 * k**-power
    return fits((s - curve).square().sum(-1).mean())


def as_single(loss: Tensor) -> Tensor:
    """A half-precision scalar in float32; others as they are."""
    return loss.float() if loss.dtype in (torch.float16, torch.bfloat16) else loss


@border
def balanced_sum(first: Tensor, second: Tensor, mean1: Tensor, mean2: Tensor) -> Tensor:
    r"""Two losses brought to one scale by running means, :math:`\tfrac12(L_1 \bar m/m_1 + L_2 \bar m/m_2)`.

    :math:`\bar m` is the average of the two means, which are constants (IsoLayer, Attieh et al., ICDAR 2023). A mean of
    0 leaves its loss unscaled. All arguments and the result are scalars.

    >>> one = torch.tensor
    >>> balanced_sum(one(0.8), one(3.5), one(1.0), one(4.0)).item()
    2.09375
    """
    average = ((mean1 + mean2) / 2).detach()

    def scaled(loss: Tensor, mean: Tensor) -> Tensor:
        return loss * torch.where(mean == 0, 1.0, average / torch.where(mean == 0, 1.0, mean.detach()))

    return (scaled(first, mean1) + scaled(second, mean2)) / 2
