"""What a run tells trackers (TensorBoard, W&B, MLflow and others), through the integrations of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import get_available_reporting_integrations, get_reporting_integration_callbacks
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from isonb.errors import fail
from isonb.lab.engines.contrast import Series
from isonb.lab.options import OptionError

__all__ = ["Reports", "report"]

Values = Mapping[str, float | None]


class Reports(TrainerCallback):  # type: ignore[misc]
    """The Trainer's callbacks for these trackers, which stay open until the run has its final scores.

    ``names``: as for the Trainer's ``report_to``, separated by commas. Raises
    :class:`~isonb.lab.options.OptionError` for one that transformers doesn't know, or that isn't installed.
    """

    def __init__(self, names: str) -> None:
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        for name in wanted:
            if name not in INTEGRATION_TO_CALLBACK:
                fail(OptionError, f"report_to must be among {', '.join(INTEGRATION_TO_CALLBACK)}", name, "Name these.")
            if name not in get_available_reporting_integrations():
                fail(OptionError, "a tracker must be installed", f"report_to {name}", f"pip install {name}.")
        self.trackers = [kind() for kind in get_reporting_integration_callbacks(wanted)]
        self.now: tuple[Any, ...] = ()

    def _tell(self, event: str, **values: Any) -> None:
        for tracker in self.trackers:
            getattr(tracker, event)(*self.now, **values)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Opens the trackers."""
        self.now = args, state, control
        self._tell("on_train_begin", **kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """What the Trainer logs."""
        self.now = args, state, control
        self._tell("on_log", logs=logs, **kwargs)

    def end(self, metrics: Values) -> None:
        """The final numbers of a record, under "final_", and the trackers are closed."""
        if self.now:
            self._tell("on_log", logs={f"final_{name}": value for name, value in metrics.items() if value is not None})
            self._tell("on_train_end")


def report(reports: Reports, name: str, metrics: Values, series: Series) -> None:
    """Tell a run that no Trainer has trained, when it is over: what it logged by update, and its final numbers."""
    if not reports.trackers:
        return
    by_step: dict[float, dict[str, float]] = {}
    for key, pairs in series.items():
        for step, value in pairs if key.startswith("step.") else ():
            by_step.setdefault(step, {})[key.removeprefix("step.").removeprefix("train.")] = value
    with TemporaryDirectory(prefix="isonb-") as folder:
        args, state = TrainingArguments(folder, run_name=name, report_to="none"), TrainerState()
        reports.on_train_begin(args, state, TrainerControl())
        for step, logs in sorted(by_step.items()):
            state.global_step = int(step)
            reports.on_log(args, state, TrainerControl(), logs=logs)
        reports.end(metrics)
