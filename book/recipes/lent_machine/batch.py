r"""A batch: as many runs of a grid as fit some minutes, in processes that stay, packed into one file.

For a machine that is lent for a while and has little installed: torch, transformers, safetensors, pandas, scipy and
scikit-learn with what these bring. Nothing runs in a notebook. After each run all records are packed into one file (a
zip of ``records/<id>.json``), in one move, so that a batch that is cut off loses the runs that it is at and no others;
the same call goes on from that file. What a grid reads is gathered before into a file that travels with the code::

    python book/recipes/lent_machine/batch.py evidence_dose --size full --bring inputs.zip
    python book/recipes/lent_machine/batch.py evidence_dose --size full \
        --brought inputs.zip --minutes 9 --processes 12 --pack dose.zip
    python -m zipfile -e dose.zip runs/dose    # records for `isonb collect`, `isonb compare` and a recording
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from statistics import fmean
from typing import Any

from isonb.errors import InputError, fail, in_one_line
from isonb.models.catalogue import EMBEDDED, MODELS_VARIABLE, ModelError
from isonb.runtime.files import replace
from isonb.runtime.tables import SourceError
from isonb_lab.data import sources
from isonb_lab.data.own import OwnTask
from isonb_lab.data.sources import DATA_VARIABLE
from isonb_lab.runs.inputs import recorded
from isonb_lab.runs.manifest import Clock
from isonb_lab.runs.record import write_record
from isonb_lab.runs.settings import Planned
from isonb_lab.runs.table import scan
from isonb_lab.runtime.locks import file_lock
from isonb_lab.sweeps.grids import load_grid
from isonb_lab.sweeps.inline import worker_pool
from isonb_lab.sweeps.outcomes import Outcome, Report

TRAVELS = (".json", ".txt", ".model", ".jinja", ".safetensors")  # of a model's folder
LOOK_EVERY = 1.0  # seconds between two looks at the deadline


class BatchError(InputError):
    """A batch that can't begin: no minutes, a pack in use, a zip that isn't whole."""


def batch(
    runs: Iterable[Planned], pack: str | Path, *, minutes: float, processes: int = 1, data: str | None = None
) -> Report:
    """Do what fits of the runs without a complete record in ``pack``, in their order, and report on all of them.

    Args:
        runs: as :func:`~isonb_lab.sweeps.grids.load_grid` gives them.
        pack: the file of the records, made if it isn't there. Beside it, in ``<pack>.work``, lies what is being done.
        minutes: after so many the runs under way are ended, unrecorded. None is begun that would take longer than what
            is left, by the mean of those that finished.
        processes: runs side by side, on one GPU or on as many cores.
        data: as in :func:`~isonb_lab.data.rows.load_task`.

    Runs that failed before are done again, and those whose record is damaged, which is said. Raises
    :class:`BatchError` before anything starts.
    """
    deadline, pack = time.monotonic() + 60 * minutes, Path(pack).resolve()
    if not minutes > 0 or processes < 1:
        fail(BatchError, "minutes must be above 0 and processes at least 1", f"{minutes}, {processes}", "Give both.")
    runs_by_id = {run.run_id: run for run in runs}
    work = pack.with_name(f"{pack.name}.work")
    with file_lock([work.with_suffix(".lock")], wait=False) as lock:
        if lock is None:
            fail(BatchError, "one batch at a time may fill a pack", f"another at {pack}", "Wait, or name another pack.")
        records = work / "records"
        records.mkdir(parents=True, exist_ok=True)
        if pack.exists():  # beside what a killed batch had written and not yet packed
            with _opened(pack) as archive:
                for name in archive.namelist():
                    if Path(name).parent.name == "records" and not (records / Path(name).name).exists():
                        archive.extract(name, work)
        result = scan(records)
        for damage in result.damaged:
            damage.path.unlink()
            print(f"damaged   {damage.reason} Its run is done again.", flush=True)
        finished = result.complete()
        ended = {name: Outcome(name, "skipped") for name in runs_by_id if name in finished}
        todo = [run for name, run in runs_by_id.items() if name not in ended]
        scratch = work / "scratch"  # for what runs put aside, and a killed batch may have left there
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        for outcome in _done(todo, min(processes, len(todo)), deadline, (str(records), data, str(scratch))):
            ended[outcome.run_id] = outcome
            replace(pack, _packed(records))
            print(f"{len(ended)} of {len(runs_by_id)}  {outcome}", flush=True)
        replace(pack, _packed(records))
        shutil.rmtree(work)
    return Report([ended.get(name) or Outcome(name, "stopped") for name in runs_by_id])


def _done(todo: Sequence[Planned], processes: int, deadline: float, where: tuple[Any, ...]) -> Iterator[Outcome]:
    """The outcomes of the runs as they end, until the deadline; what is under way then is ended.

    A process that dies takes the others with it: the runs under way are not recorded.
    """
    waiting, took = list(todo), list[float]()
    while waiting and time.monotonic() < deadline:
        running: dict[Future[Outcome], tuple[Planned, float]] = {}
        with worker_pool(processes) as pool, contextlib.suppress(BrokenProcessPool), _ended_at_once():
            while True:
                while waiting and len(running) < processes and deadline - time.monotonic() > fmean(took or [0.0]):
                    running[pool.submit(_outcome, waiting[0], *where)] = waiting[0], time.monotonic()
                    del waiting[0]
                if not running or time.monotonic() > deadline:
                    return
                for future in wait(running, LOOK_EVERY, FIRST_COMPLETED).done:
                    outcome = future.result()
                    took.append(time.monotonic() - running.pop(future)[1])
                    yield outcome
        for run, _ in running.values():
            yield Outcome(run.run_id, "not recorded", "a process ended while it ran")


@contextlib.contextmanager
def _ended_at_once() -> Iterator[None]:
    """What processes of ours are at when the block ends is ended."""
    try:
        yield
    finally:
        for process in multiprocessing.active_children():
            process.kill()


def _outcome(run: Planned, records: str, data: str | None, scratch: str) -> Outcome:
    """Do one run, on one thread, and write its record. Rows or weights that can't be had are no result of the run."""
    import torch

    from isonb_lab.engines.experiment import run as do

    torch.set_num_threads(1)
    tempfile.tempdir = scratch
    clock, status, error = Clock(), "finished", ""
    try:
        record = do(run, data=data, progress=False)
    except (SourceError, ModelError) as missing:
        return Outcome(run.run_id, "not recorded", in_one_line(missing))
    except Exception as raised:  # of whatever library: the record tells, and the other runs go on
        status, error = "failed", f"{type(raised).__name__}: {in_one_line(raised)}"
        record = recorded(run, "", clock, status=status, error=error)
    try:
        write_record(records, record)
    except InputError as refused:
        status, error = "not recorded", in_one_line(refused)
    return Outcome(run.run_id, status, error)  # type: ignore[arg-type]


