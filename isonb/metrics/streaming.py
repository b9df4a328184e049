"""What the streaming metrics share: states, merging, and the messages between processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from isonb.checks import strict, validated
from isonb.errors import ShapeError, fail, needs
from isonb.numerics.distributed import Group, all_sum
from isonb.numerics.scale import points_precise
from isonb.streaming.moments import Moments
from isonb.streaming.streams import Average, Skewness, UnitSums
from isonb.streaming.traces import LengthMoments

with needs("isonb.metrics", "metrics"):
    from torchmetrics import Metric
    from torchmetrics.utilities.distributed import gather_all_tensors

STATES: dict[type, tuple[str, ...]] = {
    Average: ("count", "total"),
    LengthMoments: ("count", "mean", "scatter", "cubes", "fourth"),
    Moments: ("count", "mean", "scatter"),
    Skewness: ("count", "mean", "second", "third"),
    UnitSums: ("count", "rows", "total", "squares"),
}
SIZED = (LengthMoments, Moments, UnitSums)  # summaries of the dimension of the points


def common_width(width: int, like: Tensor, group: Any) -> int:
    """The dimension of the points of all processes, 0 where none has any; ``width`` is that of this process, or 0."""
    total, squares, owners = all_sum(like.new_tensor([width, width**2, width > 0]), group).tolist()
    if total**2 != squares * owners:
        fail(ShapeError, "all processes must have points of one dimension", width, "Check the models.")
    return int(total / max(owners, 1))


class Base(Metric):  # type: ignore[misc]
    """The flags, states that keep their dtype, and errors that leave no trace."""

    full_state_update = False
    is_differentiable = False
    higher_is_better = None

    def __init__(self, *fed: Any, **kwargs: Any) -> None:
        """``fed``: all that the states depend on beside what is passed to update.

        In a collection torchmetrics lets metrics share their states where the names agree and, after the first batch,
        the values: an empty state carries it as its name.
        """
        super().__init__(**kwargs)
        self._fed = f"fed {fed}"
        self.add_state(self._fed, torch.zeros(()), dist_reduce_fx=None)

    def persistent(self, mode: bool = False) -> None:
        """Whether a ``state_dict`` holds the states."""
        super().persistent(mode)
        self._persistent[self._fed] = False  # it may go on with another seed, say

    def plot(self, val: Tensor | Sequence[Tensor] | None = None, ax: Any = None) -> Any:
        """A matplotlib figure and axes of the value now, of a given one, or of several as a course (torchmetrics)."""
        return self._plot(val, ax)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The value of a batch alone, which joins the others; one that has none is an error and doesn't join."""
        with self._unchanged_by_errors():
            return super().forward(*args, **kwargs)

    @contextmanager
    def sync_context(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Inside, the states are those of all processes; after it, or after an error in it, those of this one."""
        with self._unchanged_by_errors(), super().sync_context(*args, **kwargs):
            yield

    @contextmanager
    def _unchanged_by_errors(self) -> Iterator[None]:
        before = self.__dict__ | self._copy_state_dict()  # torchmetrics' flags, and states
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            raise

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Any = "") -> Any:
        """Follow a change of device, never one of dtype: a float64 state in half precision would be lost."""

        def move(x: Tensor) -> Tensor:
            device = fn(x.new_empty(0, dtype=torch.float32)).device
            return x.to(device, torch.float32) if device.type == "mps" and x.is_floating_point() else x.to(device)

        return super()._apply(move, exclude_state)


class Streaming(Base):
    """A metric whose states are the tensors of a summary that can be merged."""

    summary: Any = Moments  # the kind of summary
    least = 1  # points, or numbers, below which there is no value
    exact = False  # products in float64 whatever the points are, for values that depend on the smallest directions

    def __init__(self, kind: Any = None, *fed: Any, dims: int | None = None, **kwargs: Any) -> None:
        super().__init__(self.exact, *fed, **kwargs)
        self.kind, self.dims = kind or self.summary, dims
        for name, part in zip(STATES[self.kind], self._none(dims or 0).state_tensors(), strict=True):
            self.add_state(name, part, dist_reduce_fx=None)

    def _none(self, dims: int) -> Any:
        """The summary of no points."""
        return self.kind(dims, device=self.device) if self.kind in SIZED else self.kind(device=self.device)

    def _width(self, state: dict[str, Tensor]) -> int:
        """Dimensions of the points, 0 if none came and none were announced; 1 where they don't matter."""
        return state[STATES[self.kind][-1 if self.kind is UnitSums else 1]].shape[-1] if self.kind in SIZED else 1

    def _summary(self, state: dict[str, Tensor]) -> Any:
        return self.kind.from_state(*(state[name] for name in STATES[self.kind])) if self._width(state) else self.kind()

    def _keep(self, summary: Any) -> None:
        for name, part in zip(STATES[self.kind], summary.state_tensors(), strict=True):
            setattr(self, name, part)

    @validated
    def update(self, x: Tensor, mask: Tensor | None = None) -> None:
        """Add points (..., d), all leading axes one cloud; mask (...) marks the real ones."""
        with strict():
            self._add(points_precise(x) if self.exact else x, mask)

    def _add(self, *batch: Any) -> None:
        self._keep(self._summary(self.metric_state).update(*batch))

    def compute(self) -> Tensor:
        """The value over all points so far, of all processes."""
        if (count := int(self.count)) < self.least:
            what = f"{type(self).__name__}.compute needs at least {self.least} points"
            fail(ShapeError, what, count, "Call update with data first.")
        with strict(), torch.no_grad():
            return self._value(self._summary(self.metric_state))

    def _value(self, summary: Any) -> Tensor:
        value: Tensor = summary.value
        return value

    def _reduce_states(self, incoming_state: dict[str, Tensor]) -> None:
        if not self._width(incoming_state):
            return
        merged = self._summary(incoming_state)
        self._keep(merged.merge(self._summary(self.metric_state)) if self._width(self.metric_state) else merged)

    def _sync_dist(self, dist_sync_fn: Any = gather_all_tensors, process_group: Any = None) -> None:
        if dist_sync_fn is not gather_all_tensors:  # a gather of the caller's own
            shards = [dist_sync_fn(getattr(self, name), group=process_group) for name in STATES[self.kind]]
            self._keep(self._none(self.dims or 0))
            for shard in zip(*shards, strict=True):
                self._reduce_states(dict(zip(STATES[self.kind], shard, strict=True)))
            return
        group: Group = process_group or self.process_group or "world"
        dims = common_width(self._width(self.metric_state), self.count, group)
        if dims and not self._width(self.metric_state):
            self._keep(self._none(dims))
        if dims:
            self._keep(self._summary(self.metric_state).reduced(lambda x: all_sum(x, group)))
