"""What a run reads besides its settings, rows and weights, and whether a record was made of the same.

A run's id follows from its settings; its manifest holds fingerprints of the rows and the model. Settings that stay
while a file changes would meet the old record, so the fingerprints are taken again and compared: a run of other rows
or another model gets ``inputs`` in its configuration, and so an id of its own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.models.locate import fingerprint_now
from isonb.runtime.tables import SourceError
from isonb_lab.data.labelled_pairs import LabelledPairs
from isonb_lab.data.own import OwnTask
from isonb_lab.data.reader_rows import READERS, ReaderRows
from isonb_lab.data.rows import read_rows
from isonb_lab.data.sources import State, files_state, fingerprint, rows_folder, sample
from isonb_lab.data.task import Selection, Task
from isonb_lab.methods import Method
from isonb_lab.runs.manifest import Clock, manifest
from isonb_lab.runs.record import Record
from isonb_lab.runs.run_ids import canonical
from isonb_lab.runs.settings import Planned

SHORT = 8  # digits of a fingerprint in words


@dataclass(frozen=True)
class RunRows:
    """The rows that a run reads.

    ``splits``: ``train``, ``held`` (where some are held out) and ``validation``, or in similarity ``rows``. ``pairs``:
    a task and those that its method learns from before its own; ``readers``: those of other readers than its head.
    """

    splits: Mapping[str, Any]
    pairs: tuple[Task, Any] | None = None
    readers: ReaderRows | None = None

    @classmethod
    def read(cls, selections: Mapping[str, Selection], folder: Path | None, holdout: float = 0.0) -> RunRows:
        """Those of ``Planned.selections``, from a data folder or the hub; raises as ``load_task``.

        The share ``holdout`` of the training rows is held out.
        """
        rows = {name: read_rows(selection, folder) for name, selection in selections.items()}
        splits: dict[str, Any] = {name: rows[name] for name in ("train", "validation", "rows") if name in rows}
        if "train" in rows and (count := round(holdout * len(rows["train"]))) > 0:
            train = rows["train"]
            away = sorted(sample(len(train), count, selections["train"].seed + 1))
            stay = sorted({*range(len(train))} - {*away})
            splits |= {"train": train.select(stay), "held": train.select(away)}
        pairs = (selections["pairs"].task, rows["pairs"]) if "pairs" in rows else None
        return cls(splits, pairs, ReaderRows.of(rows) if READERS.keys() <= rows.keys() else None)

    def scored(self, task: Task) -> dict[str, Any]:
        """For a manifest: the metrics of ``task``, main one first, and on how many rows it is scored."""
        rows = self.splits["rows" if task.kind == "similarity" else "validation"]
        return {"metrics": list(task.metrics), "rows": len(rows)}

    def labelled_pairs(self) -> LabelledPairs | None:
        """The pairs, as methods learn from them."""
        return None if self.pairs is None else LabelledPairs.of(*self.pairs)

    def fingerprints(self) -> dict[str, str]:
        """sha256 of each part, by the names that a manifest has for them."""
        rows = {**self.splits} if self.pairs is None else {**self.splits, "pairs": self.pairs[1]}
        prints = {name: fingerprint(part) for name, part in rows.items()}
        return prints if self.readers is None else prints | {"readers": self.readers.fingerprint()}


def inputs(run: Planned, data: str | Path | None) -> dict[str, str]:
    """The fingerprints that the manifest of a run would hold, without those that can't be had from here.

    A hub that doesn't answer leaves its rows or weights out. A folder without them is an error:
    :class:`~isonb.runtime.tables.SourceError`, :class:`~isonb.models.catalogue.ModelError`.
    """
    if run.experiment == "synthetic":
        return {}
    selections = run.selections
    folder = rows_folder(selections.values(), data)
    state = files_state(selections.values(), folder)
    settings = run.settings
    prints = own_files(run.task, run.method)
    try:
        holdout = getattr(settings, "holdout", 0.0)
        prints |= _fingerprints(tuple(selections.items()), folder, holdout, state)
    except SourceError:
        if folder is not None:
            raise
    if model := fingerprint_now(settings.model):
        prints["model"] = model
    return prints


@functools.lru_cache(maxsize=128)
def _fingerprints(
    selections: tuple[tuple[str, Selection], ...], folder: Path | None, holdout: float, state: State
) -> dict[str, str]:
    """The fingerprints of the rows; ``state`` is that of the files they are read from."""
    return RunRows.read(dict(selections), folder, holdout).fingerprints()


def own_files(task: Task, method: Method) -> dict[str, str]:
    """sha256 of what a user's own task is and of the file of an own method; nothing for those of isonb."""
    prints = {"task": task.digest} if isinstance(task, OwnTask) else {}
    return prints | ({"method": method.sha256} if method.sha256 else {})


def differences(then: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """In what the fingerprints of a manifest and those of now differ, in words; empty: in nothing.

    >>> differences({"train": "a" * 64, "model": "b" * 64}, {"train": "c" * 64, "model": "b" * 64})
    'other train (aaaaaaaa then, cccccccc now)'
    """
    changed = [name for name in sorted({*then} & {*now}) if then[name] != now[name]]
    changes = [f"{name} ({str(then[name])[:SHORT]} then, {now[name][:SHORT]} now)" for name in changed]
    return f"other {', '.join(changes)}" if changes else ""


def named(prints: Mapping[str, Any]) -> str:
    """The fingerprints as the one word that a configuration holds."""
    return f"inputs-{hashlib.sha256(canonical(prints).encode()).hexdigest()[:12]}"


def recorded(
    run: Planned, data: str | Mapping[str, Any], clock: Clock, scored: Mapping[str, Any] | None = None, **values: Any
) -> Record:
    """The record of a run that ends now, of its metrics and series; ``data`` are the fingerprints of what it read.

    ``scored``: :meth:`RunRows.scored`, for the manifest: files of one's own may be gone when the run is judged.

    Raises :class:`~isonb.errors.InputError` if the run is named by other rows or weights than it has read.
    """
    if "inputs" in run.config and isinstance(data, Mapping) and run.config["inputs"] != (now := named(data)):
        fix = "They changed while it ran: start it again."
        fail(InputError, f"rows and weights must be those the run is named by, {run.config['inputs']}", now, fix)
    about = manifest(seed=run.settings.seed, data=data, clock=clock)
    about |= ({"plan": run.plan} if run.plan else {}) | ({"scored": scored} if scored else {})
    return Record(run.config, manifest=about, named=run.run_id, **values)
