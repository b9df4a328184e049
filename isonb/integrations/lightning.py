"""A monitor as a callback of Lightning's Trainer; nothing here needs Lightning to be imported."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

from isonb.errors import needs

PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same library under its two names


def callback_of(monitor: Any) -> Any:
    """A callback of each Lightning that is imported, or of the one that is installed."""
    names = [name for name in PACKAGES if name in sys.modules]
    names = names or [name for name in PACKAGES if importlib.util.find_spec(name.partition(".")[0])]
    with needs("IsotropyMonitor.lightning", "hf"):
        bases = [importlib.import_module(f"{name}.callbacks").Callback for name in names or PACKAGES]
    return type("LightningMonitor", (LightningHooks, *bases), {})(monitor)


class LightningHooks:
    """What Lightning's Trainer calls of a callback; ``monitor`` measures. Updates count, not steps of optimisers."""

    def __init__(self, monitor: Any) -> None:
        super().__init__()
        self.monitor, self.updates, self.step = monitor, 0, 0

    @property
    def state_key(self) -> str:
        return str(self.monitor.state_key)

    def state_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, **self.monitor.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        self.updates = state_dict["updates"]
        self.monitor.load_state_dict(state_dict)

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        """Begin a training; the counts of a checkpoint come afterwards."""
        if stage == "fit":
            self.updates = 0
            self.monitor.reset()

    def on_fit_start(self, trainer: Any, module: Any) -> None:
        self.monitor._points.check(module)

    def on_train_batch_start(self, trainer: Any, module: Any, *args: Any) -> None:
        if not self.monitor._due:  # the later micro-batches of an update
            self.step = trainer.global_step
            self.monitor._begin(module if (self.updates + 1) % self.monitor.every == 0 else None)

    def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
        """Measure the update; a triggered gate ends the training."""
        if trainer.global_step == self.step:
            return
        self.updates, self.step = self.updates + 1, trainer.global_step
        event = self.monitor._end(trainer.global_step)
        if event is not None:
            with contextlib.suppress(Exception):  # a module may have no loop to log to
                module.log_dict(self.monitor._logged())
            trainer.should_stop = trainer.should_stop or event.kind == "stopped"

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self.monitor._points.stop()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.monitor._points.stop()
