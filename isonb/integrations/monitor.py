"""Isotropy while a model trains: measures of training batches every so many steps, gates that warn or stop.

::

    monitor = IsotropyMonitor(every=50, stop=COLLAPSE, path="isotropy.jsonl")
    monitor.attach(trainer)  # a Trainer of transformers or sentence-transformers
    trainer.train()

In a loop of your own call :meth:`IsotropyMonitor.observe`; for Lightning pass :meth:`IsotropyMonitor.lightning`.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isonb.checks import cloud, strict
from isonb.cosine import mean_cosine
from isonb.errors import InputError, IsotropyWarning, fail
from isonb.integrations.points import PointRule
from isonb.integrations.watch import TrainingPoints
from isonb.isotropy import isoscore, participation_ratio

if TYPE_CHECKING:
    from transformers import TrainerCallback as _Base
else:
    try:
        from transformers import TrainerCallback as _Base
    except ImportError:  # a loop of one's own needs no transformers
        _Base = object

__all__ = ["COLLAPSE", "MEASURES", "Event", "Gate", "IsotropyMonitor", "largest_share", "relative_spread"]


def relative_spread(x: Tensor) -> Tensor:
    """Root mean square distance from the mean over that from the origin, in [0, 1]: 0 for equal vectors.

    >>> relative_spread(torch.tensor([[3.0, 4.0], [3.0, 4.0]])).item()
    0.0
    """
    centred = x - x.mean(-2, keepdim=True)
    found: Tensor = (
        centred.square().sum((-2, -1)) / x.square().sum((-2, -1)).clamp_min(torch.finfo(x.dtype).tiny)
    ).sqrt()
    return found


def largest_share(x: Tensor) -> Tensor:
    """The share of the single widest coordinate in the total variance, in [1/d, 1]: near 1 for a rogue dimension.

    0 for equal vectors, which have no variance.

    >>> largest_share(torch.tensor([[3.0, 0.0], [-3.0, 0.0]])).item()
    1.0
    """
    variance = x.var(-2, correction=0)
    found: Tensor = variance.max(-1).values / variance.sum(-1).clamp_min(torch.finfo(x.dtype).tiny)
    return found


#: The measures by name, functions of points (n, d). ``"isoscore"``: :func:`isonb.isoscore` with ``unbiased=True``, free
#: of the limit that the batch sets. ``"effective_dimensions"``: :func:`isonb.participation_ratio`. ``"mean_cosine"``:
#: :func:`isonb.mean_cosine`. ``"relative_spread"``: :func:`~isonb.integrations.monitor.relative_spread`, the size of
#: the cloud over its distance from the origin. ``"largest_share"``: :func:`~isonb.integrations.monitor.largest_share`,
#: what the widest coordinate has of the variance.
MEASURES: dict[str, Callable[[Tensor], Tensor]] = {
    "isoscore": functools.partial(isoscore, unbiased=True),  # free of the limit that the batch sets
    "effective_dimensions": participation_ratio,
    "mean_cosine": mean_cosine,
    "relative_spread": relative_spread,
    "largest_share": largest_share,
}


@dataclass(frozen=True)
class Gate:
    """Closed where ``measure`` is below ``low``, above ``high`` or isn't a number, ``patience`` times in a row."""

    measure: str
    low: float = -math.inf
    high: float = math.inf
    patience: int = 2

    def broken(self, value: float) -> bool:
        """Whether one value lies outside."""
        return not self.low <= value <= self.high

    def __str__(self) -> str:
        sides = [f"below {self.low:g}"] * math.isfinite(self.low) + [f"above {self.high:g}"] * math.isfinite(self.high)
        return f"{self.measure} {' or '.join(sides) or 'not a number'}, {self.patience} times in a row"


#: Gates that end a training whose vectors are all equal, or nearly. A trained classifier may well use one or two
#: directions only, so few dimensions are no reason to stop by themselves.
COLLAPSE = (Gate("relative_spread", low=1e-3),)


@dataclass(frozen=True)
class Event:
    """What one measurement said: ``kind`` is "measured", "warned" or "stopped"; ``reason`` names the closed gate."""

    step: int
    kind: str
    values: dict[str, float]
    reason: str = ""


