r"""Running statistics beyond mean and covariance: what the streaming metrics keep between batches.

Each class has the interface of :class:`~isonb.streaming.moments.Moments`: ``update`` with points, ``merge`` with
another, ``state_tensors`` and ``from_state`` to save and send, ``reduced`` to join processes. Merging gives what one
pass over all points would give, up to float rounding. States are float64 (float32 on MPS). Not differentiable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor

from isonb.checks import check_points, validated
from isonb.errors import ShapeError, fail
from isonb.numerics.rows import count_nonzero_rows, directions
from isonb.numerics.scale import wide

Total = Callable[[Tensor], Tensor]


def flat(parts: Sequence[Tensor]) -> Tensor:
    """Tensors of any shapes in one vector."""
    return torch.cat([part.reshape(-1) for part in parts])


class _Sums:
    """A statistic whose parts add up: merging and reducing are sums."""

    def __init__(self, *shapes: tuple[int, ...], device: torch.device | str | None = None) -> None:
        place = torch.device(device or "cpu")
        self._parts = tuple(torch.zeros(shape, dtype=wide(place), device=place) for shape in shapes)

    def state_tensors(self) -> tuple[Tensor, ...]:
        """All there is, to save or to send. Inverse of :meth:`from_state`."""
        return self._parts

    @classmethod
    def from_state(cls, *parts: Tensor) -> Self:
        instance = cls.__new__(cls)
        instance._parts = parts
        return instance

    def merge(self, other: Self) -> Self:
        """Add what another has seen. Returns self."""
        self._parts = tuple(mine + theirs.to(mine) for mine, theirs in zip(self._parts, other._parts, strict=True))
        return self

    def reduced(self, total: Total) -> Self:
        """The statistic of all processes, given ``total``, which sums a tensor over them: one call."""
        sums = torch.split(total(flat(self._parts)), [part.numel() for part in self._parts])
        return self.from_state(*(s.view_as(p) for s, p in zip(sums, self._parts, strict=True)))


class Average(_Sums):
    """The mean of numbers that come in any shape: count and sum.

    >>> average = Average().update(torch.tensor([1.0, 2.0])).update(torch.tensor(6.0))
    >>> average.value.item()
    3.0
    """

    def __init__(self, *, device: torch.device | str | None = None) -> None:
        super().__init__((), (), device=device)

    @torch.no_grad()
    def update(self, values: Tensor) -> Self:
        """Count every number of ``values``. Returns self."""
        total = values.sum(dtype=wide(values.device))
        return self.merge(self.from_state(torch.full_like(total, values.numel()), total))

    @property
    def value(self) -> Tensor:
        """Sum over count; 0 of nothing."""
        count, total = self._parts
        return total / count.clamp_min(1)


class UnitSums(_Sums):
    r"""What mean cosines need: rows with a direction, all rows, sum and sum of squares of the unit rows.

    >>> sums = UnitSums().update(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    >>> round(sums.mean_cosine.item(), 6), round(sums.penalty.item(), 6)
    (0.471405, 0.31427)
    """

    def __init__(self, dims: int | None = None, *, device: torch.device | str | None = None) -> None:
        super().__init__(*(() if dims is None else ((), (), (dims,), (dims,))), device=device)

    @validated
    @torch.no_grad()
    def update(self, x: Tensor, mask: Tensor | None = None) -> Self:
        """Add points (..., d), all leading axes one cloud; mask (...) marks the real ones. Returns self."""
        x, mask = check_points(x, mask, points=0, look=False)
        dtype = wide(x.device)
        along = directions(x.reshape(-1, x.shape[-1]))
        unit = (along.rows * along.inverse.unsqueeze(-1)).to(dtype)
        rows = torch.full((), along.inverse.numel(), device=x.device) if mask is None else mask.sum()
        part = self.from_state(
            count_nonzero_rows(along, 0).to(dtype), rows.to(dtype), unit.sum(0), unit.square().sum(0)
        )
        if not self._parts:  # the first points give the dimension
            self._parts = part._parts
            return self
        if self._parts[2].shape != part._parts[2].shape:
            fix = "Keep one metric for each kind of vector."
            fail(ShapeError, f"points must have {self._parts[2].shape[0]} dimensions as before", x.shape[-1], fix)
        return self.merge(part)

    @property
    def mean_cosine(self) -> Tensor:
        """:func:`~isonb.measures.cosine.mean_cosine` of all points so far."""
        return self.contributions.sum()

    @property
    def penalty(self) -> Tensor:
        """:func:`~isonb.measures.cosine.cosine_penalty` of all points so far."""
        directions, rows, total, _ = self._parts
        return (total.square().sum() - directions) / rows.square().clamp_min(1)

    @property
    def contributions(self) -> Tensor:
        """:func:`~isonb.measures.cosine.cosine_contributions` (d) of all points so far."""
        count, _, total, squares = self._parts
        return (total.square() - squares) / (count * (count - 1)).clamp_min(1)


class Skewness(_Sums):
    r"""Biased skewness :math:`m_3/m_2^{3/2}` of numbers, merged by central moments (Pebay 2008).

    Its state: count, mean and the sums of squared and cubed deviations.

    >>> skewness = Skewness().update(torch.tensor([0.0, 0.0])).update(torch.tensor([0.0, 4.0]))
    >>> round(skewness.value.item(), 6)
    1.154701
    """

    def __init__(self, *, device: torch.device | str | None = None) -> None:
        super().__init__((), (), (), (), device=device)

    @torch.no_grad()
    def update(self, values: Tensor) -> Self:
        """Count every number of ``values``. Returns self."""
        values = values.reshape(-1).to(wide(values.device))
        count = torch.full((), values.numel(), dtype=values.dtype, device=values.device)
        mean = values.sum() / count.clamp_min(1)
        gap = values - mean
        return self.merge(self.from_state(count, mean, gap.square().sum(), gap.pow(3).sum()))

    def _about(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """Sums of squares and cubes of the deviations from another mean."""
        count, local_mean, second, third = self._parts
        gap = local_mean - mean
        return second + count * gap**2, third + 3 * gap * second + count * gap**3

    def merge(self, other: Self) -> Self:
        """Add the numbers another has seen. Returns self."""
        (n, a), (m, b) = self._parts[:2], (part.to(self._parts[0]) for part in other._parts[:2])
        mean = a + (b - a) * m / (n + m).clamp_min(1)
        sums = (first + two.to(first) for first, two in zip(self._about(mean), other._about(mean.to(b)), strict=True))
        self._parts = (n + m, mean, *sums)
        return self

    def reduced(self, total: Total) -> Self:
        """The statistic of all processes, given ``total``, which sums a tensor over them: two calls."""
        count, mean, *_ = self._parts
        n, weighted = total(torch.stack([count, count * mean]))
        common = weighted / n.clamp_min(1)
        second, third = total(torch.stack(self._about(common)))
        return self.from_state(n, common, second, third)

    @property
    def value(self) -> Tensor:
        """The skewness; 0 where the numbers don't vary."""
        count, mean, second, third = self._parts
        n = count.clamp_min(1)
        varies = second / n > (torch.finfo(second.dtype).eps * mean) ** 2
        return torch.where(varies, third / n / torch.where(varies, second / n, 1.0) ** 1.5, 0.0)
