r"""IsoScore, IsoScore* and the shrinkage that goes with them, all from one number and without eigenvalues.

For a covariance S of d dimensions let :math:`q = \lVert S\rVert_F^2 / (\operatorname{tr} S)^2` (see
:mod:`isonb.measures.purity`). The participation ratio is :math:`1/q` and IsoScore is :math:`(1/q - 1)/(d - 1)`: the
five steps of Rudman et al. 2022, Algorithm 1 (eigenvalues, normalisation, defect, fraction, rescaling) reduce to this.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_points, check_values, is_number, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.measures.purity import length_kurtosis, purity, purity_of
from isonb.numerics.distributed import Group
from isonb.numerics.rows import row_count

_METHODS = ("lw", "oas", "sqrt-lw", "sqrt-oas")


def _score(q: Tensor, d: int) -> Tensor:
    """IsoScore of purity q in d dimensions, rounding kept out of the value but not out of the gradient."""
    score = (1 - q) / (q * (d - 1))
    return score + (score.clamp(0, 1) - score).detach()


def unbiased_parts(q: Tensor, kurtosis: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """A and B of PR-U = A/B, both divided by the squared scatter."""
    n = n.clamp_min(4)
    k = 1 / ((n - 1) * (n - 2))
    return 1 - k + 2 * k * q - kurtosis / (n - 2), q + k - kurtosis / (n - 2)


def unbiased_ratio(q: Tensor, kurtosis: Tensor, n: Tensor) -> Tensor:
    """PR-U = A/B; 0 where B vanishes, or of fewer than four points, and values are not looked at."""
    a, b = unbiased_parts(q, kurtosis, n)
    usable = (b.abs() > 16 * torch.finfo(q.dtype).eps * q) & (n >= 4)
    if check_values(q) and not bool(usable.all()):
        invariant = "the unbiased estimate of tr(Sigma^2) must not vanish"
        fail(DegenerateError, invariant, b[~usable][0].item(), "Give more points; orthogonal ones tell nothing.")
    return torch.where(usable, a / torch.where(usable, b, 1.0), 0.0)


def plain_score(x: Tensor, mask: Tensor | None, unbiased: bool, group: Group = None) -> Tensor:
    """:func:`isoscore` of a checked cloud, which the processes of a group hold together."""
    q, d = purity(x, mask, group=group), x.shape[-1]
    return (unbiased_ratio(q, *length_kurtosis(x, mask, group)) - 1) / (d - 1) if unbiased else _score(q, d)


@validated
def participation_ratio(x: Tensor, *, unbiased: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""The number of dimensions that share the variance evenly, :math:`(\operatorname{tr} S)^2 / \lVert S\rVert_F^2`.

    S is the covariance of the cloud. In a sample of n points the ratio is biased low, about
    :math:`1/\mathrm{PR}_n = 1/\mathrm{PR} + 1/n`, and never above n - 1. ``unbiased=True`` gives PR-U (Chun, Canatar,
    Chung, Lee, ICLR 2026): numerator and denominator averaged over distinct rows only, so both are unbiased whatever
    the distribution. With :math:`T = \sum_i r_i`, :math:`Q = \sum_i r_i^2` of the squared distances r to the mean,
    F the squared Frobenius norm of the scatter and :math:`k = 1/((n-1)(n-2))`,

    .. math:: \mathrm{PR\text{-}U} = \frac{T^2 (1-k) + 2kF - nQ/(n-2)}{F + kT^2 - nQ/(n-2)}.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...). Range [1, min(n - 1, d)]. PR-U is at least 1 and
    not clipped: it may pass d, so that averages stay honest; it assumes independent rows.
    Differentiable twice. All points equal: :class:`~isonb.errors.DegenerateError`; on an accelerator the limit 1 with
    zero gradient. A denominator of 0, as of orthogonal points of one length: the same error, on an accelerator PR-U 0.
    Fewer than 2 points (4 if unbiased): :class:`~isonb.errors.ShapeError`.

    >>> x = torch.tensor([[0.0, 1], [1, 3], [2, 0], [4, 1], [6, 4], [7, 3], [8, 5], [9, 4]])
    >>> round(participation_ratio(x).item(), 4), round(participation_ratio(x, unbiased=True).item(), 4)
    (1.1812, 1.2257)
    """
    x, mask = check_points(x, mask, points=4 if unbiased else 2)
    q = purity(x, mask)
    return unbiased_ratio(q, *length_kurtosis(x, mask)) if unbiased else 1 / q


