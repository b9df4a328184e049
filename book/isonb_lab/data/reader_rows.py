"""What other readers of a fine-tuned model read than its own head: texts of other tasks, the same for all runs."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from isonb_lab.data.rows import load_task
from isonb_lab.data.sources import fingerprint, sample
from isonb_lab.data.tasks import Task, task_named

SEED = 43  # of the rows that are drawn
HEADS = ("sst2", "cola")  # tasks of a fresh head and of neighbours
TRAINED = 1500  # rows of them that a reader is fitted on
PAIRS, SEARCH = "stsb_test", "squad"
PARAGRAPHS = 500  # that are searched, each by one question
HEAD_SPLITS = tuple((task, split) for task in HEADS for split in ("train", "validation"))
SPLITS = (*HEAD_SPLITS, (PAIRS, "test"), (SEARCH, "validation"))


def splits_read(settings: Any, pairs: str | None = None) -> list[tuple[Task, str]]:
    """The splits that a run of these settings reads: those of its task and, where it has other readers, theirs.

    ``pairs``: the task from whose pairs its method learns first.
    """
    task, others = task_named(settings.task), SPLITS if getattr(settings, "readers", False) else ()
    if pairs is not None:
        others = (*others, (pairs, "train"))
    return [*((task, split) for split in task.used_splits), *((task_named(name), split) for name, split in others)]


def labelled_rows(task: str, split: str, data: str | Path | None) -> Any:
    """The rows of a split of one of :data:`HEADS`; raises as :func:`~isonb_lab.data.rows.load_task`, as all here."""
    return load_task(task, data, split=split, limit=TRAINED if split == "train" else None, seed=SEED)


def scored_pairs(data: str | Path | None) -> Any:
    """Pairs of sentences with human scores."""
    return load_task(PAIRS, data)


def searched(data: str | Path | None) -> tuple[list[str], list[str]]:
    """Questions, and the paragraph of each; no paragraph comes twice."""
    rows = load_task(SEARCH, data, split="validation")
    first = dict(zip(reversed(list(rows["context"])), reversed(list(rows["question"])), strict=True))
    paragraphs = [list(first)[row] for row in sample(len(first), PARAGRAPHS, SEED)]
    return [first[paragraph] for paragraph in paragraphs], paragraphs


def readers_fingerprint(data: str | Path | None) -> str:
    """sha256 of all that the readers read."""
    parts = [labelled_rows(task, split, data) for task, split in HEAD_SPLITS]
    pairs = ({"question": question, "context": other} for question, other in zip(*searched(data), strict=True))
    prints = "\n".join(map(fingerprint, [*parts, scored_pairs(data), pairs]))
    return hashlib.sha256(prints.encode()).hexdigest()
