"""Persistent entropy of a barcode, and which of its bars are features rather than noise.

Both take lengths on the last axis, in any order. A bar of length zero is no bar: it is left out, as is a masked one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.checks import check_values, mask_of, nonnegative, validated
from isonb.errors import DegenerateError, fail
from isonb.numerics.scale import precise

TABLE = {"cpu": 2**16}  # entries of the pass table held at a time, by device: on the CPU what its cache holds


def _lengths(bars: Tensor, mask: Tensor | None) -> Tensor:
    """Checked lengths with the masked ones set to zero, whatever they hold."""
    if mask is not None and isinstance(bars, Tensor) and bars.ndim:
        real = mask_of(bars.unsqueeze(-1), mask, name="bars")
        assert real is not None
        bars = torch.where(real, bars, bars.new_zeros(()))
    return nonnegative(bars, name="bars")


@validated
def persistent_entropy(bars: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Shannon entropy of the bar lengths, :math:`H = -\sum_k p_k \ln p_k` with :math:`p_k = l_k / \sum_j l_j`.

    In nats, from 0 (one bar) to ln m (m equal bars); the same for lengths in any unit. The gradient is
    :math:`\partial H / \partial l_k = -(\ln p_k + H) / \sum_j l_j`, and 0 for a bar of length 0.

    Shapes: ``bars`` (..., m), m >= 1, half precision raised to float32, ``mask`` (..., m) optional; returns (...).
    Raises :class:`~isonb.errors.InputError` for negative or non-finite lengths, and when no bar is positive; on
    accelerators the entropy is then 0, with gradient 0.

    Source: Shrink-the-longest (arXiv 2501.05502); Chintakunta et al. 2015, An entropy-based persistence barcode.

    >>> round(persistent_entropy(torch.tensor([9.0, 4.0, 2.0, 1.5, 1.0, 0.5])).item(), 4)
    1.3921
    """
    bars = _lengths(bars, mask)
    longest = bars.detach().amax(-1, keepdim=True)
    if check_values(bars) and not bool((longest > 0).all()):
        fix = "All points are equal, or the mask leaves no bar."
        fail(DegenerateError, "a barcode must hold at least one positive bar", "only zero bars", fix)
    shares = torch.where(bars > 0, bars, 0.0) / torch.where(longest > 0, longest, 1.0)  # no gradient into a zero bar
    total = shares.sum(-1, keepdim=True)
    shares = shares / torch.where(longest > 0, total, 1.0)
    present = shares > 0
    return -(shares * torch.where(present, shares, 1.0).log()).sum(-1)


@validated
@torch.no_grad()
def prominent_bars(bars: Tensor, keep_breaking: bool = True, mask: Tensor | None = None) -> Tensor:
    r"""Which bars are topological features, by the entropy rule of Atienza, Gonzalez-Diaz and Rucco.

    With T the longest bar, r the shortest and :math:`a_1 \ge \dots \ge a_m` the others, let :math:`\alpha = r / T`. A
    pass over the list :math:`L = (a_1, \dots, a_m, r, T)` of n bars neutralises the longest ones in turn: for
    :math:`R = L_{i+1..n}` of sum P the i bars before it become :math:`P / e^{H(R)}` each, so that
    :math:`S_i = P + i P / e^{H(R)}`. It stops at the first i < n - 2 with :math:`S_{i-1} < S_i` (else at n - 3), the
    first bar whose neutralisation lowers the share of T. If
    :math:`\lceil n \alpha (\alpha - 1 - \ln\alpha) / (1 - \alpha)^2 \rceil < i`, the next pass takes only
    :math:`(a_1, \dots, a_i, r, T)`; else T and :math:`a_1, \dots, a_i` are the features.

    ``keep_breaking=False`` leaves out :math:`a_i`, the bar that stopped the pass: two separate clusters then give one
    feature, their one long bar, but the entropy of a single bar is 0 with no gradient. The official code keeps it.
    Fewer than four positive bars, or all equal to rounding: every positive bar is a feature. Not differentiable.

    Shapes: ``bars`` (..., m) in any order, ``mask`` (..., m) optional; returns bool (..., m), False for zero and masked
    bars. Raises :class:`~isonb.errors.InputError` for negative or non-finite lengths. Time and work O(m^2).

    Source: Atienza et al. 2019, Persistent entropy for separating topological features from noise; official code of
    Shrink-the-longest (arXiv 2501.05502).

    >>> prominent_bars(torch.tensor([1.0, 9.0, 2.0, 1.5, 4.0, 0.5])).tolist()
    [False, True, False, False, True, False]
    """
    bars = _lengths(bars, mask)
    slack = 1 - 16 * torch.finfo(bars.dtype).eps
    bars = precise(bars)
    ordered, order = bars.sort(dim=-1, descending=True, stable=True)
    count = (ordered > 0).sum(-1)
    longest, shortest = ordered[..., 0], ordered.gather(-1, (count - 1).clamp_min(0).unsqueeze(-1)).squeeze(-1)
    ruled = (count >= 4) & (shortest < slack * longest)
    if bars.shape[-1] >= 4:
        shares = ordered / torch.where(longest > 0, longest, 1.0).unsqueeze(-1)
        last = _last_stop(shares[..., 1:-1], torch.where(ruled, shortest / longest, 0.5), (count - 2).clamp_min(2))
        count = torch.where(ruled, last + int(keep_breaking), count)
    rank = order.argsort(-1)
    return rank.lt(count.unsqueeze(-1))


