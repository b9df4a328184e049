"""Mean and covariance of a cloud that arrives in pieces: batches, shards, ranks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from isonb.checks import check_overflow, check_points, check_values, finite, lasting_tensors, validated
from isonb.errors import ShapeError, fail
from isonb.numerics.products import add_upper_gram
from isonb.numerics.scale import largest, precise, wide

_CHUNK = 4096  # rows whose products are summed in the dtype of the points before they go to float64
_LONG = 16  # rows a dimension from which joining two summaries costs less than a look at every value


def _squarable(x: Tensor) -> Tensor:
    """The points in a dtype in which a sum of their squares neither overflows nor vanishes; an error if theirs can't.

    Not looked at where that would make the device wait.
    """
    if not x.numel() or not check_values(x):
        return x
    few = torch.finfo(x.dtype).tiny ** 0.25
    # between these bounds some entry is larger than few, and none reaches 1 / few
    if few * x.numel() ** 0.5 < float(torch.linalg.vector_norm(x)) < 1 / few:
        return x
    size = float(largest(x.flatten(0, -2), (-2, -1)))
    if size == 0 or few < size < 1 / few:
        return x
    check_overflow(torch.linalg.vector_norm(x))
    return precise(x)


def summarised(n: int, dims: int) -> bool:
    """Whether so many points are summarised apart: bad values then show in the sums and need no look of their own."""
    return n > max(_CHUNK, _LONG * dims)


class Moments:
    r"""Streaming mean and covariance (Chan, Golub and LeVeque 1983), stable far from the origin, mergeable.

    Each piece is centred on its own mean; pieces are joined by
    :math:`M = M_a + M_b + \frac{n_a n_b}{n_a + n_b}\,\delta\delta^T`, with M the scatter and :math:`\delta` the
    difference of the means. A batch costs one product, in the dtype of its points. The state is float64 (float32 on
    MPS) and lives where the first points were. Not differentiable: points are detached.

    ``dims`` fixes the dimension before any points come, so that an empty shard can be merged and reduced.

    >>> moments = Moments().update(torch.tensor([[0.0, 0.0], [2.0, 4.0]]))
    >>> moments.merge(Moments().update(torch.tensor([[4.0, 2.0]]))).mean.tolist()
    [2.0, 2.0]
    >>> moments.cov.tolist()
    [[4.0, 2.0], [2.0, 4.0]]
    """

    def __init__(self, dims: int | None = None, *, device: torch.device | str | None = None) -> None:
        self._dims: int | None = None  # None until the first points
        if dims is not None:
            self._start(dims, torch.device(device or "cpu"))

    def _start(self, dims: int, device: torch.device) -> None:
        dtype = wide(device)
        self._dims = dims
        self._count = torch.zeros((), dtype=dtype, device=device)
        self._mean = torch.zeros(dims, dtype=dtype, device=device)
        self._scatter = torch.zeros(dims, dims, dtype=dtype, device=device)  # on and above the diagonal
        self._pending: Tensor | None = None  # products not yet in _scatter, in the dtype of the points
        self._held = 0  # rows in _pending

    @validated
    @lasting_tensors()
    def update(self, x: Tensor, mask: Tensor | None = None) -> Moments:
        """Add points (..., d), all leading axes one cloud; mask (...) marks the real ones. No real row: no change.

        Returns self. Raises :class:`~isonb.errors.ShapeError` for another dimension than before, and as every measure
        for a wrong dtype, rank, mask or (on the CPU) non-finite values and points whose squares don't fit their dtype
        (from about 1e19 on in float32).
        """
        x, mask = check_points(x, mask, points=0, look=False)
        dims = x.shape[-1]
        if self._dims is not None and dims != self._dims:
            fix = "Keep one Moments for each kind of vector."
            fail(ShapeError, f"points must have {self._dims} dimensions as before", dims, fix)
        rows, real = x.reshape(-1, dims), None if mask is None else mask.reshape(-1)
        if summarised(len(rows), dims) and check_values(rows):
            batch = Moments(dims, device=rows.device)._take(rows, real)
            if batch._plain():
                return self.merge(batch)
        return self._take(_squarable(finite(x)).reshape(-1, dims), real)

    def _take(self, rows: Tensor, real: Tensor | None) -> Moments:
        """Add rows (n, d), a piece at a time."""
        if self._dims is None:
            self._start(rows.shape[1], rows.device)
        rows, real = rows.to(self._mean.device), None if real is None else real.to(self._mean.device)
        room = torch.empty_like(rows[:_CHUNK])  # for the centred rows: new memory costs more than the sums
        for start in range(0, rows.shape[0], _CHUNK):
            piece = slice(start, start + _CHUNK)
            self._add(rows[piece], None if real is None else real[piece], room[: len(rows[piece])])
        return self

    def _plain(self) -> bool:
        """Whether the variance shows that all points were finite, their squares neither too large nor too small."""
        self._settle()
        few: float = torch.finfo(torch.float32).tiny ** 0.5
        variance = float(self._scatter.trace() / self._count.clamp_min(1))
        return few < variance < 1 / few

    def _add(self, x: Tensor, mask: Tensor | None, y: Tensor) -> None:
        index = None if mask is None else mask.int().argmax().view(1)
        first = x[0] if index is None else x.index_select(0, index).squeeze(0)  # keeps the offset out of the sums
        count = self._count.new_full((), x.shape[0]) if mask is None else mask.sum().to(self._count)
        torch.sub(x, first, out=y)
        if mask is not None:
            y.mul_(mask.unsqueeze(-1))
        shift = y.sum(0) / count.clamp_min(1).to(x)
        y.sub_(shift)
        if mask is not None:
            y.mul_(mask.unsqueeze(-1))
        self._add_product(y)
        self._join(count, first.to(self._mean) + shift)

    def _join(self, count: Tensor, mean: Tensor) -> None:
        """Account for points whose scatter about their own mean is in already."""
        delta = mean - self._mean
        part = count / (self._count + count).clamp_min(1)
        self._scatter.addr_(delta, delta * (self._count * part))
        self._mean = self._mean + delta * part
        self._count = self._count + count

    def _add_product(self, y: Tensor) -> None:
        if y.dtype == self._scatter.dtype:
            add_upper_gram(self._scatter, y.mT)
            return
        if self._pending is None:
            self._pending = torch.zeros_like(self._scatter, dtype=y.dtype)
        add_upper_gram(self._pending, y.mT)
        self._held += y.shape[0]
        if self._held >= _CHUNK:
            self._settle()

    def _settle(self) -> None:
        """Move what waits in the dtype of the points to the float64 scatter."""
        if self._pending is not None and self._held:
            self._scatter.add_(self._pending)
            self._pending.zero_()
        self._held = 0

    @validated
    @lasting_tensors()
    def merge(self, other: Moments) -> Moments:
        """Add the points of another Moments, which stays as it is. Returns self."""
        if other._dims is None:
            return self
        if self._dims is None:
            self._start(other._dims, other._mean.device)
        if other._dims != self._dims:
            fix = "Merge statistics of the same kind of vector."
            fail(ShapeError, f"both must have {self._dims} dimensions", other._dims, fix)
        count, mean, scatter = (part.to(self._mean) for part in other.state_tensors())
        self._scatter.add_(scatter)
        self._join(count, mean)
        return self

    @property
    def n(self) -> Tensor:
        """Number of points so far, an int64 scalar on the device of the state."""
        return torch.zeros((), dtype=torch.int64) if self._dims is None else self._count.round().long()

    @property
    def mean(self) -> Tensor:
        """Mean (d), in the dtype of the state. Raises :class:`~isonb.errors.ShapeError` without points."""
        self._require(1, "mean")
        return self._mean

    @property
    def cov(self) -> Tensor:
        """Covariance (d, d) with n - 1. Raises :class:`~isonb.errors.ShapeError` below 2 points (on an accelerator
        only inside :func:`isonb.checks.strict`, else zeros).
        """
        self._require(2, "cov")
        _, _, scatter = self.state_tensors()
        return scatter / (self._count - 1).clamp_min(1)

    def _require(self, points: int, name: str) -> None:
        enough = self._dims is not None and (not check_values(self._count) or int(self._count) >= points)
        if not enough:
            fail(ShapeError, f"Moments.{name} needs at least {points} points", int(self.n), "Call update first.")

    def state_tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Count (), mean (d) and scatter (d, d): all there is, to save or to send. Inverse of :meth:`from_state`."""
        if self._dims is None:
            fail(ShapeError, "Moments must know its dimension", "no points yet", "Call update, or give dims.")
        self._settle()
        return self._count, self._mean, self._scatter.triu() + self._scatter.triu(1).mT

    @classmethod
    def from_state(cls, count: Tensor, mean: Tensor, scatter: Tensor) -> Moments:
        """Moments with the given :meth:`state_tensors`."""
        moments = cls(mean.shape[0], device=mean.device)
        moments._count, moments._mean = count.to(moments._mean), mean.to(moments._mean, copy=True)
        moments._scatter = scatter.to(moments._mean, copy=True)
        return moments

    def reduced(self, total: Callable[[Tensor], Tensor]) -> Moments:
        """The Moments of all ranks, given ``total``, which sums a tensor over them: two calls, d + 1 and d * d numbers.

        Every rank must call it; one without points needs ``dims`` and ``device``. The second call sends scatters
        already moved to the common mean, so that the sum over ranks is the scatter of the union.
        """
        count, mean, scatter = self.state_tensors()
        sums = total(torch.cat([count.unsqueeze(0), count * mean]))
        common = sums[1:] / sums[0].clamp_min(1)
        offset = mean - common
        return self.from_state(sums[0], common, total(scatter.addr(offset, offset * count)))

    def to(self, device: torch.device | str) -> Moments:
        """Move the state to a device. Returns self."""
        if self._dims is not None and self._mean.device != torch.device(device):
            moved = [part.to(device) for part in self.state_tensors()]
            self.__dict__.update(Moments.from_state(*moved).__dict__)
        return self