def _packed(records: Path) -> bytes:
    return _zipped({f"records/{path.name}": path for path in sorted(records.glob("*.json"))})


def _zipped(files: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in files.items():
            archive.write(file, name)
    return buffer.getvalue()


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (OSError, zipfile.BadZipFile) as error:
        fail(BatchError, "a pack must be a whole zip", f"{in_one_line(error)} for {file}", "Copy it again.")


def export_inputs(runs: Iterable[Planned], target: Path, *, data: str | None = None) -> None:
    """Gather the rows and encoders of runs in a zip, ``data/`` and ``models/`` in the hub's layouts.

    What comes with isonb isn't among them. Raises :class:`~isonb.runtime.tables.SourceError` for rows of one's own
    files and where others don't lie in a folder, and what :func:`~isonb.models.locate.find` raises.
    """
    from isonb.models.locate import find

    runs = list(runs)
    files: dict[str, Path] = {}
    for name in sorted({run.config["model"] for run in runs if "model" in run.config}):
        if name in EMBEDDED and EMBEDDED[name].package == "isonb":
            continue
        source = find(name)
        source.weights()
        place = EMBEDDED[name].hub if name in EMBEDDED else name
        below = sorted(file for file in source.folder.rglob("*") if file.suffix in TRAVELS)
        files |= {f"models/{place}/{file.relative_to(source.folder)}": file for file in below}
    read = {(rows.task.name, rows.split): rows.task for run in runs for rows in run.selections.values()}
    for (name, split), task in sorted(read.items(), key=lambda entry: entry[0]):
        if isinstance(task, OwnTask):
            fix = "Gather the other tasks, each by --only, and copy this file to the same place there."
            fail(SourceError, "rows must be those of the hub's tasks to travel", f"the task {name}", fix)
        if task.hub is None:
            continue
        if (root := sources.data_folder(data)) is None:
            got = f"those of {name} on the hub"
            fail(SourceError, "rows must lie in a folder to travel", got, "Name it by --data.")
        files |= {f"data/{file.relative_to(root)}": file for file in sources.split_files(task, split, root)}
    replace(target, _zipped(files))


def import_inputs(archive: Path) -> Path:
    """Unpack what :func:`export_inputs` made, beside it, where runs of this process find it."""
    where = archive.resolve().with_suffix("")
    with _opened(archive) as content:
        content.extractall(where)
    for variable, name in ((DATA_VARIABLE, "data"), (MODELS_VARIABLE, "models")):
        (where / name).mkdir(exist_ok=True)
        os.environ[variable] = str(where / name)
    return where


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: gather, or run. The exit code is that of a sweep: 0, 1 (failed), 130 (runs are left)."""
    parser = argparse.ArgumentParser(description="As many runs as fit, in one file.")
    parser.add_argument("grid", help="YAML file, or the name of a grid of isonb")
    parser.add_argument("--size", default="full", help="of the grid (default: full)")
    parser.add_argument("--only", default="", help="task to run alone, by name")
    parser.add_argument("--data", help="folder in the hub's layout")
    parser.add_argument("--bring", type=Path, metavar="FILE", help="gather rows and encoders there, and run nothing")
    parser.add_argument("--brought", type=Path, metavar="FILE", help="what was gathered")
    parser.add_argument("--minutes", type=float, default=0.0, help="after so many no run goes on")
    parser.add_argument("--processes", type=int, default=1, help="runs side by side (default: 1)")
    parser.add_argument("--pack", metavar="FILE", help="file of the records")
    options = parser.parse_args(argv)
    try:
        if options.brought:
            import_inputs(options.brought)
        runs = load_grid(options.grid, options.size)
        tasks = sorted({str(run.config["task"]) for run in runs if "task" in run.config})
        if options.only not in ("", *tasks):
            fail(BatchError, f"--only must be a task of the grid: {', '.join(tasks)}", options.only, "Name one.")
        runs = [run for run in runs if options.only in ("", run.config.get("task"))]
        if options.bring:
            export_inputs(runs, options.bring, data=options.data)
            print(f"{options.bring}  {options.bring.stat().st_size / 1e6:.1f} MB")
            return 0
        if not options.pack:
            fail(BatchError, "a batch needs the file of its records", "none", "Name it by --pack.")
        report = batch(runs, options.pack, minutes=options.minutes, processes=options.processes, data=options.data)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    print(report)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
