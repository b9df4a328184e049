"""How many rows a task has, and how long they are."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from importlib.resources import files

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
    """The size of a task; one that was added later is taken for 10,000 rows of 30 tokens, 1,000 of them to evaluate.

    >>> task_size("cola").evaluation
    1043
    """
    return _sizes().get(name, TaskSize(10_000, 1000, 30.0))
