"""What the singular values of a cloud say: shares of variance, the shape of their distribution, VarEx."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, check_values, is_whole, mask_of, nonnegative, validated
from isonb.errors import DegenerateError, InputError, ShapeError, fail
from isonb.numerics.rows import center_rows
from isonb.numerics.scale import size_of, unit_sized


def _values(x: Tensor, center: bool, mask: Tensor | None) -> Tensor:
    x, mask = check_points(x, mask, points=2 if center else 1)
    s: Tensor = torch.linalg.svdvals(check_overflow(center_rows(x, mask)[0], "spread") if center else x)
    return check_overflow(s, "singular values")


def shares_of(x: Tensor, center: bool, mask: Tensor | None, power: int = 2) -> Tensor:
    """Squared singular values, or their first power, over their sum; zero for a cloud without any, where values are
    not looked at.
    """
    s = unit_sized(_values(x, center, mask), -1)
    square = s * s if power == 2 else s
    total = square.sum(-1, keepdim=True)
    usable = total > 0
    if check_values(s) and not bool(usable.all()):
        what = "not all be equal" if center else "not all be zero"
        fail(DegenerateError, f"the points must {what}", "singular values that are all 0", "Drop such clouds.")
    return torch.where(usable, square / torch.where(usable, total, 1.0), 0.0)


def _leading(shares: Tensor, k: int) -> Tensor:
    if not is_whole(k) or not 1 <= k <= shares.shape[-1]:
        fix = "A cloud has min(n, d) singular values."
        fail(ShapeError, f"k must be between 1 and {shares.shape[-1]}", repr(k), fix)
    return shares[..., :k]


@validated
def singular_values(x: Tensor, *, center: bool = False, drop_last: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""Singular values of the cloud as a matrix, descending; of the centred one with ``center=True``.

    Exact, all of them. ``drop_last=True`` leaves out the smallest, as the randomised decomposition in the official
    code of SoftDecay (Yan et al., UAI 2022) does.

    Shapes: x (..., n, d), mask (..., n) optional; returns (..., min(n, d)), one less with ``drop_last``. Masked rows
    count in n and add zeros at the end. In the units of x. Differentiable; equal and zero values get a valid
    subgradient. Errors: wrong rank or fewer points than 1 (2 centred) :class:`~isonb.errors.ShapeError`.

    >>> singular_values(torch.tensor([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    s = _values(x, center, mask)
    if drop_last and s.shape[-1] < 2:
        fail(ShapeError, "drop_last needs at least 2 singular values", s.shape[-1], "Pass more points or dimensions.")
    return s[..., :-1] if drop_last else s


@validated
def anisotropy(x: Tensor, k: int = 3, *, center: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""The share of each leading direction alone, :math:`A_j = s_j^2 / \sum_i s_i^2` for j = 1..k.

    Source: the code of Shrink-the-longest (arXiv 2501.05502), after Razzhigaev et al. 2024; its text does not print
    the formula. ``center=True`` gives the shares of variance, eigenvalues of the covariance over their sum.

    Shapes: x (..., n, d), mask (..., n) optional; returns (..., k). Range [0, 1], lower is more isotropic, A_1 at least
    1/min(n, d). Differentiable. Errors: k above min(n, d) :class:`~isonb.errors.ShapeError`; all points zero (equal, if
    centred) :class:`~isonb.errors.DegenerateError`, on an accelerator zeros.

    >>> x = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 3.0], [4.0, 4.0]])
    >>> [round(share, 6) for share in anisotropy(x, 2, center=True).tolist()]
    [0.768742, 0.231258]
    """
    return _leading(shares_of(x, center, mask), k)


