"""What a run leaves beside its record and its notebook, and who puts that away when the sweep that ran it was killed.

A folder of checkpoints is kept until its run is complete, a notebook has another name while it runs, and so has a
record while it is written. Whoever is at a run holds its lock; what lies under a free lock belongs to nobody.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from isonb.lab.runs.record import RecordError, read_record
from isonb.lab.sweeps.child import unfinished
from isonb.runtime.locks import held

__all__ = ["put_away", "tidy"]


def tidy(out: Path) -> None:
    """Put away what killed sweeps have left in ``out``; runs that others are at are left alone."""
    torn = {path: path.name[1:].partition(".json.")[0] for path in (out / "records").glob(".*.json.*.part")}
    parts = (path.name[1:].removesuffix(".part.ipynb") for path in (out / "notebooks").glob(".*.part.ipynb"))
    folders = (path.name for path in (out / "work").glob("*"))
    for name in {*torn.values(), *parts, *folders}:
        with contextlib.suppress(OSError), held([out / "locks" / f"{name}.lock"], wait=False) as lock:
            if lock is not None:
                for path in (path for path, run in torn.items() if run == name):
                    path.unlink()
                put_away(out, name)


def put_away(out: Path, name: str, *, ended: bool = False) -> None:
    """Remove what the run ``name`` no longer needs; for those alone who hold its lock.

    With a complete record the checkpoints go, and the notebook gets its name however far it came. Without one the
    checkpoints stay for the next attempt, and the notebook is kept if the run has ``ended`` by itself.
    """
    notebook = out / "notebooks" / f"{name}.ipynb"
    part, complete = unfinished(notebook), _complete(out / "records" / f"{name}.json", name)
    if part.is_file() and (complete or ended):
        os.replace(part, notebook)
    part.unlink(missing_ok=True)
    if complete:
        shutil.rmtree(out / "work" / name, ignore_errors=True)


def _complete(path: Path, name: str) -> bool:
    with contextlib.suppress(RecordError):
        record = read_record(path)
        return record.run_id == name and record.status == "complete"
    return False
