"""What goes along with a training: checkpoints that are whole, a late penalty, a bar, and trackers.

The Trainer writes many files. A list of them with their digests comes last, so that a checkpoint that was cut short or
damaged is known before anything is read from it; and so is one of other rows or weights. Trackers (TensorBoard, W&B,
MLflow and others) are told through the integrations of transformers.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.integrations import get_available_reporting_integrations, get_reporting_integration_callbacks
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

from isonb.errors import OptionError, fail
from isonb.runtime.files import replace
from isonb_lab.runtime.progress import note_progress

SEAL, INPUTS = "digests.json", "inputs.json"


class CheckpointDigest(TrainerCallback):  # type: ignore[misc]
    """Seals each checkpoint once all processes have written what is theirs of it; ``inputs`` as for :func:`seal`."""

    def __init__(self, inputs: Mapping[str, str] | None = None) -> None:
        self.inputs = inputs

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if torch.distributed.is_initialized():
            torch.distributed.barrier()
        if state.is_world_process_zero:
            seal(Path(args.output_dir) / f"checkpoint-{state.global_step}", self.inputs)


def seal(checkpoint: Path, inputs: Mapping[str, str] | None = None) -> None:
    """Write the digests beside the files, in one move; before, the fingerprints ``inputs`` of what the run reads."""
    if inputs is not None:
        replace(checkpoint / INPUTS, json.dumps(inputs).encode())
    replace(checkpoint / SEAL, json.dumps(_digests(checkpoint)).encode())


def last_valid_checkpoint(folder: Path, inputs: Mapping[str, str] | None = None) -> Path | None:
    """The last checkpoint in ``folder`` that is as it was written, and the best one it names too; the others go.

    With ``inputs`` those of a run that has read others go, too.
    """
    checkpoints = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    valid = [path for path in checkpoints if _is_whole(path) and _is_of(path, inputs)]
    last = next((path for path in reversed(valid) if _best(path) in (None, *valid)), None)
    for path in checkpoints:
        if last is None or path not in valid[: valid.index(last) + 1]:
            shutil.rmtree(path, ignore_errors=True)
    return last


def has_ended(checkpoint: Path) -> bool:
    """Whether nothing was left to train: all updates were done, or it had stopped early."""
    control = _state(checkpoint)["stateful_callbacks"]["TrainerControl"]["args"]
    return bool(control["should_training_stop"])


def _best(checkpoint: Path) -> Path | None:
    """The checkpoint with the best score so far, whose weights the run may end with."""
    best = _state(checkpoint)["best_model_checkpoint"]
    return None if best is None else Path(best)


def _state(checkpoint: Path) -> Any:
    return json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))


def _is_whole(checkpoint: Path) -> bool:
    try:
        return bool(json.loads((checkpoint / SEAL).read_text(encoding="utf-8")) == _digests(checkpoint))
    except (OSError, ValueError):
        return False


def _is_of(checkpoint: Path, inputs: Mapping[str, str] | None) -> bool:
    """Whether a whole checkpoint is of a run that reads these; one that doesn't say, of an older isonb, counts so."""
    note = checkpoint / INPUTS
    return inputs is None or not note.is_file() or bool(json.loads(note.read_text(encoding="utf-8")) == inputs)


def _digests(folder: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((SEAL, "."))):
        with path.open("rb") as file:
            digests[str(path.relative_to(folder))] = hashlib.file_digest(file, "blake2b").hexdigest()
    return digests


class DelayedPenalty(TrainerCallback):  # type: ignore[misc]
    """Lets the penalty of ``trainer`` weigh nothing in the first epochs. A resumed run may begin within an epoch."""

    def __init__(self, trainer: Any, delay_epochs: int) -> None:
        self.trainer, self.delay_epochs, self.weight = trainer, delay_epochs, trainer.penalty_weight

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.trainer.penalty_weight = self.weight if int(state.epoch or 0) >= self.delay_epochs else 0.0


class Bar(TrainerCallback):  # type: ignore[misc]
    """A bar over the updates, on a terminal or in a notebook, and a note of them for those who wait elsewhere."""

    def __init__(self, name: str, progress: bool) -> None:
        self.name, self.off = name, None if progress else True
        self.bar: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        from tqdm import tqdm

        if state.is_world_process_zero:  # a resumed run stands at a later update
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, desc=self.name, disable=self.off)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.bar is not None:
            self.bar.update(1)
            note_progress(args.output_dir, state.global_step, state.max_steps)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if self.bar is not None and logs and "loss" in logs:
            self.bar.set_postfix_str(f"loss {logs['loss']:.4g}", refresh=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.bar is not None:
            self.bar.close()


@functools.cache  # a sweep asks for each of its runs
def check_trackers(names: str) -> list[str]:
    """The trackers of :class:`Reports`, by name; raises as that."""
    requested = [name.strip() for name in names.split(",") if name.strip()]
    for name in requested:
        if name not in INTEGRATION_TO_CALLBACK:
            fail(OptionError, f"report_to must be among {', '.join(INTEGRATION_TO_CALLBACK)}", name, "Name these.")
        if name not in get_available_reporting_integrations():
            fail(OptionError, "a tracker must be installed", f"report_to {name}", f"pip install {name}.")
    return requested


class Reports(TrainerCallback):  # type: ignore[misc]
    """The Trainer's callbacks for these trackers, which stay open until the run has its final scores.

    ``names``: as for the Trainer's ``report_to``, separated by commas. Raises
    :class:`~isonb.errors.OptionError` for one that transformers doesn't know, or that isn't installed.
    """

    def __init__(self, names: str) -> None:
        self.trackers = [kind() for kind in get_reporting_integration_callbacks(check_trackers(names))]
        self.now: tuple[Any, ...] = ()

    def _tell(self, event: str, **values: Any) -> None:
        for tracker in self.trackers:
            getattr(tracker, event)(*self.now, **values)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.now = args, state, control
        self._tell("on_train_begin", **kwargs)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.now = args, state, control
        self._tell("on_log", logs=logs, **kwargs)

    def end(self, metrics: Mapping[str, float | None]) -> None:
        """The final numbers of a record, under "final_", and the trackers are closed."""
        if self.now:
            self._tell("on_log", logs={f"final_{name}": value for name, value in metrics.items() if value is not None})
            self._tell("on_train_end")

    def afterwards(
        self, name: str, metrics: Mapping[str, float | None], series: Mapping[str, Iterable[tuple[float, Any]]]
    ) -> None:
        """Tell a run that no Trainer has trained, when it is over: what it logged by update, and its final numbers."""
        if not self.trackers:
            return
        by_step: dict[float, dict[str, float]] = {}
        for key, pairs in series.items():
            for step, value in pairs if key.startswith("step.") else ():
                by_step.setdefault(step, {})[key.removeprefix("step.").removeprefix("train.")] = value
        with TemporaryDirectory(prefix="isonb-") as folder:
            args, state = TrainingArguments(folder, run_name=name, report_to="none"), TrainerState()
            self.on_train_begin(args, state, TrainerControl())
            for step, logs in sorted(by_step.items()):
                state.global_step = int(step)
                self.on_log(args, state, TrainerControl(), logs=logs)
            self.end(metrics)
