"""Ranks that aren't whole numbers: how many directions a cloud uses, as work on self-supervised learning counts them.

Each is a function of the spectrum, so none sees where the cloud lies unless it says so. IsoScore and the participation
ratio are the same kind of number: 1 / sum of squared shares of variance.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import border, check_values, cloud
from isonb.errors import DegenerateError, InputError, fail
from isonb.measures.spectrum import shares_of, values_of
from isonb.numerics.scale import unit_sized

__all__ = ["alpha_req", "lidar", "rankme", "stable_rank"]


def _effective(s: Tensor) -> Tensor:
    """The exponential of the entropy of values over their sum; 0 where all are 0 and values aren't looked at."""
    s = unit_sized(s, -1)
    total = s.sum(-1, keepdim=True)
    if check_values(s) and not bool((total > 0).all()):
        fail(DegenerateError, "the cloud must have a direction", "singular values that are all 0", "Drop such clouds.")
    share = s / torch.where(total > 0, total, 1.0)
    there = share > 0
    entropy = -(share * torch.where(there, share, 1.0).log()).sum(-1)
    return entropy.exp() * (total.squeeze(-1) > 0)


@border
def rankme(x: Tensor, *, center: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""RankMe: :math:`\exp(-\sum_i p_i \ln p_i)` with :math:`p_i = s_i / \sum_j s_j` of the singular values.

    Source: RankMe (Garrido et al. 2023), the effective rank of Roy and Vetterli; the 1e-7 that the paper adds to each p
    against a logarithm of 0 is left out. The vectors are taken raw; ``center=True`` takes their mean away.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...). Range [1, min(n, d)]. Differentiable. Errors: all
    points zero (equal, if centred) :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> round(rankme(torch.diag(torch.tensor([2.0, 2.0, 2.0, 0.0]))).item(), 6)
    3.0
    """
    return _effective(values_of(x, center, mask))


@border
def stable_rank(x: Tensor, *, center: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""The stable rank :math:`\sum_i s_i^2 / s_1^2`, which is one over the share of the leading direction.

    Source: Rudelson and Vershynin 2007, as numerical rank. With ``center=True`` it is NESum (He and Ozay 2022), the sum
    of the eigenvalues of the covariance over the largest.

    Shapes, errors and limit as of :func:`~isonb.measures.spectrum.anisotropy`; returns (...). Range [1, min(n, d)].

    >>> stable_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0]))).item()
    1.5
    """
    leading = shares_of(x, center, mask)[..., 0]
    return torch.where(leading > 0, 1 / torch.where(leading > 0, leading, 1.0), 0.0)


@border
def alpha_req(x: Tensor, first: int = 1, last: int | None = None, *, mask: Tensor | None = None) -> Tensor:
    r"""The decay :math:`\alpha` of the eigenvalues of the covariance, :math:`\lambda_i \propto i^{-\alpha}`.

    Minus the slope of a least-squares line through :math:`(\ln i, \ln \lambda_i)` for i = ``first`` .. ``last``.
    Source: alpha-ReQ (Agrawal et al. 2022), which reads values near 1 as good. All eigenvalues are taken by default; of
    n points there are at most n - 1, and the tail of a small sample falls faster than that of the population.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...). 0 for an isotropic cloud, any sign by rounding.
    Differentiable. Errors: fewer than 2 places, or places beyond min(n, d) :class:`~isonb.errors.InputError`; an
    eigenvalue of 0 among them :class:`~isonb.errors.DegenerateError`, on an accelerator taken for the least number.

    >>> axes = torch.diag(torch.tensor([1.0, 2.0, 3.0]).pow(-0.5))
    >>> round(alpha_req(torch.cat([axes, -axes])).item(), 6)
    1.0
    """
    s = values_of(x, True, mask)
    last = s.shape[-1] if last is None else last
    if not 1 <= first < last <= s.shape[-1]:
        fail(
            InputError, f"first and last must lie in 1..{s.shape[-1]}, rising", f"{first}, {last}", "Take more places."
        )
    chosen = unit_sized(s, -1)[..., first - 1 : last]
    if check_values(s) and bool((chosen <= torch.finfo(s.dtype).eps * x.shape[-2]).any()):
        fix = "Lower last: n points have at most n - 1."
        fail(DegenerateError, "eigenvalues must be above 0 up to the last place", f"0 before place {last}", fix)
    places = torch.arange(first, last + 1, device=s.device, dtype=s.dtype).log()
    places = places - places.mean()
    return -2 * (places * chosen.clamp_min(torch.finfo(s.dtype).tiny).log()).sum(-1) / places.square().sum()


@border
def lidar(views: Tensor, delta: float = 1e-4) -> Tensor:
    r"""LiDAR: the effective rank of what tells objects apart, beside how much the views of one object differ.

    The exponential of the entropy of the eigenvalues of :math:`\Sigma_w^{-1/2} \Sigma_b \Sigma_w^{-1/2}` over their
    sum: :math:`\Sigma_b` is the covariance of the objects' means, :math:`\Sigma_w` the mean covariance within objects
    plus ``delta`` times the identity. Source: LiDAR (Thilak et al. 2024); views of a sentence are its encodings under
    dropout, or paraphrases.

    Shapes: views (..., objects, views, d), at least 2 of both; returns (...). Range [1, min(objects - 1, d)]. ``delta``
    above 0, in squared units of the views. Differentiable where eigenvalues differ. Errors: equal means
    :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> corners = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> noise = 0.1 * torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> round(lidar(corners[:, None] + noise[None]).item(), 6)
    2.0
    """
    views, _ = cloud(views, name="views")
    if views.ndim < 3 or views.shape[-3] < 2:
        fail(InputError, "views must be (..., objects, views, d), 2 objects or more", tuple(views.shape), "Stack them.")
    if not delta > 0:
        fail(InputError, "delta must be above 0", delta, "Try 1e-4.")
    means = views.mean(-2)
    inside = (views - means.unsqueeze(-2)).flatten(-3, -2)
    apart = means - means.mean(-2, keepdim=True)
    within = inside.mT @ inside / inside.shape[-2]
    within = within + delta * torch.eye(within.shape[-1], dtype=within.dtype, device=within.device)
    whitened = torch.linalg.solve_triangular(torch.linalg.cholesky(within), apart.mT, upper=False)
    return _effective(torch.linalg.svdvals(whitened).square())
