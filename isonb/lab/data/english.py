"""The generated tasks: controlled English, made once by the recipe ``book/recipes/english``, the same rows everywhere.

No verb occurs with the same participants in two splits: validation and test hold combinations of words, and so
sentences, that training never does. Labels are balanced to a row; no row comes twice.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from isonb.lab.data.task import Task

__all__ = ["SPLITS", "TASKS", "rows"]

FILE = Path(__file__).with_name("english.parquet")
SPLITS = ("train", "validation", "test")
ONE, PAIR = ("sentence",), ("sentence1", "sentence2")


def _task(
    name: str,
    inputs: tuple[str, ...],
    labels: tuple[str, ...] = (),
    metrics: tuple[str, ...] = ("accuracy",),
    target: str = "label",
    kind: str = "classification",
) -> Task:
    return Task(f"english_{name}", kind, inputs, target, metrics, SPLITS, labels=labels)


TASKS = {
    "acceptability": _task("acceptability", ONE, ("unacceptable", "acceptable"), ("matthews",)),
    "paraphrase": _task("paraphrase", PAIR, ("not_equivalent", "equivalent")),
    "entailment": _task("entailment", PAIR, ("entailment", "not_entailment")),
    "similarity": _task("similarity", PAIR, metrics=("spearman",), target="score", kind="regression"),
    "sentiment": _task("sentiment", ONE, ("negative", "positive")),
    "praise": _task("praise", ONE, ("complaint", "praise")),
    "span": _task("span", ("question", "context"), metrics=("squad_f1", "exact_match"), target="answers", kind="span"),
}
COLUMNS = {name: (*task.inputs, task.target) for name, task in TASKS.items()} | {
    "span": ("id", "title", "context", "question", "answers")
}


def rows(task: str, split: str) -> list[dict[str, Any]]:
    """The rows of a split of one of the :data:`TASKS`: 2,000 to train on, 400 to validate and to test on.

    >>> rows("sentiment", "train")[0]
    {'sentence': 'The preface proved really tiresome.', 'label': 0}
    """
    return deepcopy(_rows(task, split))


@cache  # a run reads its rows several times, and a chapter makes many runs
def _rows(task: str, split: str) -> list[dict[str, Any]]:
    filters = (pc.field("task") == task) & (pc.field("split") == split)
    found: list[dict[str, Any]] = pq.read_table(FILE, columns=list(COLUMNS[task]), filters=filters).to_pylist()
    return found
