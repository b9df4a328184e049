"""Isotropy while a model trains: measures of training batches every so many steps, gates that warn or stop.

::

    monitor = IsotropyMonitor(every=50, stop=COLLAPSE, path="isotropy.jsonl")
    monitor.attach(trainer)  # a Trainer of transformers or sentence-transformers
    trainer.train()

In a loop of your own call :meth:`IsotropyMonitor.observe`; for Lightning pass :meth:`IsotropyMonitor.lightning`.

The model is looked at when the monitor is attached, and refused there if it can't be read. From then on nothing raises:
what can't be measured is *undefined*, with a reason, and closes no gate.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isonb.checks import cloud, strict
from isonb.errors import InputError, IsotropyWarning, fail, needs
from isonb.integrations.hidden_states import Pooling
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
STATE = "isonb.IsotropyMonitor"  # what a checkpoint of the Trainer calls the counts of the gates
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")

__all__ = ["COLLAPSE", "WATCHED", "Event", "Gate", "IsotropyMonitor"]


#: The measures of the registry that are taken where none are named.
WATCHED = ("isoscore_unbiased", "participation_ratio", "mean_cosine", "relative_spread", "largest_share")


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
class Gate:
    """Closed where ``measure`` is below ``low`` or above ``high``, ``patience`` times in a row.

    Only values that are defined count. Raises :class:`~isonb.errors.InputError` without a limit, or for a patience
    below 1.
    """

    measure: str
    low: float = -math.inf
    high: float = math.inf
    patience: int = 2

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high) or not (math.isfinite(self.low) or math.isfinite(self.high)):
            fail(InputError, "a gate must have a limit", f"low {self.low}, high {self.high}", "Give low or high.")
        if self.patience < 1:
            fail(InputError, "patience must be 1 or more", self.patience, "Each value outside counts as one.")

    def broken(self, value: float) -> bool:
        """Whether one value lies outside; one that isn't defined does not."""
        return value < self.low or value > self.high

    def __str__(self) -> str:
        sides = [f"below {self.low:g}"] * math.isfinite(self.low) + [f"above {self.high:g}"] * math.isfinite(self.high)
        return f"{self.measure} {' or '.join(sides)}, {self.patience} times in a row"


#: Gates that end a training whose vectors are all equal, or nearly. A trained classifier may well use one or two
#: directions only, so few dimensions are no reason to stop by themselves.
COLLAPSE = (Gate("relative_spread", low=1e-3),)


@dataclass(frozen=True)
class Event:
    """What one measurement said: ``kind`` is "measured", "warned" or "stopped"; ``reason`` names the closed gate.

    A value that isn't defined is NaN in ``values``, and ``undefined`` says why.
    """

    step: int
    kind: str
    values: dict[str, float]
    reason: str = ""
    undefined: dict[str, str] = field(default_factory=dict)


