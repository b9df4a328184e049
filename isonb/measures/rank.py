r"""How many directions a cloud uses: the effective ranks, one family by order, and how fast its spectrum decays."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from isonb.checks import check_values, is_number, validated
from isonb.errors import DegenerateError, FitWarning, InputError, ShapeError, fail
from isonb.measures.spectrum import shares_of

FIRST = 11  # the first rank of alpha-ReQ's fit


@validated
def effective_rank(
    x: Tensor, order: float = 1.0, *, squared: bool = False, center: bool = False, mask: Tensor | None = None
) -> Tensor:
    r"""The effective number of directions, of any Renyi order a: Hill's number of the shares q of the spectrum.

    .. math:: N_a(q) = \Bigl(\sum_i q_i^a\Bigr)^{1/(1-a)}, \qquad N_1 = e^{-\sum_i q_i \ln q_i}, \qquad
        N_\infty = 1 / \max_i q_i

    q are the singular values over their sum, or with ``squared=True`` their squares over theirs, the shares of
    variance. It falls with the order, and every member is 1 for a line and k for k equal directions:

    ========== =========== ========== ==================================================================
    ``order``  ``squared`` ``center`` known as
    ========== =========== ========== ==================================================================
    1          no          no         effective rank (Roy and Vetterli 2007), RankMe (Garrido et al. 2023)
    1          yes         yes        the exponential of von Neumann's entropy
    2          yes         yes        :func:`participation_ratio`
    infinite   yes         no         stable rank
    infinite   yes         yes        NESum (He and Ozay 2022)
    ========== =========== ========== ==================================================================

    RankMe's definition adds 1e-7 to each share; here nothing is added, and a singular value below the rounding of the
    largest counts as 0. A sample of n points can't pass n, and reads low until n is many times d: compare at equal n.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...) in [1, min(n, d)]. Differentiable. Errors: order not
    positive :class:`~isonb.errors.InputError`; all points zero (equal, if centred)
    :class:`~isonb.errors.DegenerateError`, on an accelerator 1.

    >>> x = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    >>> [round(effective_rank(x, order).item(), 6) for order in (0.5, 1, 2, math.inf)]
    [1.856273, 1.738592, 1.578786, 1.318806]
    """
    if not is_number(order) or not order > 0:
        fail(InputError, "order must be a positive number", repr(order), "1 is RankMe's, math.inf allowed.")
    power = 2 if squared else 1
    return effective_number(shares_of(x, center, mask, power), float(order), power)


def effective_number(shares: Tensor, order: float, power: int = 1) -> Tensor:
    """Hill's number (...) of shares (..., r) that sum to 1; 1 where all of them are 0.

    ``power``: that of what was rounded, before the shares were made of it (2: squares of singular values).
    """
    most = shares.amax(-1, keepdim=True)
    rounding = 2 * math.sqrt(shares.shape[-1]) * torch.finfo(shares.dtype).eps
    usable = shares > rounding**power * most  # the rest is what rounding leaves of 0
    logs = torch.where(usable, shares, 1.0).log()  # 0 for the rest, without a slope
    if order == 1:
        return (-shares * logs).sum(-1).exp()
    if math.isinf(order):
        top = most.squeeze(-1)
        return torch.where(top > 0, 1 / torch.where(top > 0, top, 1.0), 1.0)
    gap = order - 1
    if abs(gap) < 0.1:  # the sum is near 1, and its logarithm near 0
        return ((shares * torch.expm1(gap * logs)).sum(-1).log1p() / -gap).exp()
    top = torch.where(most > 0, most, 1.0).detach().log()  # without it, powers of high order vanish
    beside = torch.where(usable, logs - top, 0.0)
    total = torch.where(usable, (order * beside).exp(), 0.0).sum(-1)
    return ((torch.where(total > 0, total, 1.0).log() + order * top.squeeze(-1)) / -gap).exp()


@validated
def alpha_req(
    x: Tensor, first: int | None = None, last: int = 100, *, weighted: bool = True, mask: Tensor | None = None
) -> Tensor:
    r"""The rate :math:`\alpha` at which variances decay, :math:`\lambda_k \propto k^{-\alpha}` (Agrawal et al. 2022).

    Least squares of :math:`\ln \lambda_k` against :math:`\ln k` over the ranks ``first`` (11) to ``last``, or to the
    last there is, each of weight 1/k, as the public code of reptrix has it; ``weighted=False``: all alike.
    :math:`\lambda` are the eigenvalues of the covariance; those whose root is rounding (below min(n, d) eps of the
    largest root) are left out. A sample reads high: an isotropic cloud in 768 dimensions has 0 and reads 0.39 from 128
    points, 0.05 from 20,000. A cloud of 11 ranks or fewer is fitted from rank 1 on, with a
    :class:`~isonb.errors.FitWarning`.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...) >= 0. Differentiable. Errors: fewer than two ranks
    between a ``first`` of yours and min(n, d) :class:`~isonb.errors.ShapeError`; fewer than two of them with variance
    :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> s = torch.arange(1.0, 201.0, dtype=torch.float64) ** -0.75  # variances k^-1.5
    >>> round(alpha_req(torch.cat([s.diag(), -s.diag()])).item(), 6)
    1.5
    """
    shares = shares_of(x, True, mask)
    return power_law(shares, first_rank(first, shares.shape[-1]), last, weighted)


def first_rank(first: int | None, ranks: int) -> int:
    """The first rank of :func:`alpha_req`'s fit: by default 11, or 1 of a cloud that has no two from there on."""
    if first is not None:
        return first
    if (usual := usual_first_rank(ranks)) != FIRST:
        what = f"fitted from rank {usual} on instead of {FIRST}, since the cloud has only {ranks}"
        warnings.warn(f"alpha_req: {what}. Pass first to choose.", FitWarning, stacklevel=4)
    return usual


def usual_first_rank(ranks: int) -> int:
    """The first rank of the fit where none is chosen."""
    return FIRST if ranks > FIRST else 1


def power_law(shares: Tensor, first: int = FIRST, last: int = 100, weighted: bool = True) -> Tensor:
    """:func:`alpha_req` of descending shares of variance (..., r)."""
    r = shares.shape[-1]
    if not 1 <= first < min(last, r):
        fix = "Pass more points or dimensions, or lower first."
        fail(ShapeError, f"two ranks must lie from first to last and to the {r} there are", f"{first} to {last}", fix)
    rank = torch.arange(first, min(last, r) + 1, dtype=shares.dtype, device=shares.device)
    used = shares[..., first - 1 : last]
    usable = used.sqrt() > r * torch.finfo(shares.dtype).eps * shares[..., :1].sqrt()
    few = usable.sum(-1) < 2
    if check_values(shares) and bool(few.any()):
        got = f"{int(usable.sum(-1).min())} from rank {first} on"
        fail(DegenerateError, "two directions or more must have variance", got, "Pass more points, or lower first.")
    weight = usable / rank if weighted else usable.to(shares.dtype)
    whole = weight.sum(-1, keepdim=True).clamp_min(torch.finfo(shares.dtype).tiny)
    height = torch.where(usable, torch.where(usable, used, 1.0).log(), 0.0)
    along = rank.log() - (weight * rank.log()).sum(-1, keepdim=True) / whole
    slope = (weight * along * height).sum(-1) / torch.where(few, 1.0, (weight * along.square()).sum(-1))
    return torch.where(few, 0.0, -slope)
