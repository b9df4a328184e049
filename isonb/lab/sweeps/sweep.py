"""A sweep: many runs, each done once, whatever happens in between. The same call goes on where the last one ended.

>>> import tempfile
>>> print(sweep([], tempfile.mkdtemp()))
0 runs: nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isonb.errors import fail
from isonb.lab.runs.run_ids import run_id
from isonb.lab.runs.settings import resolve
from isonb.lab.runs.table import scan
from isonb.lab.sweeps.dask import run_on_dask
from isonb.lab.sweeps.debris import tidy
from isonb.lab.sweeps.gpus import visible
from isonb.lab.sweeps.grids import Planned
from isonb.lab.sweeps.job import ExecuteError, known, prepare
from isonb.lab.sweeps.local import run_here
from isonb.lab.sweeps.outcomes import Outcome, Report, Status
from isonb.runtime.locks import free

__all__ = ["status", "sweep"]

Run = Mapping[str, Any] | Planned


def sweep(
    configs: Iterable[Run],
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    data: str | Path | None = None,
    timeout: float | None = None,
    experiments: str | Path | None = None,
    retry_failed: bool = False,
    progress: bool = True,
    runner: str = "",
) -> Report:
    """Do every run that has no complete record in ``out`` yet, and report on all of them in the order given.

    ``configs``: configurations, or what :func:`~isonb.lab.sweeps.grids.load_grid` gives; the same run twice is one run.
    ``workers``: runs side by side, by default one a GPU, without GPUs one. ``scheduler``: the address of a Dask
    scheduler in place of processes here, or "local" for a Dask cluster of ``workers`` processes. ``retry_failed``: run
    failed runs again too. ``data``, ``timeout`` (seconds a run), ``experiments`` and ``runner`` as for
    :func:`~isonb.lab.sweeps.job.prepare`. Every configuration is checked before the first run starts. A run that fails,
    a full disk or a lost worker leaves the other runs alone. Ctrl-C ends the sweep, not the call: the report says so.
    """
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        fail(ExecuteError, "workers must be a whole number >= 1", repr(workers), "None takes one a GPU.")
    options: dict[str, Any] = {"data": data, "timeout": timeout, "experiments": experiments, "runner": runner}
    prepared = (prepare(_config(run), out, retry_failed=retry_failed, **options) for run in configs)
    jobs = {job.run_id: job for job in prepared}
    tidy(Path(out).resolve())
    found = {name: outcome for name, job in jobs.items() if (outcome := known(job)) is not None}
    todo = [job for name, job in jobs.items() if name not in found]
    if todo:
        count = min(workers or len(visible()) or 1, len(todo))
        ended = run_here(todo, count) if scheduler is None else run_on_dask(todo, scheduler, count)
        found |= {outcome.run_id: outcome for outcome in _shown(ended, len(jobs), len(found), progress)}
    return Report([found[name] for name in jobs])


def status(out: str | Path, configs: Iterable[Run] | None = None) -> Status:
    """Where the runs of ``out`` stand; with ``configs``, those runs alone, and which are still to be done."""
    out = Path(out)
    records = scan(out / "records") if (out / "records").is_dir() else None
    planned = None if configs is None else [run_id(resolve(_config(run))) for run in configs]
    good = {} if records is None else records.records
    bad = {} if records is None else {damage.path.stem: damage.reason for damage in records.damaged}
    locks = sorted((out / "locks").glob("*.lock"))
    names = set(good) | set(bad) | {path.stem for path in locks} if planned is None else set(planned)
    complete = tuple(sorted(name for name in names & set(good) if good[name].status == "complete"))
    running = tuple(path.stem for path in locks if path.stem in names - set(complete) and not free(path))
    failed = {name: good[name].error for name in sorted(names & set(good)) if good[name].status == "failed"}
    damaged = {name: bad[name] for name in sorted(names & set(bad))}
    over = {*complete, *running, *failed, *damaged}
    return Status(complete, failed, damaged, running, tuple(n for n in dict.fromkeys(planned or ()) if n not in over))


def _config(run: Run) -> Mapping[str, Any]:
    return run.config if isinstance(run, Planned) else run


def _shown(outcomes: Iterator[Outcome], total: int, done: int, progress: bool) -> Iterator[Outcome]:
    """The outcomes, with a bar over the runs that counts those that failed."""
    from tqdm import tqdm

    failures = 0
    with tqdm(total=total, initial=done, desc="Sweep", unit="run", disable=not progress) as bar:
        for outcome in outcomes:
            failures += outcome.status in ("failed", "not recorded")
            bar.set_postfix_str(f"{failures} failed" if failures else "", refresh=False)
            bar.update(outcome.status != "stopped")
            yield outcome
