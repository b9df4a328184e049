"""One run: one notebook, executed in its own process, that leaves one record.

``OUT/records/<id>.json`` is the record, ``OUT/notebooks/<id>.ipynb`` the executed notebook, ``OUT/logs/<id>.log`` what
its process said; ``OUT/predictions/<id>.parquet`` has the predictions and ``OUT/tensorboard/<id>`` what TensorBoard was
told, where they are asked for; ``OUT/work/<id>`` has checkpoints until the run has finished. ``OUT/locks/<id>.lock``
is held by the process of the run as long as that lives, so no two processes do the same run at once, and a run that was
killed is free for the next. Whoever is at a run holds its lock; what lies under a free lock belongs to nobody, and the
next puts it away.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.models.catalogue import ModelError
from isonb.runtime.tables import SourceError
from isonb_lab.data.sources import data_folder
from isonb_lab.places import EXPERIMENTS_FOLDER
from isonb_lab.runs.inputs import differences, inputs, named
from isonb_lab.runs.manifest import Clock, code_version, versions
from isonb_lab.runs.record import Record, RecordError, read_record, sound_record, write_record
from isonb_lab.runs.settings import Planned
from isonb_lab.runtime.locks import file_lock
from isonb_lab.runtime.supervised import Answer, SupervisedProcess
from isonb_lab.sweeps.gpus import claimed, visible
from isonb_lab.sweeps.outcomes import Outcome

UNSTARTED = (SourceError.__name__, ModelError.__name__)  # rows or weights couldn't be had: that is no result
KEEPING = ("finetune", "similarity")  # experiments whose runs keep predictions and tell trackers
BOARD = "TENSORBOARD_LOGGING_DIR"
BUSY = "another process is at it"
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
REFUSED = FULL | {errno.EIO, errno.EROFS}
# write_record's, the system's, and those of torch.save, which keeps the system's to itself
WORDS = ("the disk must take", *map(os.strerror, FULL), "PytorchStreamWriter failed", "] . unexpected pos ")


class ExecuteError(InputError):
    """A run that can't be started: no template, a folder of another kind."""


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to start, with its folders and its template. :func:`prepare` makes it.

    ``runner`` names the function ``module:function`` that the process of the run calls with :meth:`order`; empty:
    papermill on the template. ``differs``: in what its rows and weights differ from those of the record under the id of
    its settings. ``report_to``: trackers; ``keep_predictions``: whether a run that is done without them is done again.
    """

    planned: Planned
    out: Path
    template: Path
    data: str | None = None
    retry_failed: bool = False
    runner: str = ""
    differs: str = ""
    report_to: str = ""
    keep_predictions: bool = False

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.planned.run_id

    @property
    def record(self) -> Path:
        """The file of its record."""
        return self.out / "records" / f"{self.run_id}.json"

    @property
    def notebook(self) -> Path:
        """The file of its executed notebook."""
        return self.out / "notebooks" / f"{self.run_id}.ipynb"

    @property
    def unfinished(self) -> Path:
        """Where the notebook is while it runs."""
        return self.notebook.with_name(f".{self.run_id}.part.ipynb")

    @property
    def predictions(self) -> Path:
        """The file of its predictions, one row an example."""
        return self.out / "predictions" / f"{self.run_id}.parquet"

    @property
    def work(self) -> Path:
        """The folder of its checkpoints, from which it goes on when it was stopped; removed when it has finished."""
        return self.out / "work" / self.run_id

    @property
    def lock(self) -> Path:
        """The file that is locked while it runs."""
        return self.out / "locks" / f"{self.run_id}.lock"

    def order(self) -> dict[str, Any]:
        """What the process of the run is told: plain JSON values."""
        folders = {"out": str(self.out), "data": self.data or "", "work": str(self.work)}
        files = {"source": str(self.template), "target": str(self.unfinished), "cwd": os.getcwd()}
        keep = {"report_to": self.report_to} if self.report_to else {}
        keep |= {"predictions": str(self.predictions)} if self.keep_predictions else {}
        request = {"planned": self.planned.to_dict(), **folders, **({"keep": keep} if keep else {})}
        return {"run_id": self.run_id, "parameters": request, **files}


def prepare(
    planned: Planned,
    out: str | Path,
    *,
    data: str | Path | None = None,
    retry_failed: bool = False,
    runner: str = "",
    report_to: str = "",
    keep_predictions: bool = False,
) -> Prepared:
    """The run, checked and ready to start; nothing is started or written.

    Where ``out`` holds a record of the same settings but of
    other rows or weights, it is another run, whose id and configuration say so (``differs`` says in what).
    ``report_to`` names trackers, which must be there, and ``keep_predictions`` asks for a table of predictions: of
    fine-tuning and similarity runs.
    """
    folder = Path(out).resolve()
    if not next(path for path in (folder, *folder.parents) if path.exists()).is_dir():
        fail(ExecuteError, "out must be a folder, there or to be made", repr(str(out)), "Name another.")
    template = EXPERIMENTS_FOLDER / f"{planned.experiment}.md"
    if not template.is_file():
        fail(ExecuteError, "isonb must be installed with its templates", f"no file {template}", "Install it again.")
    if (report_to or keep_predictions) and planned.experiment not in KEEPING:
        must = f"trackers and predictions are for {' and '.join(KEEPING)} runs"
        fail(ExecuteError, must, f"a {planned.experiment} run", "Leave report_to and predictions out.")
    if report_to:
        from isonb_lab.engines.callbacks import check_trackers

        check_trackers(report_to)
    where = None if data is None else str(data_folder(data) or data)
    run = Prepared(planned, folder, template, where, retry_failed, runner)
    return _told_apart(replace(run, report_to=report_to, keep_predictions=keep_predictions))


def _told_apart(run: Prepared) -> Prepared:
    """The run itself, unless its record is of other rows or weights: then the run under an id of its own."""
    record = sound_record(run.record)
    then = {} if record is None else record.manifest.get("data")
    if not isinstance(then, Mapping) or not then or "inputs" in run.planned.config:
        return run
    now = inputs(run.planned, run.data)
    if not (differs := differences(then, now)):
        return run
    return replace(run, planned=run.planned.with_inputs(named({**then, **now})), differs=differs)


def execute(run: Prepared, *, wait: bool = True, stop: threading.Event | None = None) -> Outcome:
    """Do one run unless it is done, and say how it ended. Never raises for a run that fails: its record says why.

    A complete record is left alone, a failed one too without ``retry_failed``; a damaged one is moved aside
    (``.json.damaged``) and run again. While another process does the same run, this one waits for it (``wait=False``:
    gives up, "busy"). ``stop`` ends it early. Where there are GPUs, the run gets one to itself.
    """
    stop = threading.Event() if stop is None else stop
    damaged = ""
    try:
        with file_lock([run.lock], wait=wait, stop=stop) as lock:
            if stop.is_set() or lock is None:
                return Outcome(run.run_id, "stopped") if stop.is_set() else Outcome(run.run_id, "busy", BUSY)
            damaged = _set_damaged_aside(run)
            now = _told_apart(run)  # a record may have come since the run was prepared
            outcome = (
                execute(now, wait=wait, stop=stop) if now is not run else earlier_outcome(run) or _run(run, lock, stop)
            )
            _put_away(run, failed=outcome.status == "failed")
    except (OSError, InputError) as error:
        outcome = Outcome(run.run_id, "not recorded", f"{type(error).__name__}: {error}")
    return Outcome(run.run_id, outcome.status, outcome.error, damaged)


def earlier_outcome(run: Prepared) -> Outcome | None:
    """How a run ended before, when that is the last word on it; None when it is to be run."""
    if _is_whole(run):
        return Outcome(run.run_id, "skipped")
    record = sound_record(run.record)
    if record is None or record.status == "complete" or run.retry_failed:
        return None
    return Outcome(run.run_id, "failed before", record.error)


def _is_whole(run: Prepared) -> bool:
    """Whether its complete record is there, and its predictions, too, where they are asked for."""
    record = sound_record(run.record)
    complete = record is not None and record.status == "complete"
    return complete and (not run.keep_predictions or run.predictions.is_file())


def _set_damaged_aside(run: Prepared) -> str:
    """Move a record that is no good to ``<id>.json.damaged``; why it is none, or nothing."""
    if not run.record.exists() or sound_record(run.record) is not None:
        return ""
    try:
        why = f"it is the record of {read_record(run.record).run_id}"
    except RecordError as error:
        why = str(error)
    os.replace(run.record, run.record.with_name(run.record.name + ".damaged"))
    return why


def _put_away(run: Prepared, *, failed: bool) -> None:
    """Remove what the run no longer needs; its lock must be held.

    With a complete record the checkpoints go, and the notebook gets its name however far it came. Without one the
    checkpoints stay for the next attempt, and the notebook is kept if the run has ``failed`` by itself.
    """
    whole = _is_whole(run)
    if run.unfinished.is_file() and (whole or failed):
        os.replace(run.unfinished, run.notebook)
    run.unfinished.unlink(missing_ok=True)
    if whole:
        shutil.rmtree(run.work, ignore_errors=True)
    for torn in run.record.parent.glob(f".{run.record.name}.*.part"):
        torn.unlink()


def _run(run: Prepared, lock: int, stop: threading.Event) -> Outcome:
    clock = Clock()
    with claimed(visible(), stop=stop) as (environment, gpu):
        if stop.is_set():
            return Outcome(run.run_id, "stopped")
        board = os.environ.get(BOARD) or run.out / "tensorboard"
        environment = {**environment, BOARD: str(Path(board) / run.run_id)}
        log = run.out / "logs" / f"{run.run_id}.log"
        order = run.order()
        process = SupervisedProcess(order, log, function=run.runner, environment=environment, locks=(lock, *gpu))
        answer = process.wait(stop)
    return _judge(run, answer, clock)


def _judge(run: Prepared, answer: Answer, clock: Clock) -> Outcome:
    """The record decides: a run that has a complete one is finished, whatever its notebook did afterwards.

    One that was done again for its predictions must have these, too; its record from before stays.
    """
    if _is_whole(run):
        return Outcome(run.run_id, "finished", f"after its record was written, {answer}" if answer.kind else "")
    if answer.kind == "stopped":
        return Outcome(run.run_id, "stopped", answer.text)
    if _disk_refused(answer.text) or answer.kind in UNSTARTED:
        return Outcome(run.run_id, "not recorded", str(answer))
    record = sound_record(run.record)
    if record is not None and record.status == "complete":
        return Outcome(run.run_id, "not recorded", f"its predictions aren't there. {answer}".strip())
    if not answer.kind and record is not None:
        return Outcome(run.run_id, "failed", record.error)
    reason = str(answer) if answer.kind else "the notebook ended without a record"
    about = {"code": code_version(), "seconds": clock.seconds(), "seed": run.planned.config["seed"]}
    about |= {"started": clock.utc.isoformat(timespec="seconds"), "versions": versions()}
    failed = Record(run.planned.config, manifest=about, status="failed", error=reason, named=run.run_id)
    write_record(run.record.parent, failed)
    return Outcome(run.run_id, "failed", reason)


def _disk_refused(text: str) -> bool:
    """Whether an error is the disk's, which says nothing about the run.

    >>> _disk_refused("[Errno 28] No space left on device"), _disk_refused("[Errno 2] no file")
    (True, False)
    """
    numbers = re.findall(r"(?:^\[Errno |\(os error )(\d+)[\])]", text)
    return any(phrase in text for phrase in WORDS) or any(int(number) in REFUSED for number in numbers)