class IsotropyMonitor(_Base):  # type: ignore[misc]
    """Measures the vectors of training batches every ``every`` steps, and warns or stops where a gate closes.

    The points come from hooks on the passes that training makes anyway, without gradients and without a random draw,
    so training is not changed. Under several processes attach it on each: all measure their own points, and a gate that
    closes on one closes for all. The checkpoints of the Trainer and of Lightning keep how far each gate is; elsewhere
    save :meth:`state_dict`.

    ``events`` holds what was seen. Values go into the Trainer's own log as ``isonb/<measure>`` once it is attached, so
    TensorBoard, W&B and MLflow show them. Raises :class:`~isonb.errors.InputError` for an unknown measure and for a
    path whose folder isn't there.

    Args:
        measures: names of :data:`~isonb.measures.registry.MEASURES`, or functions of points (n, d) by name.
        every: steps from one measurement to the next.
        warn: gates that warn.
        stop: gates that end the training.
        pooling: which points; the last layer's [CLS] by default. sentence-transformers give their sentence embeddings.
        module: the name of the submodule that gives the vectors, where it has no one transformer.
        limit: at most so many points are measured, the first ones.
        path: a file that gets one line of JSON an event, from the first process.

    >>> monitor = IsotropyMonitor(["relative_spread"], stop=COLLAPSE)
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
        self.measures = dict(measures) if isinstance(measures, Mapping) else _named(measures)
        for gate in (*warn, *stop):
            if gate.measure not in self.measures:
                fix = f"Taken are {', '.join(self.measures)}."
                fail(InputError, "a gate must name a measure that is taken", gate.measure, fix)
        self.every, self.warn, self.stop, self.limit = every, tuple(warn), tuple(stop), limit
        self.path = None if path is None else Path(path)
        if self.path is not None and (self.path.is_dir() or not self.path.parent.is_dir()):
            fail(InputError, "path must be a file in a folder that is there", str(path), "Make the folder first.")
        self.events: list[Event] = []
        pooling = pooling or Pooling()
        self._points = TrainingPoints(pooling if module is None else replace(pooling, module=module))
        self._due = False
        self._counts = dict.fromkeys((*self.warn, *self.stop), 0)
        self._said: set[str] = set()

    def observe(self, points: Tensor, step: int) -> Event:
        """Measure points (n, d) of this process at a step; the event has the values and what follows from them.

        Under several processes each has to call it: what follows is the same on all of them.
        """
        return self._event(step, *self._measured(points))

    def attach(self, trainer: Any) -> IsotropyMonitor:
        """Take part in a Trainer's training and log; returns itself.

        Raises :class:`~isonb.errors.InputError` for a model whose points can't be seen.
        """
        self._points.check(trainer.model)
        logged = trainer.log

        def log(logs: dict[str, float], *args: Any, **kwargs: Any) -> Any:
            if self.events and "loss" in logs:
                logs.update(self._logged())
            return logged(logs, *args, **kwargs)

        trainer.log = log
        trainer.add_callback(self)
        return self

    def on_init_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Look at the model of a Trainer that was given the monitor as one of its callbacks."""
        if model is not None:
            self._points.check(model)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Go on with the counts of a checkpoint."""
        if state.global_step:
            self.counts = state.stateful_callbacks.get(STATE, self.counts)

    def on_step_begin(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Watch the update that begins if it is one of those to measure."""
        self._begin(model if (state.global_step + 1) % self.every == 0 else None)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure the update; a closed gate ends the training, and its checkpoint is written first."""
        event = self._end(state.global_step)
        state.stateful_callbacks[STATE] = self.counts
        if event is not None and event.kind == "stopped":
            control.should_save = control.should_training_stop = True

    @property
    def counts(self) -> list[int]:
        """How many times in a row each gate of ``warn`` and ``stop`` was broken."""
        return list(self._counts.values())

    @counts.setter
    def counts(self, kept: Iterable[int]) -> None:
        if len(kept := list(kept)) == len(self._counts):
            self._counts = dict(zip(self._counts, kept, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """How far each gate is, to be saved: ``accelerator.register_for_checkpointing(monitor)`` takes it from here."""
        return {"counts": self.counts}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on with the counts of :meth:`state_dict`; those of other gates are left."""
        self.counts = state_dict["counts"]

    def lightning(self) -> Any:
        """A callback for Lightning's Trainer: ``Trainer(callbacks=[monitor.lightning()])``.

        It works with ``lightning`` and with ``pytorch_lightning``. A ``LightningModule`` whose encoder is one of its
        attributes is looked through; of several encoders ``module`` names one.
        """
        used = [name for name in LIGHTNING if name in sys.modules]
        there = used or [name for name in LIGHTNING if importlib.util.find_spec(name.partition(".")[0])]
        with needs("IsotropyMonitor.lightning", "lab"):
            bases = tuple(importlib.import_module(f"{name}.callbacks").Callback for name in there or LIGHTNING)
        monitor = self

        class Callback(*bases):  # type: ignore[misc]
            updates, seen = 0, 0  # whatever the number of optimisers that an update steps

            def on_fit_start(self, trainer: Any, module: Any) -> None:
                monitor._points.check(module)

            def on_train_batch_start(self, trainer: Any, module: Any, *args: Any) -> None:
                if not monitor._due:  # the later micro-batches of an update
                    self.seen = trainer.global_step
                    monitor._begin(module if (self.updates + 1) % monitor.every == 0 else None)

            def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
                if trainer.global_step == self.seen:
                    return
                self.updates, self.seen = self.updates + 1, trainer.global_step
                event = monitor._end(trainer.global_step)
                if event is not None:
                    with contextlib.suppress(Exception):  # a module may have no loop to log to
                        module.log_dict(monitor._logged())
                    trainer.should_stop = trainer.should_stop or event.kind == "stopped"

            def state_dict(self) -> dict[str, Any]:
                return {"updates": self.updates, **monitor.state_dict()}

            def load_state_dict(self, state_dict: dict[str, Any]) -> None:
                self.updates = state_dict["updates"]
                monitor.load_state_dict(state_dict)

        return Callback()

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
        values = {name: one if isinstance(one, float) else math.nan for name, one in each.items()}
        return values, {name: one for name, one in each.items() if isinstance(one, str)}

    def _event(self, step: int, values: dict[str, float], undefined: dict[str, str]) -> Event:
        """Count the gates, and say what follows, for all processes together."""
        for gate, count in self._counts.items():
            value = values[gate.measure]
            if not math.isnan(value):
                self._counts[gate] = count + 1 if gate.broken(value) else 0
        group, told = process_group("world"), [self.counts]  # the counts of every process, in their order
        if group is not None:
            told = [[] for _ in range(torch.distributed.get_world_size(group))]
            torch.distributed.all_gather_object(told, self.counts, group=group)
        closed = {
            gate: [rank for rank, counts in enumerate(told) if counts[place] >= gate.patience]
            for place, gate in enumerate(self._counts)
        }
        self.counts = [max(column) for column in zip(*told, strict=True)]
        stopped, warned = ([gate for gate in gates if closed[gate]] for gates in (self.stop, self.warn))
        kind = "stopped" if stopped else "warned" if warned else "measured"
        reasons = [str(gate) + _where(closed[gate], len(told)) for gate in stopped or warned]
        event = Event(step, kind, values, "; ".join(reasons), undefined)
        self.events.append(event)
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
        told = {name: None if math.isnan(value) else value for name, value in event.values.items()}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(event) | {"values": told}) + "\n")
        except OSError as error:
            self._say(f"the events can't be written to {self.path} ({error.strerror}); they are kept in .events")

    def _say(self, what: str) -> None:
        """Tell once of a kind, in the log: warnings may be errors, and a training isn't ended for it."""
        kind = what.partition(":")[2] or what
        if kind not in self._said:
            self._said.add(kind)
            logger.warning(what)

    def _logged(self) -> dict[str, float]:
        values = self.events[-1].values.items()
        return {f"isonb/{name}": value for name, value in values if math.isfinite(value)}


def _named(names: Sequence[str]) -> dict[str, Callable[[Tensor], Tensor]]:
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        fail(InputError, f"measures must be some of {', '.join(MEASURES)}", unknown[0], "Or pass a mapping.")
    known = {name: MEASURES[name] for name in names}
    return {name: _enough(one) if name.endswith("_unbiased") else one for name, one in known.items()}


@torch.no_grad()
def _value(measure: Callable[[Tensor], Tensor], points: Tensor, limit: int) -> float | str:
    """The measure in float64, or why it isn't defined for these points. No random state is changed."""
    try:
        devices = [points.device] if points.device.type == "cuda" else []
        with strict(), torch.random.fork_rng(devices):
            value = float(measure(cloud(points[:limit].double())[0]))
    except Exception as error:  # a measure may be anybody's, and training goes on
        return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return value if math.isfinite(value) else f"the measure gives {value}"


def _where(ranks: Sequence[int], count: int) -> str:
    return "" if count == 1 or len(ranks) == count else f", on process {', '.join(map(str, ranks))} of {count}"
