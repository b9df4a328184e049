"""Pairs of sentences with labels, from which an encoder learns sentence vectors before its own task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isonb.errors import fail
from isonb_lab.data.tasks import Task, TaskError, task_named

ENTAILED, CONTRADICTED = "entailment", ("contradiction", "not_entailment")


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of sentences, each with the number of its label among ``names``."""

    first: Sequence[str]
    second: Sequence[str]
    labels: Sequence[int]
    names: Sequence[str]

    @classmethod
    def of(cls, task: Task, rows: Any) -> LabelledPairs:
        """The rows of a :func:`pairs_task`."""
        first, second, labels = (list(rows[column]) for column in (*task.inputs, task.target))
        return cls(first, second, labels, task.labels)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def texts(self) -> list[str]:
        """Every sentence once."""
        return list(dict.fromkeys([*self.first, *self.second]))

    def triplets(self) -> list[tuple[str, str, str | None]]:
        """A sentence, one that it entails, and one that it doesn't, where the pairs have one for it.

        >>> LabelledPairs(["a", "a", "b"], ["a1", "a2", "b1"], [0, 1, 0], ["entailment", "contradiction"]).triplets()
        [('a', 'a1', 'a2'), ('b', 'b1', None)]
        """
        rows = list(zip(self.first, self.second, (self.names[label] for label in self.labels), strict=True))
        contradicted = {first: second for first, second, name in rows if name in CONTRADICTED}
        return [(first, second, contradicted.get(first)) for first, second, name in rows if name == ENTAILED]


def pairs_task(task: str) -> Task:
    """The classification task of two sentences that is called ``task``; :class:`TaskError` for any other."""
    spec = task_named(task)
    if spec.kind != "classification" or len(spec.inputs) != 2:
        fix = "Choose one of entailment or paraphrase, such as mnli or english_entailment."
        fail(TaskError, "pairs must name a classification task of two sentences", task, fix)
    return spec
