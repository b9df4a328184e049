"""What the unbiased participation ratio needs of a cloud that arrives in pieces, and of many small clouds that pool."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, lasting_tensors, validated
from isonb.measures.isoscore import unbiased_parts, unbiased_ratio
from isonb.measures.purity import length_kurtosis, purity
from isonb.numerics.rows import center_rows, row_count
from isonb.streaming.moments import Moments
from isonb.streaming.streams import flat

_GRADIENT = 64.0  # a step on the way to the gradient is at most so many times larger than the value


class LengthMoments:
    r"""Mean, scatter, and the third and fourth moments of the distances to the mean that PR-U needs.

    With y = x - mean and r = \|y\|^2 it keeps :math:`v = \sum r y` and :math:`Q = \sum r^2` beside :class:`Moments`.
    About the mean less s they are :math:`v + T s + 2 M s + n |s|^2 s` and
    :math:`Q + 4 s^T M s + n |s|^4 + 4 v^T s + 2 T |s|^2`, with M the scatter and T its trace.

    >>> moments = LengthMoments().update(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> moments.update(torch.tensor([[1.0, 3.0], [4.0, 4.0]])).participation_ratio.item()
    2.666667
    """

    def __init__(self, dims: int | None = None, *, device: torch.device | str | None = None) -> None:
        self.moments = Moments(dims, device=device)
        self._sums: tuple[Tensor, Tensor] | None = None  # v and Q about the mean, None before the first points
        if dims is not None:
            count, mean, _ = self.moments.state_tensors()
            self._sums = torch.zeros_like(mean), torch.zeros_like(count)

    def state_tensors(self) -> tuple[Tensor, ...]:
        """Count, mean, scatter, v (d) and Q. Inverse of :meth:`from_state`."""
        return *self.moments.state_tensors(), *(self._sums or ())

    @classmethod
    def from_state(cls, count: Tensor, mean: Tensor, scatter: Tensor, cubes: Tensor, fourth: Tensor) -> LengthMoments:
        """The statistic with the given :meth:`state_tensors`."""
        instance = cls()
        instance.moments, instance._sums = Moments.from_state(count, mean, scatter), (cubes, fourth)
        return instance

    @validated
    @lasting_tensors()
    def update(self, x: Tensor, mask: Tensor | None = None) -> LengthMoments:
        """Add points as :meth:`Moments.update` does. Returns self."""
        before = None if self._sums is None else self.state_tensors()
        _, mean, _ = self.moments.update(x, mask).state_tensors()
        x, mask = check_points(x, mask, points=0)
        y = x.to(mean) - mean
        if mask is not None:
            y = torch.where(mask.to(mean.device).unsqueeze(-1), y, 0.0)
        y = y.reshape(-1, x.shape[-1])
        r = y.square().sum(-1)
        cubes, fourth = (0.0, 0.0) if before is None else _moved(before, mean)
        self._sums = cubes + r @ y, fourth + r.square().sum()
        return self

    @lasting_tensors()
    def merge(self, other: LengthMoments) -> LengthMoments:
        """Add the points of another, which stays as it is. Returns self."""
        if other._sums is None:
            return self
        before = None if self._sums is None else self.state_tensors()
        _, mean, _ = self.moments.merge(other.moments).state_tensors()
        cubes, fourth = _moved(other.state_tensors(), mean)
        if before is not None:
            own = _moved(before, mean)
            cubes, fourth = own[0] + cubes, own[1] + fourth
        self._sums = cubes, fourth
        return self

    def reduced(self, total: Callable[[Tensor], Tensor]) -> LengthMoments:
        """The statistic of all processes, given ``total``, which sums a tensor over them: two calls, as Moments."""
        state = self.state_tensors()
        count, mean, scatter = state[:3]
        sums = total(torch.cat([count.unsqueeze(0), count * mean]))
        common = sums[1:] / sums[0].clamp_min(1)
        offset = mean - common
        parts = [scatter.addr(offset, offset * count), *_moved(state, common)]
        joined = torch.split(total(flat(parts)), [part.numel() for part in parts])
        return self.from_state(sums[0], common, *(a.view_as(b) for a, b in zip(joined, parts, strict=True)))

    @property
    def participation_ratio(self) -> Tensor:
        """:func:`~isonb.measures.isoscore.participation_ratio` of all points so far with ``unbiased=True``."""
        n, _, scatter, _, fourth = self.state_tensors()
        trace = scatter.trace()
        return unbiased_ratio(scatter.square().sum() / trace**2, n * fourth / trace**2, n)


def _moved(state: tuple[Tensor, ...], mean: Tensor) -> tuple[Tensor, Tensor]:
    """The sums v and Q of a state about another mean."""
    n, own, scatter, cubes, fourth = (part.to(mean) for part in state)
    s, trace = own - mean, scatter.trace()
    turned, size = scatter @ s, s.square().sum()
    moved = cubes + trace * s + 2 * turned + n * size * s
    return moved, fourth + 4 * s @ turned + n * size**2 + 4 * cubes @ s + 2 * trace * size


@validated
def squared_traces(x: Tensor, *, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Unbiased estimates of :math:`(\operatorname{tr}\Sigma)^2` and :math:`\operatorname{tr}\Sigma^2`.

    They are numerator and denominator of PR-U (Chun, Canatar, Chung, Lee, ICLR 2026; see
    :func:`~isonb.measures.isoscore.participation_ratio`), divided by n (n - 3): averages over distinct rows, so their
    expectation is right for any distribution of independent rows. The quotient of one small cloud is noisy and a little
    biased; for many clouds of one population average both first, and divide then.

    Shapes: x (..., n, d), mask (..., n) optional; returns (...) and (...), both at least 0.
    Differentiable. Fewer than 4 points: :class:`~isonb.errors.ShapeError`. All points equal:
    :class:`~isonb.errors.DegenerateError`; on an accelerator both are 0. They are fourth powers of the scale: where
    those, or their gradients, don't fit the dtype (about 1e9 in float32), :class:`~isonb.errors.DegenerateError`.

    >>> x = torch.tensor([[0.0, 1], [1, 3], [2, 0], [4, 1], [6, 4], [7, 3], [8, 5], [9, 4]])
    >>> total, square = squared_traces(x)
    >>> round((total / square).item(), 4)  # PR-U
    1.2257
    """
    x, mask = check_points(x, mask, points=4)
    n = row_count(x, mask)
    y = center_rows(x, mask)[0]  # so that an offset, however large, costs no digits and no range
    a, b = unbiased_parts(purity(y, mask), *length_kurtosis(y, mask))
    squared = y.square().sum((-2, -1)).square()
    check_overflow(_GRADIENT * squared, "fourth power of the scale")
    unit = squared / (n * (n - 3)).clamp_min(1)
    return a * unit, b * unit
