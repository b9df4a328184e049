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
from isonb.models.catalogue import ModelError
from isonb.models.locate import fingerprint_now, is_folder
from isonb.runtime.tables import SourceError
from isonb_lab.data.labelled_pairs import LabelledPairs, pairs_task
from isonb_lab.data.own import OwnTask, State
from isonb_lab.data.reader_rows import ReaderRows
from isonb_lab.data.rows import files_state, read_rows, rows_folder
from isonb_lab.data.sources import fingerprint, sample
from isonb_lab.data.tasks import Task, task_named
from isonb_lab.methods import Method
from isonb_lab.runs.manifest import Clock, manifest
from isonb_lab.runs.record import Record
from isonb_lab.runs.run_ids import canonical
from isonb_lab.runs.settings import Planned, SimilaritySettings

ROWS = ("task", "train_examples", "eval_examples", "sample_seed", "holdout", "readers")  # what rows depend on
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
    def read(cls, settings: Any, pairs: str | None, folder: Path | None) -> RunRows:
        """From a data folder or the hub, as :func:`~isonb_lab.data.rows.load_task`; ``pairs`` is the name of a task."""
        task, seed = task_named(settings.task), settings.sample_seed
        learned = None
        if pairs is not None:
            learned = pairs_task(pairs), read_rows(pairs_task(pairs), folder, "train")
        if isinstance(settings, SimilaritySettings):
            return cls({"rows": read_rows(task, folder, task.splits[0], settings.eval_examples, seed)}, learned)
        train = read_rows(task, folder, "train", settings.train_examples, seed)
        splits = {"train": train, "validation": read_rows(task, folder, "validation", settings.eval_examples, seed)}
        if (count := round(settings.holdout * len(train))) > 0:
            away = sorted(sample(len(train), count, seed + 1))
            splits["train"] = train.select(sorted({*range(len(train))} - {*away}))
            splits["held"] = train.select(away)
        return cls(splits, learned, ReaderRows.read(folder) if settings.readers else None)

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
    splits, settings = run.splits, run.settings
    folder = rows_folder(splits, data)
    prints = own_files(run.task, run.method)
    try:
        alone = type(settings)(**{name: getattr(settings, name) for name in ROWS if hasattr(settings, name)})
        prints |= _fingerprints(alone, run.method.pairs_task, folder, files_state(splits, folder))
    except SourceError:
        if folder is not None:
            raise
    try:
        prints["model"] = fingerprint_now(settings.model)
    except ModelError:
        if is_folder(settings.model):
            raise
    return prints


@functools.lru_cache(maxsize=128)
def _fingerprints(settings: Any, pairs: str | None, folder: Path | None, state: State) -> dict[str, str]:
    """The fingerprints of the rows; ``state`` is that of the files they are read from."""
    return RunRows.read(settings, pairs, folder).fingerprints()


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


def recorded(run: Planned, data: str | Mapping[str, Any], clock: Clock, **values: Any) -> Record:
    """The record of a run that ends now, of its metrics and series; ``data`` are the fingerprints of what it read.

    Raises :class:`~isonb.errors.InputError` if the run is named by other rows or weights than it has read.
    """
    if "inputs" in run.config and isinstance(data, Mapping) and run.config["inputs"] != (now := named(data)):
        fix = "They changed while it ran: start it again."
        fail(InputError, f"rows and weights must be those the run is named by, {run.config['inputs']}", now, fix)
    about = manifest(seed=run.settings.seed, data=data, clock=clock)
    about |= {"plan": run.plan} if run.plan else {}
    return Record(run.config, manifest=about, named=run.run_id, **values)
