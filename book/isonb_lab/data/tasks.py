"""The tasks: what each predicts from which columns, how it is scored, how large it is, and where its rows come from.

They are data, a row each in ``tasks.csv``. The generated ones are controlled English, made once by the recipe
``book/recipes/english``: 2,000 rows to train on, 400 to validate and to test on. No verb occurs with the same
participants in two splits, so validation and test hold sentences that training never does. Labels are balanced to a
row; no row comes twice.

>>> TASKS["cola"].metrics, TASKS["mrpc"].inputs
(('matthews',), ('sentence1', 'sentence2'))
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb.options import nearest, shown
from isonb_lab.data import own
from isonb_lab.data.task import KINDS, Part, Task, TaskError, TaskSize

__all__ = ["GENERATED", "KINDS", "TASKS", "Task", "TaskError", "task_named"]
__all__ += ["task_size", "task_spelled"]

HERE = Path(__file__).parent


def _task(row: Mapping[str, str]) -> Task:
    list_columns = ("inputs", "metrics", "splits", "subsets")
    lists: dict[str, Any] = {name: tuple(row[name].split()) for name in list_columns}
    lists["labels"] = tuple(filter(None, row["labels"].split(";")))
    plain: dict[str, Any] = {name: row[name] for name in ("name", "kind", "target", "folder", "note")}
    plain |= {"hub": row["hub"] or None, "config": row["config"] or None}
    return Task(**plain, **lists, size=TaskSize(int(row["train"]), int(row["evaluation"]), float(row["tokens"])))


with (HERE / "tasks.csv").open(encoding="utf-8", newline="") as file:
    TASKS: dict[str, Task] = {row["name"]: _task(row) for row in csv.DictReader(file)}

# By task and split, where it is made of others' splits: where the hub names one otherwise, and where a score rests on
# more rows. SST-2 has 872 validation rows, which know an accuracy to 1.4 points. The sentences of SST-5's test set that
# aren't neutral are SST-2's own test set, and their labels are public. MNLI has two validation splits.
PARTS: dict[str, dict[str, tuple[Part, ...]]] = {
    "sst2_joint": {
        "train": (Part(TASKS["sst2"], "train"),),
        "validation": (Part(TASKS["sst2"], "validation"), Part(TASKS["sst5"], "test", {0: 0, 1: 0, 3: 1, 4: 1})),
    },
    "mnli": {"validation": (Part(TASKS["mnli"], "validation_matched"),)},
    "mnli_mm": {
        "train": (Part(TASKS["mnli"], "train"),),
        "validation": (Part(TASKS["mnli"], "validation_mismatched"),),
    },
}
TASKS |= {name: replace(TASKS[name], parts=parts) for name, parts in PARTS.items()}
GENERATED = {name: task for name, task in TASKS.items() if task.hub is None}


def task_named(name: str) -> Task:
    """The task called ``name``, or that of a file or folder of the user's own (:func:`isonb_lab.data.own.own_task`).

    :class:`TaskError` names the nearest one and all.
    """
    if isinstance(name, str) and name not in TASKS and own.is_own(name):
        return own.own_task(name)
    if not isinstance(name, str) or name not in TASKS:
        fix = f"{nearest(str(name).lower(), TASKS)}Tasks: {', '.join(TASKS)}; or a file of your own."
        fail(TaskError, "the task must be one of isonb's", shown(name), fix)
    return TASKS[name]


def task_spelled(name: str) -> str:
    """One spelling of a task's name: ``./my.csv`` is ``my.csv`` where that is a file, as with folders of models.

    >>> task_spelled("cola")
    'cola'
    """
    plain = name if name in TASKS or not own.is_own(name) else own.spelled(name)
    return name if plain in TASKS else plain


def task_size(name: str) -> TaskSize:
    """The size of a task; of one that isn't there (any more) 10,000 rows of 30 tokens, 1,000 to evaluate.

    >>> task_size("cola").evaluation
    1043
    """
    try:
        return task_named(name).size
    except InputError:
        return TaskSize()
