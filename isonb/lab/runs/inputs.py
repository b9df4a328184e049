"""What a run reads besides its settings, rows and weights, and whether a record was made of the same.

A run's id follows from its settings; its manifest holds fingerprints of the rows and the model. Settings that stay
while a file changes would find the old record, so the fingerprints are taken again and compared: a run of other rows
or another model gets ``inputs`` in its configuration, and so an id of its own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isonb.lab.data import sources
from isonb.lab.data.own import OwnTask
from isonb.lab.data.rows import load_task
from isonb.lab.data.sources import SourceError, fingerprint, sample
from isonb.lab.data.tasks import FINE_TUNED, Task, task_named
from isonb.lab.encoders.catalogue import ModelError
from isonb.lab.encoders.locate import fingerprint_now, is_folder
from isonb.lab.methods import Method, method_from
from isonb.lab.runs.run_ids import canonical
from isonb.lab.runs.settings import FinetuneSettings, SimilaritySettings, settings_of

__all__ = ["differences", "inputs", "named", "own_files", "pair_rows", "split_rows"]

ROWS = ("experiment", "task", "train_examples", "eval_examples", "sample_seed", "holdout")  # what rows depend on
SHORT = 8  # digits of a fingerprint in words


def inputs(config: Mapping[str, Any], data: str | Path | None) -> dict[str, str]:
    """The fingerprints that the manifest of a run of ``config`` would hold, without those that can't be had from here.

    A hub that doesn't answer leaves its rows or weights out. A folder without them is an error:
    :class:`~isonb.lab.data.sources.SourceError`, :class:`~isonb.lab.encoders.catalogue.ModelError`.
    """
    if config["experiment"] == "synthetic":
        return {}
    task = task_named(config["task"])
    found = own_files(task, method_from(config["method"]))
    folder = sources.data_folder(data) if task.hub else None
    try:
        part = tuple((name, config[name]) for name in ROWS if name in config)
        found |= _rows(part, None if data is None else str(data), _state(task, folder))
    except SourceError:
        if folder is not None:
            raise
    try:
        found["model"] = fingerprint_now(config["model"])
    except ModelError:
        if is_folder(config["model"]):
            raise
    return found


def own_files(task: Task, method: Method) -> dict[str, str]:
    """sha256 of what a user's own task is and of the file of an own method; nothing for those of isonb."""
    found = {"task": task.digest} if isinstance(task, OwnTask) else {}
    return found | ({"method": method.sha256} if method.sha256 else {})


def split_rows(task: Task, settings: FinetuneSettings, data: str | Path | None) -> dict[str, Any]:
    """The rows of the parts ``train``, ``held`` (where some are) and ``validation``; raises as ``load_task``."""
    limits = {"train": settings.train_examples, "validation": settings.eval_examples}
    found = {
        split: load_task(task.name, data, split=split, limit=limit, seed=settings.sample_seed)
        for split, limit in limits.items()
    }
    train, held = _apart(found["train"], settings)
    return {"train": train} | ({} if held is None else {"held": held}) | {"validation": found["validation"]}


def pair_rows(settings: SimilaritySettings, data: str | Path | None) -> Any:
    """The pairs of a similarity run; raises as :func:`~isonb.lab.data.rows.load_task`."""
    return load_task(settings.task, data, limit=settings.eval_examples, seed=settings.sample_seed)


def _apart(rows: Any, settings: FinetuneSettings) -> tuple[Any, Any]:
    count = round(settings.holdout * len(rows))
    if count < 1:
        return rows, None
    away = set(sample(len(rows), count, settings.sample_seed + 1))
    return rows.select([i for i in range(len(rows)) if i not in away]), rows.select(sorted(away))


def differences(then: Mapping[str, Any], now: Mapping[str, str]) -> str:
    """In what the fingerprints of a manifest and those of now differ, in words; empty: in nothing.

    >>> differences({"train": "a" * 64, "model": "b" * 64}, {"train": "c" * 64, "model": "b" * 64})
    'other train (aaaaaaaa then, cccccccc now)'
    """
    changed = [name for name in sorted({*then} & {*now}) if then[name] != now[name]]
    parts = [f"{name} ({str(then[name])[:SHORT]} then, {now[name][:SHORT]} now)" for name in changed]
    return f"other {', '.join(parts)}" if parts else ""


def named(found: Mapping[str, Any]) -> str:
    """The fingerprints as the one word that a configuration holds."""
    return f"inputs-{hashlib.sha256(canonical(found).encode()).hexdigest()[:12]}"


@functools.lru_cache(maxsize=128)
def _rows(
    part: tuple[tuple[str, Any], ...], data: str | None, state: tuple[tuple[str, int, int], ...]
) -> dict[str, str]:
    """The fingerprints of the rows; ``state`` is that of the files they are read from."""
    config = dict(part)
    if config["experiment"] == "similarity":
        return {"rows": fingerprint(pair_rows(settings_of(SimilaritySettings, config), data))}
    found = split_rows(task_named(config["task"]), settings_of(FinetuneSettings, config), data)
    return {name: fingerprint(rows) for name, rows in found.items()}


def _state(task: Task, folder: Path | None) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the files of rows: what is read again only when one of them has changed."""
    if isinstance(task, OwnTask):
        return (*task.state, (task.digest, 0, 0))
    if folder is None:
        return ()
    splits = (name for name in task.splits if name in FINE_TUNED or name == task.splits[0])
    files = [file for split in splits for file in sources.parquet_files(folder, task.folder, split)]
    return tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