@validated
def isoscore(x: Tensor, *, unbiased: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""IsoScore of a cloud (Rudman et al. 2022, Algorithm 1): :math:`(\mathrm{PR} - 1)/(d - 1)`.

    PR is :func:`participation_ratio`. 1 means every direction has the same variance, 0 that one direction has all of
    it; k equal directions of d give (k - 1)/(d - 1). Invariant to translation, rotation and scale. A sample of n points
    can't pass (n - 2)/(d - 1); ``unbiased=True`` takes PR-U, is free of that limit and may pass 1.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...). Differentiable twice. Errors as
    :func:`participation_ratio`, and d = 1: :class:`~isonb.errors.ShapeError`. All points equal on an accelerator: 0,
    with zero gradient.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])
    >>> round(isoscore(x).item(), 6)
    0.470588
    >>> round(isoscore(torch.eye(3)).item(), 6)  # a triangle: two of three directions
    0.5
    """
    x, mask = check_points(x, mask, points=4 if unbiased else 2, dims=2)
    return plain_score(x, mask, unbiased)


@validated
def isoscore_from_cov(cov: Tensor) -> Tensor:
    r"""IsoScore of a covariance matrix, such as a population's or the one :class:`isonb.Moments` keeps.

    Same formula as :func:`isoscore`; the factor 1/n or 1/(n - 1) doesn't matter. Shapes: cov (..., d, d), symmetric
    positive semidefinite (not verified beyond a positive trace); returns (...) in [0, 1]. Differentiable. Zero matrix:
    :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> round(isoscore_from_cov(torch.diag(torch.tensor([10.0, 1, 1, 1, 1, 1, 1, 1, 1, 1]))).item(), 3)
    0.257
    """
    cov, _ = check_points(cov, name="cov", points=1, dims=2)
    if cov.shape[-1] != cov.shape[-2]:
        fix = "Pass a covariance; for points call isoscore."
        fail(ShapeError, "cov must be square, (..., d, d)", f"shape {tuple(cov.shape)}", fix)
    return _score(purity_of(cov), cov.shape[-1])


@validated
def shrinkage_intensity(x: Tensor, method: str = "sqrt-lw", *, mask: Tensor | None = None) -> Tensor:
    r"""How much of the trace-scaled identity to mix into the sample covariance, zeta in [0, 1].

    ``"lw"`` is Ledoit and Wolf 2004, ``"oas"`` the oracle approximating shrinkage of Chen et al. 2010 (it assumes
    Gaussian points). Both minimise squared error, which shrinks the spread of the eigenvalues by (1 - zeta)^2 where
    the truth asks for 1 - zeta; ``"sqrt-lw"`` and ``"sqrt-oas"`` undo that, :math:`1 - \sqrt{1 - \zeta}`, and are the
    ones for IsoScore*. Covariances here are those with 1/n, as in scikit-learn.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...). Differentiable; an isotropic sample gives 1. Errors as
    :func:`isoscore`. All points equal on an accelerator: they count as one direction.

    >>> q8 = torch.tensor([[3.0, 0, 0], [-3, 0, 1], [0, 2, 0], [0, -2, -1], [1, 1, 1], [-1, -1, -1], [2, 1, 0],
    ...                    [-2, -1, 0]])
    >>> [round(shrinkage_intensity(q8, method).item(), 5) for method in ("lw", "sqrt-lw", "oas")]
    [0.3923, 0.22045, 0.67789]
    """
    x, mask = check_points(x, mask, dims=2)
    if method not in _METHODS:
        fail(InputError, f"method must be one of {', '.join(_METHODS)}", repr(method), "The default is 'sqrt-lw'.")
    q, d = purity(x, mask), x.shape[-1]
    if method.endswith("lw"):
        zeta = _lw_intensity(q, d, *length_kurtosis(x, mask))
    else:
        zeta = _intensity(q, d, ((1 - 2 / d) * q + 1) / (row_count(x, mask).clamp_min(1) + 1 - 2 / d))
    if not method.startswith("sqrt-"):
        return zeta
    rest = 1 - zeta
    return torch.where(rest > 0, 1 - torch.where(rest > 0, rest, 1.0).sqrt(), 1.0)


def _lw_intensity(q: Tensor, d: int, kurtosis: Tensor, n: Tensor) -> Tensor:
    return _intensity(q, d, (kurtosis - q).clamp_min(0) / n.clamp_min(1))


def _intensity(q: Tensor, d: int, error: Tensor) -> Tensor:
    spread = q - 1 / d
    inside = error < spread  # false also for an isotropic sample, whose spread is zero
    return torch.where(inside, error / torch.where(inside, spread, 1.0), 1.0)


@validated
def isoscore_star(
    x: Tensor, zeta: float | str = 0.2, shrinkage_cov: Tensor | None = None, *, mask: Tensor | None = None
) -> Tensor:
    r"""IsoScore* (I-STAR, Rudman and Eickhoff, ICLR 2024, Algorithm 1): IsoScore of a shrunk covariance.

    .. math:: \Sigma_\zeta = (1 - \zeta)\, S(X) + \zeta\, \Sigma_S, \qquad
        \mathrm{IsoScore}^* = \frac{(\operatorname{tr}\Sigma_\zeta)^2 / \lVert\Sigma_\zeta\rVert_F^2 - 1}{d - 1}

    ``shrinkage_cov`` is :math:`\Sigma_S`, the covariance of a larger sample, and a constant: no gradient flows to it.
    Without it, the identity scaled to the trace of S(X): that rescales IsoScore, since then with
    :math:`q = \lVert S\rVert_F^2 / (\operatorname{tr} S)^2` the shrunk covariance has
    :math:`1/d + (1 - \zeta)^2 (q - 1/d)`, and the bias of a small sample stays. ``zeta="auto"`` (only without it)
    takes the corrected Ledoit-Wolf intensity of :func:`shrinkage_intensity`, which is part of what is differentiated.
    ``zeta=0`` is :func:`isoscore`; ``zeta=1`` is a constant with zero gradient. The weight stands on the shrinkage
    matrix, as in the paper's algorithm and code; one sentence of its text has the roles exchanged.

    Shapes: x (..., n, d), shrinkage_cov (d, d) or with the batch axes of x, symmetric positive semidefinite (not
    verified), mask (..., n) optional; returns (...) in [0, 1]. Differentiable twice in x. Errors: d = 1 or a shape that
    doesn't fit :class:`~isonb.errors.ShapeError`; a shrunk covariance without trace (all points equal, and
    ``shrinkage_cov`` absent, zero or of weight 0) :class:`~isonb.errors.DegenerateError`. On an accelerator such points
    count as one direction: 0 before shrinkage, with zero gradient.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, -2.0]])
    >>> [round(isoscore_star(x, zeta, torch.eye(2)).item(), 6) for zeta in (0, 0.3, 1)]
    [0.470588, 0.628944, 1.0]
    """
    return shrunk_score(*check_points(x, mask, dims=2), zeta, shrinkage_cov)


def shrunk_score(
    x: Tensor, mask: Tensor | None, zeta: float | str, shrinkage_cov: Tensor | None, group: Group = None
) -> Tensor:
    """:func:`isoscore_star` of a checked cloud, which the processes of a group hold together."""
    d = x.shape[-1]
    if shrinkage_cov is not None:
        base = shrinkage_matrix(shrinkage_cov, x)
        return _score(purity(x, mask, checked_zeta(zeta), base, group), d)
    weight = None if zeta == "auto" else checked_zeta(zeta)
    q = purity(x, mask, group=group)
    # (1 - zeta)^2, which for the corrected intensity is 1 minus the uncorrected one
    keep = 1 - _lw_intensity(q, d, *length_kurtosis(x, mask, group)) if weight is None else (1 - weight) ** 2
    # the identity pulls every share of variance towards 1/d, by the factor 1 - zeta
    return _score(1 / d + keep * (q - 1 / d), d)


def checked_zeta(zeta: float | str) -> float:
    """The weight of the shrinkage matrix as a number in [0, 1], or an error."""
    if zeta == "auto":
        fix = "Leave shrinkage_cov out, or pass its weight."
        fail(InputError, "zeta must be a number in [0, 1] where shrinkage_cov is given", repr(zeta), fix)
    if not is_number(zeta) or not 0 <= float(zeta) <= 1:
        fix = "It is the weight of the shrinkage matrix."
        fail(InputError, "zeta must be a number in [0, 1], or 'auto'", repr(zeta), fix)
    return float(zeta)


def shrinkage_matrix(cov: Tensor, x: Tensor) -> Tensor:
    """A shrinkage matrix that fits the points x: detached, in their dtype and on their device, or an error."""
    d = x.shape[-1]
    cov, _ = check_points(cov, name="shrinkage_cov", points=0)
    batch = cov.shape[:-2]
    fits = batch == x.shape[max(0, x.ndim - 2 - len(batch)) : -2] or not batch
    if cov.shape[-2:] != (d, d) or not fits:
        fix = "Give one matrix for all clouds, or one a cloud."
        fail(ShapeError, f"shrinkage_cov must be ({d}, {d}) for x {tuple(x.shape)}", tuple(cov.shape), fix)
    return cov.detach().to(x)
