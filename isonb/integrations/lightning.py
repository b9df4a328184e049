"""What Lightning's Trainer calls of a monitor among its callbacks; nothing here needs Lightning to be imported."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from typing import Any, TypeVar

from isonb.errors import needs

Monitor = TypeVar("Monitor")  # it is made of these hooks, so it can't be imported here
PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same library under its two names


def is_trainer(trainer: Any) -> bool:
    """Whether it is a Trainer of Lightning."""
    return hasattr(trainer, "fit_loop") and isinstance(getattr(trainer, "callbacks", None), list)


def is_imported() -> bool:
    """Whether a program uses Lightning."""
    return any(name in sys.modules for name in PACKAGES)


def as_callback(monitor: Monitor) -> Monitor:
    """The monitor, made a callback of each Lightning that is imported, or of the one that is installed."""
    names = [name for name in PACKAGES if name in sys.modules]
    names = names or [name for name in PACKAGES if importlib.util.find_spec(name.partition(".")[0])]
    with needs("IsotropyMonitor.lightning", "hf"):
        bases = [importlib.import_module(f"{name}.callbacks").Callback for name in names or PACKAGES]
    new = tuple(base for base in bases if not isinstance(monitor, base))
    if new:
        kind = type(monitor)
        monitor.__class__ = type(kind.__name__, (kind, *new), {"__doc__": kind.__doc__, "__module__": kind.__module__})
    return monitor


class LightningHooks:
    """The part of :class:`~isonb.integrations.monitor.IsotropyMonitor` that Lightning's Trainer calls."""

    _updates, _step = 0, 0  # whatever the number of optimisers that an update steps

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Begin a training; the counts of a checkpoint come afterwards."""
        if stage == "fit":
            self._monitor().reset()

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        """Look at the module."""
        self._monitor()._points.check(module)

    def on_train_batch_start(self, trainer: Any, module: Any, *args: Any) -> None:
        """Watch the update that begins if it is one of those to measure."""
        monitor = self._monitor()
        if not monitor._due:  # the later micro-batches of an update
            self._step = trainer.global_step
            monitor._begin(module if (self._updates + 1) % monitor.every == 0 else None)

    def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
        """Measure the update; a triggered gate ends the training."""
        if trainer.global_step == self._step:
            return
        self._updates, self._step = self._updates + 1, trainer.global_step
        event = self._monitor()._end(trainer.global_step)
        if event is not None:
            with contextlib.suppress(Exception):  # a module may have no loop to log to
                module.log_dict(self._monitor()._logged())
            trainer.should_stop = trainer.should_stop or event.kind == "stopped"

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        """Take away the hooks, also where the training was interrupted."""
        self._monitor()._points.stop()

    def _monitor(self) -> Any:
        return self
