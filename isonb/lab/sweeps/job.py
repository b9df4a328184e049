"""One run: one notebook, executed in its own process, that leaves one record.

``OUT/records/<id>.json`` is the record, ``OUT/notebooks/<id>.ipynb`` the executed notebook, ``OUT/logs/<id>.log`` what
its process said; ``OUT/work/<id>`` has checkpoints until the run has finished. ``OUT/locks/<id>.lock`` is held by the
process of the run as long as that lives, so no two processes do the same run at once, and a run that was killed is free
for the next.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.lab.data.sources import SourceError, data_folder
from isonb.lab.encoders.catalogue import ModelError
from isonb.lab.options import shown, writable
from isonb.lab.runs.inputs import differences, inputs, named
from isonb.lab.runs.manifest import Clock, code_version, versions
from isonb.lab.runs.record import Record, RecordError, read_record, write_record
from isonb.lab.runs.run_ids import run_id
from isonb.lab.runs.settings import resolve
from isonb.lab.sweeps.debris import put_away
from isonb.lab.sweeps.gpus import claimed, visible
from isonb.lab.sweeps.outcomes import Outcome
from isonb.lab.sweeps.process import Answer, supervise
from isonb.runtime.locks import held
from isonb.runtime.places import EXPERIMENTS_FOLDER

__all__ = ["ExecuteError", "Job", "execute", "known", "prepare"]

UNSTARTED = (SourceError.__name__, ModelError.__name__)  # rows or weights couldn't be had: that is no result
BUSY = "another process is at it"


class ExecuteError(InputError):
    """A run that can't be started: no template, a time limit of nothing, a folder of another kind."""


@dataclass(frozen=True)
class Job:
    """A run that is ready to start: its configuration written out, its folders, its template. :func:`prepare` makes it.

    ``runner`` names the function ``module:function`` that the process of the run calls with the job as a mapping;
    empty: papermill on the template.
    """

    config: Mapping[str, Any]
    out: Path
    template: Path
    data: str | None = None
    timeout: float | None = None
    retry_failed: bool = False
    runner: str = ""
    differs: str = ""  # in what its rows and weights differ from those of the record under the id of its settings

    @cached_property
    def run_id(self) -> str:
        """The id that follows from the configuration."""
        return run_id(self.config)

    @property
    def record(self) -> Path:
        """The file of its record."""
        return self.out / "records" / f"{self.run_id}.json"

    @property
    def notebook(self) -> Path:
        """The file of its executed notebook."""
        return self.out / "notebooks" / f"{self.run_id}.ipynb"

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
        files = {"template": str(self.template), "notebook": str(self.notebook), "runner": self.runner}
        return {"run_id": self.run_id, "parameters": {"config": dict(self.config), **folders}, **files}


def prepare(
    config: Mapping[str, Any],
    out: str | Path,
    *,
    data: str | Path | None = None,
    timeout: float | None = None,
    experiments: str | Path | None = None,
    retry_failed: bool = False,
    runner: str = "",
) -> Job:
    """The job for a configuration, checked; nothing is started or written.

    ``config`` as in :func:`~isonb.lab.runs.settings.resolve`. Where ``out`` holds a record of the same settings but of
    other rows or weights, it is another run, whose id and configuration say so (``differs`` says in what).
    ``experiments`` is the folder of the templates ``<experiment>.md``, by default those of isonb.
    """
    found = resolve(config)
    if timeout is not None and not timeout > 0:
        fail(ExecuteError, "timeout must be more than 0 seconds", repr(timeout), "None sets no limit.")
    folder = EXPERIMENTS_FOLDER if experiments is None else Path(experiments).resolve()
    template = folder / f"{found['experiment']}.md"
    if not template.is_file():
        fix = "Name the folder of the templates, or none for those of isonb."
        fail(ExecuteError, f"a {found['experiment']} run needs its template", f"no file {template}", fix)
    where = None if data is None else str(data_folder(data) or data)
    return _told_apart(Job(found, _out(out), template, where, timeout, retry_failed, runner))


def _out(out: str | Path) -> Path:
    """The folder of a sweep, there or to be made."""
    try:
        found = Path(out).resolve()
        there = next(path for path in (found, *found.parents) if path.exists() or path.is_symlink())
        good = there.is_dir()
        if good:
            tempfile.TemporaryDirectory(dir=there).cleanup()  # what only a try can tell, of /proc or a read-only disk
    except (OSError, RuntimeError, ValueError):  # a link to itself, too long a name, a zero byte
        good = False
    if not good or not writable(str(out)):
        want = "out must be a folder that can be written, there or to be made"
        fail(ExecuteError, want, shown(str(out)), "Name another.")
    return found


