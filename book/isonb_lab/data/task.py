"""What a task is, whoever made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isonb.errors import InputError

KINDS = ("classification", "regression", "span", "similarity")
FINE_TUNED = ("train", "validation")  # the splits that fine-tuning needs, the first two of a task that has them


class TaskError(InputError):
    """A task, split, limit or seed that doesn't exist or makes no sense; nothing has been read yet."""


@dataclass(frozen=True)
class TaskSize:
    """Rows of the training and of the evaluation split, and a row's mean tokens: both sentences of a pair together.

    In similarity a sentence's. Counted by minilm's tokenizer; the defaults are for what hasn't been counted.
    """

    train: int = 10_000
    evaluation: int = 1000
    tokens: float = 30.0


@dataclass(frozen=True)
class Part:
    """A split of another task. ``labels``: what its labels are called in the whole; rows with another are left out."""

    task: Task
    split: str
    labels: Mapping[int, int] | None = None


@dataclass(frozen=True)
class Task:
    """What a task is. ``inputs`` are its text columns, ``target`` the column to predict, both named as on the hub.

    ``kind`` is classification (int target, ``labels`` by number), regression (float target), span (SQuAD answers) or
    similarity (unsupervised: cosine against a float target). The first of ``metrics`` is the main one. ``folder`` is
    the place below a data folder; ``subsets`` are those that the STS protocols average over. ``parts``: by split, the
    splits of other tasks that it is made of, one after the other. ``tables``: by split, the rows of one's own files.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    target: str
    metrics: tuple[str, ...]
    splits: tuple[str, ...]
    hub: str | None = None
    config: str | None = None
    folder: str = ""
    labels: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()
    note: str = ""
    size: TaskSize = TaskSize()
    parts: Mapping[str, tuple[Part, ...]] = field(default_factory=dict, hash=False)
    tables: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that :func:`~isonb_lab.data.rows.load_task` gives, in order."""
        extra = ("id",) if self.kind == "span" else ()
        return (*extra, *self.inputs, self.target, *(("subset",) if self.subsets else ()))

    @property
    def outputs(self) -> int:
        """Numbers a head must give: one a label, start and end of a span, or one."""
        return {"classification": len(self.labels), "span": 2}.get(self.kind, 1)


@dataclass(frozen=True)
class Selection:
    """Rows of a split: all, or so many drawn by a seed (:func:`isonb_lab.data.sources.sample`)."""

    task: Task
    split: str
    limit: int | None = None
    seed: int = 0

    def __str__(self) -> str:
        """As errors name it."""
        return f"{self.task.name}, split {self.split!r}"
