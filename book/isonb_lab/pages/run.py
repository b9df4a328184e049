"""Run chapters: papermill on a temporary copy, one process each, side by side; finished work is never lost.

The outputs of a chapter live in ``_build/executed/KEY.ipynb``. The key covers all that they depend on, so a second
build runs nothing, an edit of prose runs nothing, and an edit of the module runs what it must. Who runs a chapter holds
its lock, so two commands at once share the work; and no chapter outlives the command that runs it.
"""

from __future__ import annotations

import datetime
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from isonb.runtime.files import update
from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.errors import ChapterError
from isonb_lab.pages.outputs import apply_outputs, code_cells, collect_outputs
from isonb_lab.pages.parameters import Value
from isonb_lab.runtime import machine
from isonb_lab.runtime.locks import file_lock, free, run_concurrently
from isonb_lab.runtime.supervised import DEFAULTS, Answer, SupervisedProcess

SHOWN_LINES = 12
PACKAGES = ("isonb", "torch", "transformers", "sentence-transformers", "numpy", "altair", "gudhi")


@dataclass
class Job:
    """One chapter to run with one set of parameters, and how it went."""

    book: Book
    chapter: Chapter
    parameters: dict[str, Value] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """What its outputs depend on."""
        return self.chapter.key(self.parameters, self.book.environment)

    @property
    def cached(self) -> Path:
        return self.book.build / "executed" / f"{self.key}.ipynb"

    @property
    def warned(self) -> Path:
        """What the run said on stderr, which no page shows; there is no such file where it said nothing."""
        return self.cached.with_suffix(".stderr.txt")

    @property
    def partial(self) -> Path:
        """Where papermill writes while it runs; it stays there after a failure."""
        return self.book.build / "running" / f"{self.chapter.slug}-{self.key}.ipynb"

    @property
    def lock(self) -> Path:
        return self.book.build / "locks" / f"{self.chapter.slug}-{self.key}.lock"


def execute(jobs: Sequence[Job], *, workers: int | None = None, force: bool = False, progress: bool = True) -> None:
    """Run the jobs that have no executed notebook yet; raises :class:`ChapterError` when any failed, after all ended.

    Every finished job is saved when it ends: Ctrl-C, or the failure of another, loses none. What another process is
    running already is waited for, not run twice.
    """
    from tqdm import tqdm

    todo = [job for job in jobs if force or not job.cached.is_file()]
    todo.sort(key=lambda job: not job.chapter.early)  # a long one begun last would run on alone
    if not todo:
        return
    workers = max(1, min(workers or os.cpu_count() or 1, len(todo)))
    cores = max(1, (os.cpu_count() or 1) // workers)

    def work(job: Job, patient: bool, stop: threading.Event) -> str | None:
        with file_lock([job.lock], wait=patient, stop=stop) as lock:
            if lock is None and not stop.is_set():
                tqdm.write(f"{job.chapter.slug}: another process is at work on it", file=sys.stderr)
                return None
            if lock is None or stop.is_set() or (job.cached.is_file() and not force):
                return ""
            return _run(job, lock, cores, stop)

    ended = run_concurrently(todo, work, workers)
    pace = 0.5 if sys.stderr.isatty() else 20.0  # a log file needs a line now and then, not an animation
    for job, error in tqdm(ended, "Chapters", len(todo), unit="chapter", disable=not progress, mininterval=pace):
        job.error = error
    if failed := [job.error for job in todo if job.error]:
        raise ChapterError("\n\n".join(failed))
    for job in todo:
        if job.warned.exists():
            print(f"{job.chapter.name} warned: see {job.warned.relative_to(job.book.root)}", file=sys.stderr)


def _run(job: Job, lock: int, cores: int, stop: threading.Event) -> str:
    """Run papermill on a job, whose ``lock`` is held, and put the outputs where they stay; what went wrong, or ""."""
    start = time.monotonic()
    _remove_working_files(job)
    job.partial.parent.mkdir(parents=True, exist_ok=True)
    source, log = job.partial.with_suffix(".source.ipynb"), job.partial.with_suffix(".log")
    nbformat.write(job.chapter.cells, source)
    order = {"source": str(source), "target": str(job.partial), "cwd": str(job.chapter.source.parent)}
    environment = {**DEFAULTS, "ISONB_BOOK": "1", "ISONB_CORES": str(cores)}
    process = SupervisedProcess({**order, "parameters": job.parameters}, log, environment=environment, locks=[lock])
    answer = process.wait(stop)
    if stop.is_set():
        _remove_working_files(job)
        return ""
    job.seconds = time.monotonic() - start
    return _save(job, answer, process.folder)


def _save(job: Job, answer: Answer, folder: str) -> str:
    try:
        executed = nbformat.read(job.partial, as_version=4)
    except (OSError, ValueError):
        log = job.partial.with_suffix(".log").read_text(encoding="utf-8").strip().splitlines()
        return f"{job.chapter.name} didn't start:\n" + "\n".join(log[-SHOWN_LINES:])
    done = [cell.metadata.get("papermill", {}).get("status") == "completed" for cell in code_cells(executed)]
    if answer.kind or not all(done):
        return _failure(job, executed)
    clean = job.chapter.fresh()
    outputs, stderr = collect_outputs(executed, job.book.root, folder)
    apply_outputs(clean, outputs)
    clean.metadata["isonb_run"] = _record(job, answer.peak_mib)
    job.warned.unlink(missing_ok=True)
    if stderr.strip():
        update(job.warned, stderr)
    update(job.cached, nbformat.writes(clean) + "\n")
    _remove_working_files(job)
    return ""


def _record(job: Job, peak_mib: float | None) -> dict[str, Any]:
    """What is known about a run that ends now: no host names, no folders. ``peak_mib``: the memory of its kernel."""
    here = machine.hardware()
    return {
        "seconds": round(job.seconds, 1),
        "peak_mib": peak_mib,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "hardware": ", ".join([here["cpu"], f"{here['cores']} cores", *here["gpus"][:1]]),
        "versions": {name: version for name, version in machine.versions(PACKAGES).items() if version},
        "parameters": dict(job.parameters),
        "key": job.key,
    }


def _remove_working_files(job: Job) -> None:
    """Remove what runs of this chapter have left, with whatever key; its lock must be held."""
    for path in job.partial.parent.glob(f"{job.chapter.slug}-{'[0-9a-f]' * len(job.key)}.*"):
        if path.name.startswith(job.partial.stem) or free(job.lock.with_name(f"{path.name.split('.')[0]}.lock")):
            path.unlink(missing_ok=True)


def _failure(job: Job, executed: Any) -> str:
    """The cell that failed, its error, and where to look."""
    for number, cell in enumerate(code_cells(executed), start=1):
        for output in cell.outputs:
            if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", []):
                code = cell.source.strip().splitlines()
                shown = "\n".join(f"    {line}" for line in code[:SHOWN_LINES])
                shown += "\n    ..." * (len(code) > SHOWN_LINES)
                return (
                    f"{job.chapter.name}: code cell {number} failed with {output.ename}: {output.evalue}\n{shown}\n"
                    f"  The notebook up to there: {job.partial}"
                )
    log = job.partial.with_suffix(".log").read_text(encoding="utf-8").strip().splitlines()
    return f"{job.chapter.name} failed outside its cells: {log[-1] if log else 'no message'}\n  Notebook: {job.partial}"
