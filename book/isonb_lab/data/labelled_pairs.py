"""Pairs of sentences with labels, from which an encoder learns sentence vectors before its own task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isonb.errors import fail
from isonb_lab.data.rows import load_task
from isonb_lab.data.tasks import Task, TaskError, task_named

ENTAILED, CONTRADICTED = "entailment", ("contradiction", "not_entailment")


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of sentences, each with the number of its label among ``names``."""

    first: Sequence[str]
    second: Sequence[str]
    labels: Sequence[int]
    names: Sequence[str]

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


def labelled_pairs(task: str | None, data: str | Path | None) -> LabelledPairs | None:
    """The training pairs of a :func:`pairs_task`, None without one; raises as ``load_task``."""
    if task is None:
        return None
    spec, rows = pairs_task(task), load_task(task, data, split="train")
    first, second, labels = (list(rows[column]) for column in (*spec.inputs, spec.target))
    return LabelledPairs(first, second, labels, spec.labels)
