"""Isotropy while a model trains: measures of training batches every so many steps, gates that warn or stop.

::

    monitor = IsotropyMonitor(every=50, stop=COLLAPSE, path="isotropy.jsonl")
    monitor.attach(trainer)  # a Trainer of transformers or sentence-transformers
    trainer.train()

Lightning's Trainer has it among its callbacks: ``Trainer(callbacks=[monitor.lightning()])``. In a loop of your own call
:meth:`IsotropyMonitor.observe`.

The model is looked at when the monitor is attached, and refused there if it can't be read. From then on nothing raises:
what can't be measured is *undefined*, with a reason, and triggers no gate.
"""

from __future__ import annotations

import functools
import json
import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isonb.checks import check_points, strict
from isonb.errors import InputError, IsotropyWarning, fail
from isonb.integrations.gates import COLLAPSE, Gate, GateCounts, reason
from isonb.integrations.hidden_states import Pooling
from isonb.integrations.lightning import callback_of
from isonb.integrations.watch import TrainingPoints
from isonb.measures.registry import MEASURES
from isonb.numerics.distributed import process_group

if TYPE_CHECKING:
    from transformers import TrainerCallback as _Base
else:
    try:
        from transformers import TrainerCallback as _Base
    except ImportError:  # a loop of one's own needs no transformers
        _Base = object

logger = logging.getLogger(__name__)

LARGEST = 10.0  # an unbiased score above it is rounding: no round cloud reads so far above 1

__all__ = ["COLLAPSE", "WATCHED", "Event", "Gate", "IsotropyMonitor"]


#: The measures of the registry that are taken where none are named.
WATCHED = ("isoscore_unbiased", "participation_ratio_unbiased", "mean_cosine", "relative_spread", "largest_share")