class IsotropyMonitor(_Base):  # type: ignore[misc]
    """Measures the vectors of training batches every ``every`` steps, and warns or stops where a gate closes.

    ``measures`` are names of :data:`MEASURES`, or a mapping from names to functions of points (n, d). ``warn`` and
    ``stop`` are :class:`Gate` objects. At most ``limit`` points are measured, the first ones. ``path``: a file that
    gets one line of JSON an event. The points are those of ``rule`` (the last layer's [CLS] by default), or the
    sentence embeddings of sentence-transformers; they come from hooks on the passes that training makes anyway, without
    gradients and without a random draw, so training is not changed.

    ``events`` holds what was seen. Values go into the Trainer's own log as ``isonb/<measure>`` once it is attached, so
    TensorBoard, W&B and MLflow show them. Raises :class:`~isonb.errors.InputError` for an unknown measure.

    >>> monitor = IsotropyMonitor(["relative_spread"], stop=COLLAPSE)
    >>> monitor.observe(torch.ones(8, 4), step=1).kind, monitor.observe(torch.ones(8, 4), step=2).kind
    ('measured', 'stopped')
    """

    def __init__(
        self,
        measures: Sequence[str] | Mapping[str, Callable[[Tensor], Tensor]] = tuple(MEASURES),
        *,
        every: int = 50,
        warn: Sequence[Gate] = (),
        stop: Sequence[Gate] = (),
        rule: PointRule | None = None,
        limit: int = 512,
        path: str | Path | None = None,
    ) -> None:
        if every < 1:
            fail(InputError, "every must be 1 or more steps", every, "The default is 50.")
        self.measures = dict(measures) if isinstance(measures, Mapping) else _named(measures)
        for gate in (*warn, *stop):
            if gate.measure not in self.measures:
                fix = f"Taken are {', '.join(self.measures)}."
                fail(InputError, "a gate must name a measure that is taken", gate.measure, fix)
        self.every, self.warn, self.stop, self.limit = every, tuple(warn), tuple(stop), limit
        self.path = None if path is None else Path(path)
        self.events: list[Event] = []
        self._points = TrainingPoints(rule or PointRule())
        self._closed: dict[Gate, int] = {}

    @torch.no_grad()
    def observe(self, points: Tensor, step: int) -> Event:
        """Measure points (n, d) at a step; the event has the values and what follows from them."""
        values = {name: _value(measure, points[: self.limit]) for name, measure in self.measures.items()}
        stopped, warned = ([gate for gate in gates if self._count(gate, values)] for gates in (self.stop, self.warn))
        kind = "stopped" if stopped else "warned" if warned else "measured"
        event = Event(step, kind, values, "; ".join(map(str, stopped or warned)))
        self.events.append(event)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                told = {name: value if math.isfinite(value) else None for name, value in values.items()}
                file.write(json.dumps(asdict(event) | {"values": told}) + "\n")
        if kind == "warned":
            warnings.warn(f"step {step}: {event.reason}", IsotropyWarning, stacklevel=2)
        return event

    def attach(self, trainer: Any) -> IsotropyMonitor:
        """Take part in a Trainer's training and log; returns itself."""
        logged = trainer.log

        def log(logs: dict[str, float], *args: Any, **kwargs: Any) -> Any:
            if self.events and "loss" in logs:
                values = self.events[-1].values.items()
                logs.update({f"isonb/{name}": value for name, value in values if math.isfinite(value)})
            return logged(logs, *args, **kwargs)

        trainer.log = log
        trainer.add_callback(self)
        return self

    def on_step_begin(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Watch the update that begins if it is one of those to measure."""
        self._points.stop()
        if model is not None and (state.global_step + 1) % self.every == 0:
            self._points.start(model)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure the update; a closed gate ends the training, and its checkpoint is written first."""
        points = self._points.take()
        if points is not None and self.observe(points, state.global_step).kind == "stopped":
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take away hooks that an interrupted update left."""
        self._points.stop()

    def lightning(self) -> Any:
        """A callback for Lightning's Trainer: ``Trainer(callbacks=[monitor.lightning()])``."""
        base = importlib.import_module("lightning.pytorch.callbacks").Callback
        monitor = self

        class Callback(base):  # type: ignore[misc,valid-type]
            def on_train_batch_start(self, trainer: Any, module: Any, *args: Any) -> None:
                if (trainer.global_step + 1) % monitor.every == 0:
                    monitor._points.start(module)

            def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
                points = monitor._points.take()
                if points is not None:
                    event = monitor.observe(points, trainer.global_step)
                    module.log_dict({f"isonb/{name}": value for name, value in event.values.items()})
                    trainer.should_stop = trainer.should_stop or event.kind == "stopped"

        return Callback()

    def _count(self, gate: Gate, values: Mapping[str, float]) -> bool:
        """Whether the gate is closed now."""
        self._closed[gate] = self._closed.get(gate, 0) + 1 if gate.broken(values[gate.measure]) else 0
        return self._closed[gate] >= gate.patience


def _named(names: Sequence[str]) -> dict[str, Callable[[Tensor], Tensor]]:
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        fail(InputError, f"measures must be some of {', '.join(MEASURES)}", unknown[0], "Or pass a mapping.")
    return {name: MEASURES[name] for name in names}


def _value(measure: Callable[[Tensor], Tensor], points: Tensor) -> float:
    """The measure in float64; NaN where it isn't defined for these points."""
    try:
        with strict():
            return float(measure(cloud(points.double())[0]))
    except InputError:
        return math.nan