def _told_apart(job: Job) -> Job:
    """The job itself, unless its record is of other rows or weights: then the job under an id of its own."""
    record = _record(job)
    then = {} if record is None else record.manifest.get("data")
    if not isinstance(then, Mapping) or not then or "inputs" in job.config:
        return job
    now = inputs(job.config, job.data)
    if not (differs := differences(then, now)):
        return job
    return replace(job, config={**job.config, "inputs": named({**then, **now})}, differs=differs)


def execute(
    config: Mapping[str, Any] | Job,
    out: str | Path | None = None,
    *,
    wait: bool = True,
    stop: threading.Event | None = None,
    **options: Any,
) -> Outcome:
    """Do one run unless it is done, and say how it ended. Never raises for a run that fails: its record says why.

    ``config`` and ``out``, with the options of :func:`prepare`; or a :class:`Job`. A complete record is left alone, a
    failed one too without ``retry_failed``; a damaged one is moved aside (``.json.damaged``) and run again. While
    another process does the same run, this one waits for it (``wait=False``: gives up, "busy"). ``stop`` ends it early.
    Where there are GPUs, the run gets one to itself. Raises :class:`ExecuteError` and what
    :func:`~isonb.lab.runs.settings.resolve` raises, before anything starts.
    """
    if not isinstance(config, Job):
        if out is None:
            fail(ExecuteError, "out must be a folder", "None", "Name the folder that gets records and notebooks.")
        config = prepare(config, out, **options)
    job, stop = config, threading.Event() if stop is None else stop
    start = time.monotonic()
    damaged = ""
    try:
        with held([job.lock], wait=wait, stop=stop) as lock:
            if stop.is_set() or lock is None:
                return Outcome(job.run_id, "stopped") if stop.is_set() else Outcome(job.run_id, "busy", BUSY)
            damaged = _set_damaged_aside(job)
            now = _told_apart(job)  # a record may have come since the job was made
            outcome = execute(now, wait=wait, stop=stop) if now is not job else known(job) or _run(job, lock, stop)
            put_away(job.out, job.run_id, ended=outcome.status == "failed")
    except (OSError, InputError) as error:
        outcome = Outcome(job.run_id, "not recorded", f"{type(error).__name__}: {error}")
    return Outcome(job.run_id, outcome.status, outcome.error, damaged, round(time.monotonic() - start, 3))


def known(job: Job) -> Outcome | None:
    """How a run ended before, when that is the last word on it; None when it is to be run."""
    record = _record(job)
    if record is None or (record.status != "complete" and job.retry_failed):
        return None
    status = "skipped" if record.status == "complete" else "failed before"
    return Outcome(job.run_id, status, record.error)  # type: ignore[arg-type]


def _record(job: Job) -> Record | None:
    """The good record of this very run, if there is one."""
    with contextlib.suppress(RecordError):
        record = read_record(job.record)
        return record if record.run_id == job.run_id else None
    return None


def _set_damaged_aside(job: Job) -> str:
    """Move a record that is no good to ``<id>.json.damaged``; why it is none, or nothing."""
    if not job.record.exists() or _record(job) is not None:
        return ""
    try:
        why = f"it is the record of {read_record(job.record).run_id}"
    except RecordError as error:
        why = str(error)
    os.replace(job.record, job.record.with_name(job.record.name + ".damaged"))
    return why


def _run(job: Job, lock: int, stop: threading.Event) -> Outcome:
    clock = Clock()
    with claimed(visible(), stop=stop) as (environment, gpu):
        if stop.is_set():
            return Outcome(job.run_id, "stopped")
        log = job.out / "logs" / f"{job.run_id}.log"
        options: dict[str, Any] = {"environment": environment, "timeout": job.timeout, "stop": stop}
        answer = supervise(job.order(), log, locks=(lock, *gpu), **options)
    return _judge(job, answer, clock)


def _judge(job: Job, answer: Answer, clock: Clock) -> Outcome:
    """The record decides: a run that has a complete one is finished, whatever its notebook did afterwards."""
    record = _record(job)
    if record is not None and record.status == "complete":
        return Outcome(job.run_id, "finished", f"after its record was written, {answer}" if answer.kind else "")
    if answer.kind == "stopped":
        return Outcome(job.run_id, "stopped", answer.text)
    if answer.disk or answer.kind in UNSTARTED:
        return Outcome(job.run_id, "not recorded", str(answer))
    if not answer.kind and record is not None:
        return Outcome(job.run_id, "failed", record.error)
    reason = str(answer) if answer.kind else "the notebook ended without a record"
    made = {"code": code_version(), "seconds": clock.seconds(), "seed": job.config["seed"]}
    made |= {"started": clock.utc.isoformat(timespec="seconds"), "versions": versions()}
    failed = Record(job.config, manifest=made, status="failed", error=reason)
    write_record(job.record.parent, failed)
    return Outcome(job.run_id, "failed", reason)