def _enough(measure: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A measure without bias, as an :class:`~isonb.errors.InputError` where the batch is too small for it.

    The estimate of the squared variances may then be zero or negative, as it is for orthonormal rows.
    """

    def checked(x: Tensor) -> Tensor:
        score = float(MEASURES["isoscore_unbiased"](x))
        if not 0 <= score <= LARGEST:
            got = f"{len(x)} points that would read {score:.3g}"
            fail(InputError, "the points must be enough for an unbiased score", got, "Take a larger batch.")
        return measure(x)

    return checked


@dataclass(frozen=True)
class Event:
    """What one measurement said: ``kind`` is "measured", "warned" or "stopped"; ``reason`` names the gate.

    A value that isn't defined is NaN in ``values``, and ``undefined`` says why.
    """

    step: int
    kind: str
    values: dict[str, float]
    reason: str = ""
    undefined: dict[str, str] = field(default_factory=dict)


class IsotropyMonitor(_Base):  # type: ignore[misc]
    """Measures the vectors of training batches every ``every`` steps, and warns or stops where a gate is triggered.

    The points come from hooks on the passes that training makes anyway, without gradients and without a random draw,
    so training is not changed. Under several processes attach it on each: all measure and count their own points, and a
    gate that is triggered on one is triggered for all. The counts begin anew with each training; the checkpoints of the
    Trainer and of Lightning keep them for one that goes on. Elsewhere call :meth:`reset` and save :meth:`state_dict`.

    ``events`` holds what was seen. Values go into the log of the Trainer that it is attached to, as
    ``isonb/<measure>``, so TensorBoard, W&B and MLflow show them. Raises :class:`~isonb.errors.InputError` for an
    unknown measure and for a path whose folder isn't there.

    Args:
        measures: names of :data:`~isonb.measures.registry.MEASURES`, or functions of points (n, d) by name. Those that
            gates name are taken, too.
        every: steps from one measurement to the next.
        warn: gates that warn.
        stop: gates that end the training.
        pooling: which points; the last layer's [CLS] by default. sentence-transformers give their sentence embeddings.
            Those of several layers are one cloud, in which the others hide one that collapses.
        module: the name of the submodule that gives the vectors, where it has no one transformer.
        limit: at most so many points are measured, evenly spaced over those of the batch.
        path: a file that gets one line of JSON an event, from the first process.

    >>> monitor = IsotropyMonitor(["relative_spread"], stop=[Gate("relative_spread", low=1e-3)])
    >>> monitor.observe(torch.ones(8, 4), step=1).kind, monitor.observe(torch.ones(8, 4), step=2).kind
    ('measured', 'stopped')
    >>> monitor.observe(torch.ones(1, 4), step=3).undefined
    {'relative_spread': 'x must hold at least 2 points; got 1 (shape (1, 4)). Pass (..., n, d) with n >= 2.'}
    """

    def __init__(
        self,
        measures: Sequence[str] | Mapping[str, Callable[[Tensor], Tensor]] = WATCHED,
        *,
        every: int = 50,
        warn: Sequence[Gate] = (),
        stop: Sequence[Gate] = (),
        pooling: Pooling | None = None,
        module: str | None = None,
        limit: int = 512,
        path: str | Path | None = None,
    ) -> None:
        if every < 1:
            fail(InputError, "every must be 1 or more steps", every, "The default is 50.")
        if limit < 2:
            fail(InputError, "limit must be 2 or more points", limit, "The default is 512.")
        self.warn, self.stop = tuple(warn), tuple(stop)
        self.measures = dict(measures) if isinstance(measures, Mapping) else _named(measures)
        for gate in (*warn, *stop):
            if gate.measure not in self.measures and gate.measure not in MEASURES:
                fix = f"Taken are {', '.join(self.measures)}."
                fail(InputError, "a gate must name a measure", gate.measure, fix)
        self.measures = {
            **_named([gate.measure for gate in (*warn, *stop) if gate.measure in MEASURES]),
            **self.measures,
        }
        self.every, self.limit = every, limit
        self.path = None if path is None else Path(path)
        if self.path is not None and (self.path.is_dir() or not self.path.parent.is_dir()):
            fail(InputError, "path must be a file in a folder that is there", str(path), "Make the folder first.")
        self.events: list[Event] = []
        pooling = pooling or Pooling()
        self.pooling = pooling if module is None else replace(pooling, module=module)
        self._points = TrainingPoints(self.pooling)
        self._counts = GateCounts((*self.warn, *self.stop))
        self._due = False
        self._latest: Event | None = None  # of the training under way
        self._said: set[str] = set()

    def observe(self, points: Tensor, step: int) -> Event:
        """Measure points (n, d) of this process at a step; the event has the values and what follows from them.

        Under several processes each has to call it: what follows is the same on all of them.
        """
        return self._event(step, *self._measured(points))

    def attach(self, trainer: Any) -> IsotropyMonitor:
        """Take part in the training and the log of a Trainer of transformers or sentence-transformers.

        Returns itself. Raises :class:`~isonb.errors.InputError` for a model whose points can't be seen, and for what is
        no such Trainer.
        """
        if not hasattr(trainer, "add_callback"):
            fix = "In a loop of your own call observe(points, step); Lightning takes lightning() among its callbacks."
            fail(InputError, "trainer must be a Trainer", type(trainer).__name__, fix)
        self._points.check(trainer.model)
        if self not in trainer.callback_handler.callbacks:
            trainer.add_callback(self)
        trainer.log, trainer.train = self._with_values(trainer.log), self._without_trace(trainer.train)
        return self

    def reset(self) -> None:
        """Begin a new training: the gates count from 0. ``events`` stay."""
        self._points.stop()
        self._counts.reset()
        self._due, self._latest = False, None

    def on_init_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Look at the model of a Trainer that was given the monitor as one of its callbacks."""
        if model is not None:
            self._points.check(model)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin a training, or go on with the counts of a checkpoint."""
        self.reset()
        if state.global_step:
            self._counts.load_state_dict(state.stateful_callbacks.get(self.state_key, {}))

    def on_step_begin(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Watch the update that begins if it is one of those to measure."""
        self._begin(model if (state.global_step + 1) % self.every == 0 else None)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure the update; a triggered gate ends the training, and its checkpoint is written first."""
        event = self._end(state.global_step)
        state.stateful_callbacks.setdefault(self.state_key, {}).update(self._counts.state_dict())
        if event is not None and event.kind == "stopped":
            control.should_save = control.should_training_stop = True

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        """Take away the hooks."""
        self._points.stop()

    @property
    def state_key(self) -> str:
        """What a checkpoint calls the counts of the gates, since several monitors may take part in one training."""
        return f"isonb.IsotropyMonitor({', '.join(self.measures)}, {self.pooling}, every={self.every})"

    @property
    def counts(self) -> list[int]:
        """How many times in a row this process passed each gate of ``warn`` and ``stop``."""
        return list(self._counts.own)

    def state_dict(self) -> dict[str, Any]:
        """How far each gate is on every process; ``accelerator.register_for_checkpointing(monitor)`` takes it."""
        return {"gates": self._counts.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on with the counts of :meth:`state_dict`; gates that it doesn't know begin at 0."""
        self._counts.load_state_dict(state_dict.get("gates", {}))

    def lightning(self) -> Any:
        """A callback for Lightning's Trainer, of ``lightning`` and of ``pytorch_lightning``.

        A ``LightningModule`` whose encoder is one of its attributes is looked through; of several encoders ``module``
        names one.
        """
        return callback_of(self)

    def _with_values(self, log: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(log)
        def logged(logs: dict[str, float], *args: Any, **kwargs: Any) -> Any:
            if self._latest is not None and "loss" in logs:
                logs.update(self._logged())
            return log(logs, *args, **kwargs)

        return logged

    def _without_trace(self, train: Callable[..., Any]) -> Callable[..., Any]:
        """A training that leaves no hook on the model, however it ends."""

        @functools.wraps(train)
        def trained(*args: Any, **kwargs: Any) -> Any:
            try:
                return train(*args, **kwargs)
            finally:
                self._points.stop()

        return trained

    def _begin(self, model: nn.Module | None) -> None:
        """Watch an update of ``model``, or none."""
        self._points.stop()
        self._due = model is not None
        if model is not None:
            try:
                self._points.start(model)
            except Exception as error:  # a model that has changed since it was attached
                self._points.failure = f"{type(error).__name__}: {error}"

    def _end(self, step: int) -> Event | None:
        """The event of the update that was watched, the same on all processes; None if none was."""
        if not self._due:
            return None
        self._due = False
        points = self._points.take()
        if (first := self._points.first_token) is not None and first.loud:
            self._say(f"means over tokens: {first}")
        return self._event(step, *self._measured(points))

    def _measured(self, points: Tensor | None) -> tuple[dict[str, float], dict[str, str]]:
        """The values, NaN where one isn't defined, and why those aren't."""
        if points is None:
            why = self._points.failure or "no pass of the model with gradients was seen"
            return dict.fromkeys(self.measures, math.nan), dict.fromkeys(self.measures, why)
        each = {name: _value(measure, points, self.limit) for name, measure in self.measures.items()}
        values = {name: item if isinstance(item, float) else math.nan for name, item in each.items()}
        return values, {name: item for name, item in each.items() if isinstance(item, str)}

    def _event(self, step: int, values: dict[str, float], undefined: dict[str, str]) -> Event:
        """Count the gates, and say what follows, for all processes together."""
        triggered = self._counts.update(values)
        stopped, warned = (
            {gate: triggered[gate] for gate in gates if gate in triggered} for gates in (self.stop, self.warn)
        )
        kind = "stopped" if stopped else "warned" if warned else "measured"
        event = Event(step, kind, values, reason(stopped or warned, len(self._counts.every)), undefined)
        self._latest = event
        self.events.append(event)
        group = process_group("world")
        if group is None or torch.distributed.get_rank(group) == 0:
            self._write(event)
            if kind == "warned":
                warnings.warn(f"step {step}: {event.reason}", IsotropyWarning, stacklevel=3)
        if len(undefined) == len(self.measures):
            self._say(f"step {step}: nothing could be measured ({next(iter(undefined.values()))})")
        return event

    def _write(self, event: Event) -> None:
        if self.path is None:
            return
        values = {name: None if math.isnan(value) else value for name, value in event.values.items()}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(event) | {"values": values}) + "\n")
        except OSError as error:
            self._say(f"the events can't be written to {self.path} ({error.strerror}); they are kept in .events")

    def _say(self, what: str) -> None:
        """Tell once of a kind, in the log: warnings may be errors, and a training isn't ended for it."""
        kind = what.partition(":")[2] or what
        if kind not in self._said:
            self._said.add(kind)
            logger.warning(what)

    def _logged(self) -> dict[str, float]:
        values = {} if self._latest is None else self._latest.values
        return {f"isonb/{name}": value for name, value in values.items() if math.isfinite(value)}


def _named(names: Sequence[str]) -> dict[str, Callable[[Tensor], Tensor]]:
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        fail(InputError, f"measures must be some of {', '.join(MEASURES)}", unknown[0], "Or pass a mapping.")
    known = {name: MEASURES[name] for name in names}
    return {name: _enough(item) if name.endswith("_unbiased") else item for name, item in known.items()}


@torch.no_grad()
def _value(measure: Callable[[Tensor], Tensor], points: Tensor, limit: int) -> float | str:
    """The measure in float64, or why it isn't defined for these points. No random state is changed."""
    try:
        devices = [points.device] if points.device.type == "cuda" else []
        with strict(), torch.random.fork_rng(devices):
            value = float(measure(check_points(_spaced(points, limit).double())[0]))
    except Exception as error:  # a measure may be anybody's, and training goes on
        return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return value if math.isfinite(value) else f"the measure gives {value}"


def _spaced(points: Tensor, limit: int) -> Tensor:
    """At most ``limit`` of the points, evenly spaced: layers that follow one another all have theirs."""
    if len(points) <= limit:
        return points
    return points[torch.arange(limit, device=points.device) * (len(points) - 1) // (limit - 1)]
