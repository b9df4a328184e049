"""What a run reads besides its settings, rows and weights, and whether a record was made of the same.

A run's id follows from its settings; its manifest holds fingerprints of the rows and the model. Settings that stay
while a file changes would meet the old record, so the fingerprints are taken again and compared: a run of other rows
or another model gets ``inputs`` in its configuration, and so an id of its own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.models.catalogue import ModelError
from isonb.models.locate import fingerprint_now, is_folder
from isonb.runtime.tables import SourceError
from isonb_lab.data import sources
from isonb_lab.data.own import OwnTask, State, file_state
from isonb_lab.data.reader_rows import readers_fingerprint, splits_read
from isonb_lab.data.rows import load_task, split_files
from isonb_lab.data.sources import fingerprint, sample
from isonb_lab.data.tasks import Task, task_named
from isonb_lab.methods import Method
from isonb_lab.runs.manifest import Clock, manifest
from isonb_lab.runs.record import Record
from isonb_lab.runs.run_ids import canonical
from isonb_lab.runs.settings import FinetuneSettings, Planned, SimilaritySettings, plan

ROWS = ("task", "train_examples", "eval_examples", "sample_seed", "holdout", "readers")  # what rows depend on
SHORT = 8  # digits of a fingerprint in words


def inputs(run: Mapping[str, Any] | Planned, data: str | Path | None) -> dict[str, str]:
    """The fingerprints that the manifest of a run would hold, without those that can't be had from here.

    A hub that doesn't answer leaves its rows or weights out. A folder without them is an error:
    :class:`~isonb.runtime.tables.SourceError`, :class:`~isonb.models.catalogue.ModelError`.
    """
    run = plan(run)
    if run.experiment == "synthetic":
        return {}
    task, settings = task_named(run.settings.task), run.settings
    splits = splits_read(settings, run.method.pairs_task)
    folder = sources.data_folder(data) if any(part.hub for part, _ in splits) else None
    prints = own_files(task, run.method)
    try:
        alone = type(settings)(**{name: getattr(settings, name) for name in ROWS if hasattr(settings, name)})
        prints |= _rows(alone, None if data is None else str(data), _state(splits, folder))
        prints |= learned_pairs(run.method, data)
    except SourceError:
        if folder is not None:
            raise
    try:
        prints["model"] = fingerprint_now(settings.model)
    except ModelError:
        if is_folder(settings.model):
            raise
    return prints


def own_files(task: Task, method: Method) -> dict[str, str]:
    """sha256 of what a user's own task is and of the file of an own method; nothing for those of isonb."""
    prints = {"task": task.digest} if isinstance(task, OwnTask) else {}
    return prints | ({"method": method.sha256} if method.sha256 else {})


def learned_pairs(method: Method, data: str | Path | None) -> dict[str, str]:
    """sha256 of the labelled pairs that a method learns from before its task, where it does."""
    pairs = method.pairs_task
    return {} if pairs is None else {"pairs": fingerprint(load_task(pairs, data, split="train"))}


def split_rows(task: Task, settings: FinetuneSettings, data: str | Path | None) -> dict[str, Any]:
    """The rows of ``train``, ``held`` (where some are held out) and ``validation``; raises as ``load_task``."""
    limits = {"train": settings.train_examples, "validation": settings.eval_examples}
    rows = {
        split: load_task(task.name, data, split=split, limit=limit, seed=settings.sample_seed)
        for split, limit in limits.items()
    }
    count = round(settings.holdout * len(rows["train"]))
    if count < 1:
        return rows
    away = sorted(sample(len(rows["train"]), count, settings.sample_seed + 1))
    remaining = sorted({*range(len(rows["train"]))} - {*away})
    return {
        "train": rows["train"].select(remaining),
        "held": rows["train"].select(away),
        "validation": rows["validation"],
    }


def pair_rows(settings: SimilaritySettings, data: str | Path | None) -> Any:
    """The pairs of a similarity run; raises as :func:`~isonb_lab.data.rows.load_task`."""
    return load_task(settings.task, data, limit=settings.eval_examples, seed=settings.sample_seed)


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


@functools.lru_cache(maxsize=128)
def _rows(settings: Any, data: str | None, state: State) -> dict[str, str]:
    """The fingerprints of the rows; ``state`` is that of the files they are read from."""
    if isinstance(settings, SimilaritySettings):
        return {"rows": fingerprint(pair_rows(settings, data))}
    rows = split_rows(task_named(settings.task), settings, data)
    prints = {name: fingerprint(split) for name, split in rows.items()}
    return prints | ({"readers": readers_fingerprint(data)} if settings.readers else {})


def _state(splits: Iterable[tuple[Task, str]], folder: Path | None) -> State:
    """Names, sizes and times of the files of rows: what is read again only when one of them has changed."""
    state: State = ()
    for task, split in splits:
        if isinstance(task, OwnTask):
            state += (*task.state, (task.digest, 0, 0))
        elif task.hub and folder is not None:
            state += file_state(split_files(task, folder, split))
    return state