def _last_stop(others: Tensor, alpha: Tensor, start: Tensor) -> Tensor:
    """The index i at which the last pass stops: ``others`` (..., m) as shares of T, ``start`` (...) the first m.

    A later pass keeps r, T and a prefix of the others, so its outcome depends on the length of the prefix alone. All
    outcomes are tabled; then the chain of passes is a chain of lookups, followed by doubling.
    """
    m = others.shape[-1]
    stop = _stops(others, alpha)
    length = torch.arange(m + 1, device=others.device)
    bound = torch.ceil((length + 2) * _long_share(alpha).unsqueeze(-1))
    following = torch.where(bound < stop, stop, length)
    for _ in range(m.bit_length()):
        following = following.gather(-1, following)
    return stop.gather(-1, following.gather(-1, start.unsqueeze(-1))).squeeze(-1)


def _long_share(alpha: Tensor) -> Tensor:
    r""":math:`\alpha (\alpha - 1 - \ln\alpha) / (1 - \alpha)^2`; near 1 by its series, where that cancels."""
    gap = 1 - alpha
    series = 0.5 + gap * (1 / 3 + gap * (1 / 4 + gap * (1 / 5 + gap / 6)))
    near = gap < 1e-3
    return alpha * torch.where(near, series, -(gap + alpha.log()) / torch.where(near, 1.0, gap).square())


def _stops(others: Tensor, alpha: Tensor) -> Tensor:
    """For each prefix length 0..m the index at which its pass stops (..., m + 1)."""
    m = others.shape[-1]
    zero = others.new_zeros(*others.shape[:-1], 1)
    sums = torch.cat((zero, others.cumsum(-1)), -1)
    logs = torch.cat((zero, torch.xlogy(others, others).cumsum(-1)), -1)
    rest, rest_log = alpha.unsqueeze(-1) + 1, torch.xlogy(alpha, alpha).unsqueeze(-1)
    step = max(1, TABLE.get(others.device.type, 2**22) // max(1, others.numel()))
    ranges = ((low, min(low + step, m + 1)) for low in range(0, m + 1, step))
    return torch.cat([_first_rise(sums + rest, logs + rest_log, sums, logs, low, high) for low, high in ranges], -1)


def _first_rise(whole: Tensor, whole_log: Tensor, sums: Tensor, logs: Tensor, low: int, high: int) -> Tensor:
    """The first i < length with S_{i-1} < S_i, else length - 1, for each prefix length from ``low`` below ``high``.

    The tail after i bars has sum P and sum of l ln l equal E, so P / e^H(R) = e^(E / P).
    """
    length = torch.arange(low, high, device=sums.device)
    i = torch.arange(max(2, high), device=sums.device)[: sums.shape[-1]]
    tail = (whole[..., low:high, None] - sums[..., None, : len(i)]).clamp_min(1.0)
    tail_log = whole_log[..., low:high, None] - logs[..., None, : len(i)]
    total = tail + i * torch.exp(tail_log / tail)
    rises = (total[..., :-1] < total[..., 1:]) & (i[1:] < length.unsqueeze(-1))
    rises_at_all, first = rises.byte().max(-1)  # of bool values inductor writes code that does not compile
    return torch.where(rises_at_all > 0, first + 1, (length - 1).clamp_min(0))
