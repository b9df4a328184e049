"""A metric for measures that need all points at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from isonb.checks import check_points, strict, validated
from isonb.errors import InputError, ShapeError, fail
from isonb.metrics.streaming import Base, common_width
from isonb.numerics.distributed import Group, all_rows, all_sum


class Sampled(Base):
    """Any function of a cloud, on all points while they are at most ``capacity``, on a uniform sample of them after.

    Each point gets a random key; the points with the ``capacity`` smallest keys are kept. That makes a sample without
    replacement of everything seen, whatever the batches, and the samples of the processes of a run merge into one of
    their union. :attr:`exact` tells which of the two it is. ``seed`` fixes the draw: give metrics of separate runs, and
    one that goes on from a checkpoint, seeds of their own, or their draws are alike. Give keywords of the function with
    functools.partial. Each process sends at most ``capacity`` points.

    >>> from isonb import mean_cosine
    >>> from isonb.metrics import Sampled
    >>> metric = Sampled(mean_cosine, capacity=100)
    >>> metric.update(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    >>> metric.update(torch.tensor([[1.0, 1.0]]))
    >>> round(metric.compute().item(), 6), metric.exact
    (0.471405, True)
    """

    rows: Tensor
    keys: Tensor
    seen: Tensor

    def __init__(
        self, function: Callable[[Tensor], Tensor], *, capacity: int = 4096, seed: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(capacity, seed, **kwargs)
        if capacity < 2:
            fail(InputError, "capacity must be at least 2", capacity, "4096 points are 6 MB in 384 dimensions.")
        self.function, self.capacity, self.seed = function, capacity, seed
        self._draws = 0
        self.add_state("rows", torch.zeros(0, 0, dtype=torch.float64), dist_reduce_fx=None)
        self.add_state("keys", torch.zeros(0, dtype=torch.float64), dist_reduce_fx=None)
        self.add_state("seen", torch.zeros((), dtype=torch.int64), dist_reduce_fx=None)

    @property
    def exact(self) -> bool:
        """Whether every point so far is kept (of this process, or inside a sync of all)."""
        return int(self.seen) == len(self.rows)

    @validated
    def update(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Add points (..., d), all leading axes one cloud; mask (...) marks the real ones."""
        with strict(), torch.no_grad():
            x, mask = check_points(x, mask, points=0)
            rows = (x.reshape(-1, x.shape[-1]) if mask is None else x[mask]).detach().to(self.rows.device)
            self._add(rows, self._keys(len(rows)), torch.tensor(len(rows)))

    def _keys(self, count: int) -> Tensor:
        rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
        self._draws += 1
        # the generator takes 32 bits of a seed; a hash of integers is the same in every run
        generator = torch.Generator().manual_seed(hash((self.seed, self._draws, rank)) % 2**32)
        return torch.rand(count, generator=generator, dtype=torch.float64)

    def _add(self, rows: Tensor, keys: Tensor, tensor: Tensor) -> None:
        mine = self.rows if self.rows.shape[-1] else rows[:0]  # the first points give width and dtype
        if rows.numel() and rows.shape[-1] != mine.shape[-1]:
            fix = "Keep one metric for each kind of vector."
            fail(ShapeError, f"points must have {mine.shape[-1]} dimensions as before", rows.shape[-1], fix)
        if rows.numel():
            self.rows = torch.cat([mine, rows.to(mine)])
            self.keys = torch.cat([self.keys, keys.to(self.keys)])
        self.seen = self.seen + tensor.to(self.seen)
        if len(self.rows) > self.capacity:
            smallest = self.keys.topk(self.capacity, largest=False).indices.sort().values
            self.rows, self.keys = self.rows[smallest], self.keys[smallest]

    def compute(self) -> Tensor:
        """The function of the points kept, of all processes."""
        if not len(self.rows):
            fail(ShapeError, "Sampled.compute needs points", 0, "Call update with data first.")
        with strict(), torch.no_grad():
            return self.function(self.rows)

    def _reduce_states(self, incoming_state: dict[str, Tensor]) -> None:
        rows, keys, seen = self.rows, self.keys, self.seen
        self.rows, self.keys, self.seen = (incoming_state[name] for name in ("rows", "keys", "seen"))
        self._add(rows, keys, seen)

    def _sync_dist(self, dist_sync_fn: Any = None, process_group: Any = None) -> None:
        group: Group = process_group or self.process_group or "world"
        width = common_width(self.rows.shape[-1], self.keys, group)
        if not width:
            return
        rows = self.rows if len(self.rows) else self.rows.new_zeros(0, width)
        packed = all_rows(torch.cat([self.keys.unsqueeze(-1), rows.to(self.keys)], -1), group)
        seen = all_sum(self.seen, group)
        self.rows, self.keys, self.seen = self.rows[:0], self.keys[:0], torch.zeros_like(self.seen)
        self._add(packed[:, 1:], packed[:, 0], seen)