@validated
def explained_variance(x: Tensor, k: int = 3, *, center: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""The share of the first j directions together, :math:`EV_j = \sum_{i \le j} s_i^2 / \sum_i s_i^2`, j = 1..k.

    Source: IsoBN (Zhou et al. 2021), used by SoftDecay (Yan et al., UAI 2022) on raw vectors (the default) and by
    IsoLayer (Attieh et al., ICDAR 2023) with prose about principal components (``center=True``). The running sum of
    :func:`anisotropy`, with the same shapes, range, errors and limit.

    >>> explained_variance(torch.tensor([[3.0, 0.0], [0.0, 1.0]]), 2).tolist()
    [0.9, 1.0]
    """
    return _leading(shares_of(x, center, mask).cumsum(-1), k)


@validated
def varex_score(x: Tensor, p: float = 0.3, *, official_index: bool = False, mask: Tensor | None = None) -> Tensor:
    r"""VarEx: how close the first share p of the directions is to explaining only p of the variance.

    :math:`(m/d) / EV_m` of the centred cloud with :math:`m = \lfloor p d \rfloor` (a comparator in Rudman et al. 2022).
    1 = isotropic; the lowest is m/d, with all variance in the first m directions, as n <= m + 1 points always have it;
    n points of more dimensions can't pass (n - 1)/d or, if that is more, m/d. ``official_index=True`` divides by EV of
    m + 1 as their code does, one past: isotropic is then m/(m + 1).

    Shapes: x (..., n, d), mask (..., n) optional; returns (...). Differentiable. Errors: p outside (0, 1] or p d < 1
    :class:`~isonb.errors.InputError`; all points equal :class:`~isonb.errors.DegenerateError`, on an accelerator 0.

    >>> varex_score(torch.cat([torch.eye(4), -torch.eye(4)]), p=0.5).item()
    1.0
    """
    shares = shares_of(x, True, mask)
    d = x.shape[-1]
    m = math.floor(p * d + 1e-9) if 0 < p <= 1 else 0
    if m < 1:
        fail(InputError, "p must be in (0, 1] with p * d >= 1", f"p {p}, d {d}", "Raise p.")
    explained = shares[..., : m + official_index].sum(-1)
    usable = explained > 0
    return torch.where(usable, m / d / torch.where(usable, explained, 1.0), 0.0)


def _over_max(s: Tensor) -> Tensor:
    """Values over their largest, ascending."""
    s = nonnegative(s, name="s").sort(-1).values
    top = s[..., -1:]
    if check_values(s) and not bool((top > 0).all()):
        fail(DegenerateError, "the largest singular value must be positive", 0.0, "Drop clouds of zeros.")
    return s / torch.where(top > 0, top, 1.0)


@validated
def spectral_skewness(s: Tensor, *, mask: Tensor | None = None) -> Tensor:
    r"""Biased skewness of singular values over the last axis, :math:`m_3 / m_2^{3/2}` with central moments m.

    SoftDecay (Yan et al., UAI 2022) pools the values of all sentences of a batch before: flatten them, with ``mask`` to
    leave out padding. A caption there calls it the second moment; it is the standardised third.

    Shapes: s (..., N), mask (..., N) optional; returns (...). Scale-free; positive when many values are small.
    Differentiable. Errors: negative or non-finite values, or all values equal :class:`~isonb.errors.DegenerateError`;
    all equal on an accelerator: 0.

    >>> round(spectral_skewness(torch.tensor([0.0, 0.0, 0.0, 4.0])).item(), 6)
    1.154701
    """
    keep = None if mask is None or not isinstance(s, Tensor) else mask_of(s.unsqueeze(-1), mask, name="s")
    s = nonnegative(s if keep is None else torch.where(keep, s, 0.0), name="s")
    weight = torch.ones_like(s) if keep is None else keep.to(s.dtype)
    n = weight.sum(-1, keepdim=True).clamp_min(1)
    mean = (s * weight).sum(-1, keepdim=True) / n
    gap = (s - mean) * weight
    size = size_of(gap, -1)  # the largest deviation is brought to about 1, so that no cube vanishes or overflows
    gap = gap / size
    m2, m3 = (gap**2).sum(-1, keepdim=True) / n, (gap**3).sum(-1, keepdim=True) / n
    usable = m2.sqrt() * size > torch.finfo(s.dtype).eps * mean
    if check_values(s) and not bool(usable.all()):
        fail(DegenerateError, "singular values must not all be equal", "variance 0", "It has no skewness.")
    return torch.where(usable, m3 / torch.where(usable, m2, 1.0) ** 1.5, 0.0).squeeze(-1)


@validated
def spectral_median(s: Tensor, q: float = 0.5) -> Tensor:
    r"""The median of singular values over their largest, or another quantile ``q`` in [0, 1] (linear interpolation).

    SoftDecay (Yan et al., UAI 2022) reports it of the pooled values of a batch: flatten first for that reading, keep
    the axes for one value a sentence. Shapes: s (..., N); returns (...) in [0, 1], low when many directions vanish.
    Differentiable. Errors: negative or non-finite values, or all of them zero, :class:`~isonb.errors.DegenerateError`
    (all zero on an accelerator: 0); q outside [0, 1] :class:`~isonb.errors.InputError`.

    >>> spectral_median(torch.tensor([8.0, 4.0, 2.0, 1.0])).item()
    0.375
    """
    values = _over_max(s)
    if not 0 <= q <= 1:
        fail(InputError, "q must be in [0, 1]", q, "0.5 is the median.")
    place = q * (values.shape[-1] - 1)
    low, high = values[..., math.floor(place)], values[..., math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


@validated
def spectral_cdf(s: Tensor) -> tuple[Tensor, Tensor]:
    r"""The cumulative distribution of singular values over their largest: :math:`F(x_i) = i/N` at ascending x.

    A steep rise near 0 means many vanishing directions (SoftDecay, Yan et al., UAI 2022). Shapes: s (..., N); returns
    x and F, both (..., N). x is differentiable. Errors as :func:`spectral_median`.

    >>> [part.tolist() for part in spectral_cdf(torch.tensor([4.0, 2.0, 1.0, 1.0]))]
    [[0.25, 0.25, 0.5, 1.0], [0.25, 0.5, 0.75, 1.0]]
    """
    values = _over_max(s)
    n = values.shape[-1]
    return values, (torch.arange(1, n + 1, device=values.device, dtype=values.dtype) / n).expand_as(values)
