"""What the runs of a grid need from outside, and whether it is there: asked before anything is started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isonb.errors import DependencyError, InputError
from isonb.lab.data import sources
from isonb.lab.data.own import OwnTask
from isonb.lab.data.tasks import task_named
from isonb.lab.encoders.catalogue import EMBEDDED

__all__ = ["Need", "needs"]


@dataclass(frozen=True)
class Need:
    """A model or data set by name, how many runs want it, where it is, or why it can't be had."""

    kind: str
    name: str
    runs: int
    where: str
    there: bool = True


def needs(configs: Iterable[Mapping[str, Any]], data: str | Path | None = None) -> list[Need]:
    """Models, then data sets, each once, of configurations written out in full; ``data`` as in ``load_task``.

    A model on the hub costs one question and its small files; of a data set on the hub only the hub's answer is asked.
    """
    count: dict[tuple[str, str], int] = {}
    for config in configs:
        for kind, key in (("model", "model"), ("data", "task")):
            if config.get(key):
                count[kind, config[key]] = count.get((kind, config[key]), 0) + 1
    wanted = []
    for (kind, name), runs in sorted(count.items(), key=lambda item: (item[0][0] != "model", item[0][1])):
        try:
            wanted.append(Need(kind, name, runs, _model(name) if kind == "model" else _data(name, data)))
        except (InputError, DependencyError) as error:
            why = str(error).partition(f"; got {name!r}: ")
            wanted.append(Need(kind, name, runs, why[2] or why[0], there=False))
    return wanted


def _model(name: str) -> str:
    from isonb.lab.encoders.locate import find

    source = find(name)
    if name in EMBEDDED:
        return "embedded"
    if source.missing:
        return "on the hub, to be downloaded"
    return f"in {source.folder}" if source.commit is None else "in the hub's cache"


def _data(name: str, data: str | Path | None) -> str:
    task = task_named(name)
    if task.hub is None:
        return f"in {task.place}" if isinstance(task, OwnTask) else "generated"
    folder = sources.data_folder(data)
    if folder is None:
        return sources.place_on_hub(str(task.hub))
    for split in task.splits[:2]:
        sources.parquet_files(folder, task.folder, split)
    return f"in {folder / task.folder}"
