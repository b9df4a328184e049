"""How many rows a task has, and how long they are."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files

from isonb.errors import InputError
from isonb.lab.data import own

__all__ = ["TaskSize", "task_size"]


@dataclass(frozen=True)
class TaskSize:
    """Rows of the training and of the evaluation split, and a row's mean tokens: both sentences of a pair together.

    In similarity a sentence's. Counted by minilm's tokenizer.
    """

    train: int
    evaluation: int
    tokens: float


@functools.cache
def _sizes() -> dict[str, TaskSize]:
    with (files("isonb.lab.data") / "task_sizes.csv").open(encoding="utf-8") as file:
        return {
            row["task"]: TaskSize(int(row["train"]), int(row["evaluation"]), float(row["tokens"]))
            for row in csv.DictReader(file)
        }


def task_size(name: str) -> TaskSize:
    """The size of a task. One's own data are counted, their tokens guessed from their letters.

    A task that was added later, or whose files are gone, is taken for 10,000 rows of 30 tokens, 1,000 to evaluate.

    >>> task_size("cola").evaluation
    1043
    """
    if name in _sizes() or not own.is_own(name):
        return _sizes().get(name, UNKNOWN)
    try:
        return _counted(own.own_task(name))
    except InputError:
        return UNKNOWN


UNKNOWN = TaskSize(10_000, 1000, 30.0)
LETTERS = 4.5  # a token of English


def _counted(task: own.OwnTask) -> TaskSize:
    counts = {split: len(table) for split, table in task.tables.items()}
    table = task.tables[task.splits[-1]]
    letters = sum(len(text) for column in task.inputs for text in table[column].to_pylist()) / len(table)
    tokens = letters / LETTERS / (2 if task.kind == "similarity" else 1) + 2
    return TaskSize(counts.get("train", 0), counts[task.splits[-1]], tokens)
