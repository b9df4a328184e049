"""Run chapters: papermill on a temporary copy, one process each, side by side; finished work is never lost.

The outputs of a chapter live in ``_build/executed/KEY.ipynb``. The key covers all that they depend on, so a second
build runs nothing, an edit of prose runs nothing, and an edit of the module runs what it must. Who runs a chapter holds
its lock, so two commands at once share the work; and no chapter outlives the command that runs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import ChapterError
from isonb.pages.outputs import code_cells, graft, harvest
from isonb.pages.parameters import Value
from isonb.pages.record import run_record
from isonb.runtime.files import update
from isonb.runtime.leash import Leash
from isonb.runtime.locks import free, held

__all__ = ["Job", "execute"]

ENVIRONMENT = {
    "ISONB_BOOK": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",  # a progress bar would leave a widget or stderr in the page
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "JUPYTER_PREFER_ENV_PATH": "1",  # this environment's kernel, not one installed for the user
    "PYTHONHASHSEED": "0",
}
SHOWN_LINES = 12


@dataclass
class Job:
    """One chapter to run with one set of parameters, and how it went."""

    book: Book
    chapter: Chapter
    parameters: dict[str, Value] = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0
    ended: bool = False

    @property
    def key(self) -> str:
        """What its outputs depend on."""
        return self.chapter.key(self.parameters, self.book.environment)

    @property
    def cached(self) -> Path:
        """The executed notebook, when there is one."""
        return self.book.build / "executed" / f"{self.key}.ipynb"

    @property
    def partial(self) -> Path:
        """Where papermill writes while it runs; it stays there after a failure."""
        return self.book.build / "running" / f"{self.chapter.slug}-{self.key}.ipynb"

    @property
    def lock(self) -> Path:
        """The file that is locked while it runs."""
        return self.book.build / "locks" / f"{self.chapter.slug}-{self.key}.lock"


def execute(jobs: Sequence[Job], *, workers: int | None = None, force: bool = False, progress: bool = True) -> None:
    """Run the jobs that have no executed notebook yet; raises :class:`ChapterError` when any failed, after all ended.

    Every finished job is saved when it ends: Ctrl-C, or the failure of another, loses none. What another process is
    running already is waited for, not run twice.
    """
    todo = [job for job in jobs if force or not job.cached.is_file()]
    if not todo:
        return
    waiting = sorted(todo, key=lambda job: not job.chapter.early)  # a long one begun last would run on alone
    workers = max(1, min(workers or os.cpu_count() or 1, len(waiting)))
    with _bar(todo, progress) as bar, _ending([]) as running:
        while waiting or running:
            _start(waiting, running, workers, force)
            time.sleep(0.2)
            for process in [p for p in running if p.child.poll() is not None]:
                process.finish()
                running.remove(process)
            shown = [p.job.chapter.slug for p in running] or ["another process is at work"] * bool(waiting)
            bar.set_postfix_str(", ".join(shown), refresh=False)
            bar.update(_done_cells(todo, running) - bar.n)
    failed = [job for job in jobs if job.error]
    if failed:
        raise ChapterError("\n\n".join(job.error for job in failed))


def _start(waiting: list[Job], running: list[_Process], workers: int, force: bool) -> None:
    """Move jobs from ``waiting`` to ``running``: those that no other process runs, and hasn't run meanwhile."""
    for job in list(waiting):
        if len(running) >= workers:
            return
        with contextlib.ExitStack() as stack:
            lock = stack.enter_context(held([job.lock], wait=False))
            if lock is None:
                continue
            waiting.remove(job)
            if job.cached.is_file() and not force:
                job.ended = True
            else:
                running.append(_Process(job, lock, max(1, (os.cpu_count() or 1) // workers)))
                running[-1].held = stack.pop_all()


class _Process:
    """papermill at work on one job, on a leash; ``held`` is its lock, ``cores`` what the job may use of them."""

    def __init__(self, job: Job, lock: int, cores: int) -> None:
        self.job, self.start, self.seen, self.held = job, time.monotonic(), (0.0, 0), contextlib.ExitStack()
        _remove_working_files(job)
        job.partial.parent.mkdir(parents=True, exist_ok=True)
        source, self.log = job.partial.with_suffix(".source.ipynb"), job.partial.with_suffix(".log")
        nbformat.write(job.chapter.cells, source)
        order = {"source": str(source), "target": str(job.partial), "cwd": str(job.chapter.source.parent)}
        script = Path(__file__).with_name("engine.py")
        with self.log.open("w", encoding="utf-8") as log:
            self.leash = Leash(
                f"{script}:chapter",
                {**order, "parameters": job.parameters},
                environment={**os.environ, **ENVIRONMENT, "ISONB_CORES": str(cores)},
                locks=[lock],
                stdout=log,
                stderr=log,
            )
        self.child = self.leash.process

    def end(self) -> None:
        """End it wherever it is, and keep nothing of it."""
        self.leash.end()
        _remove_working_files(self.job)
        self.held.close()

    def done_cells(self) -> int:
        """How many code cells have run; the notebook, which can be large, is read only when it was written anew."""
        try:
            written = self.job.partial.stat().st_mtime
        except OSError:
            return self.seen[1]
        if written != self.seen[0]:
            self.seen = written, _progress(self.job.partial)
        return self.seen[1]

    def finish(self) -> None:
        """Save the outputs, or say what failed and where the partial notebook is."""
        code = self.leash.end()
        with self.held:
            self.job.seconds, self.job.ended = time.monotonic() - self.start, True
            self.job.error = self._save(code)

    def _save(self, code: int) -> str:
        """Put the outputs where they stay; what went wrong, or nothing."""
        job = self.job
        try:
            executed = nbformat.read(job.partial, as_version=4)
        except (OSError, ValueError):
            log = self.log.read_text(encoding="utf-8").strip().splitlines()
            return f"{job.chapter.name} didn't start:\n" + "\n".join(log[-SHOWN_LINES:])
        done = [cell.metadata.get("papermill", {}).get("status") == "completed" for cell in code_cells(executed)]
        if code != 0 or not all(done):
            return _failure(job, executed)
        clean = job.chapter.fresh()
        outputs, stderr = harvest(executed, job.book.root, self.leash.folder)
        graft(clean, outputs)
        clean.metadata["isonb_run"] = run_record(
            job.seconds, job.parameters, job.key, executed.metadata.get("isonb_peak_mib")
        )
        _keep_stderr(job, stderr)
        update(job.cached, nbformat.writes(clean) + "\n")
        _remove_working_files(job)
        return ""


def _remove_working_files(job: Job) -> None:
    """Remove what runs of this chapter have left, with whatever key; its lock must be held."""
    for path in job.partial.parent.glob(f"{job.chapter.slug}-{'[0-9a-f]' * len(job.key)}.*"):
        if path.name.startswith(job.partial.stem) or free(job.lock.with_name(f"{path.name.split('.')[0]}.lock")):
            path.unlink(missing_ok=True)


def _keep_stderr(job: Job, stderr: str) -> None:
    said = job.cached.with_name(f"{job.chapter.slug}.stderr.txt")
    said.unlink(missing_ok=True)
    if stderr.strip():
        update(said, stderr)


def _failure(job: Job, executed: Any) -> str:
    """The cell that failed, its error, and where to look."""
    for number, cell in enumerate(code_cells(executed), start=1):
        for output in cell.outputs:
            if output.output_type == "error" and "raises-exception" not in cell.metadata.get("tags", []):
                code = cell.source.strip().splitlines()
                shown = "\n".join(f"    {line}" for line in code[:SHOWN_LINES]) + (
                    "\n    ..." * (len(code) > SHOWN_LINES)
                )
                return (
                    f"{job.chapter.name}: code cell {number} failed with {output.ename}: {output.evalue}\n{shown}\n"
                    f"  The notebook up to there: {job.partial}"
                )
    log = job.partial.with_suffix(".log").read_text(encoding="utf-8").strip().splitlines()
    return f"{job.chapter.name} failed outside its cells: {log[-1] if log else 'no message'}\n  Notebook: {job.partial}"


@contextlib.contextmanager
def _ending(running: list[_Process]) -> Iterator[list[_Process]]:
    """End what still runs when this block is left early."""
    try:
        yield running
    finally:
        for process in running:
            process.end()


@contextlib.contextmanager
def _bar(jobs: Sequence[Job], progress: bool) -> Iterator[Any]:
    from tqdm import tqdm

    total = sum(len(job.chapter.code) for job in jobs)
    name = f"{len(jobs)} chapter{'s' * (len(jobs) != 1)}"
    pace = 0.5 if sys.stderr.isatty() else 20.0  # a log file needs a line now and then, not an animation
    with tqdm(total=total, desc=f"Running {name}", unit="cell", disable=not progress, mininterval=pace) as bar:
        yield bar


def _done_cells(jobs: Sequence[Job], running: Sequence[_Process]) -> int:
    ended = sum(len(job.chapter.code) for job in jobs if job.ended)
    return ended + sum(process.done_cells() for process in running)


def _progress(partial: Path) -> int:
    """How many code cells of a notebook that is being written have run (0 while it can't be read)."""
    try:
        cells = json.loads(partial.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return 0
    code = (cell["metadata"] for cell in cells if cell["cell_type"] == "code")
    return sum(metadata.get("papermill", {}).get("status") == "completed" for metadata in code)


def clean_build(book: Book) -> None:
    """Remove everything built and every generated notebook; :class:`ChapterError` while a process builds."""
    busy = sorted(path.stem for path in (book.build / "locks").glob("*.lock") if not free(path))
    if busy:
        raise ChapterError(f"nothing may be at work in {book.build}; a process runs {', '.join(busy)}. Stop it first.")
    shutil.rmtree(book.build, ignore_errors=True)
    for chapter in book.chapters:
        chapter.notebook.unlink(missing_ok=True)


def parameter_text(parameters: Mapping[str, Value], chapter: Chapter) -> str:
    """The line under the parameters cell of a run with other values than the defaults."""
    defaults = {parameter.name: parameter.default for parameter in chapter.parameters}
    changed = [f"{name} = {value!r} (default {defaults[name]!r})" for name, value in parameters.items()]
    return f"This page was run with {', '.join(changed)}.\n" if changed else ""
