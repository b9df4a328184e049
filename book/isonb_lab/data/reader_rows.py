"""What other readers of a fine-tuned model read than its own head: texts of other tasks, the same for all runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isonb_lab.data.sources import fingerprint, sample
from isonb_lab.data.task import Selection
from isonb_lab.data.tasks import TASKS

SEED = 43  # of the rows that are drawn
HEADS = ("sst2", "cola")  # tasks of a fresh head and of neighbours
TRAINED = 1500  # rows of them that a reader is fitted on
PAIRS, SEARCH = "stsb_test", "squad"
PARAGRAPHS = 500  # that are searched, each by one question
READERS = {
    **{
        f"reader.{task}.{split}": Selection(TASKS[task], split, TRAINED if split == "train" else None, SEED)
        for task in HEADS
        for split in ("train", "validation")
    },
    "reader.pairs": Selection(TASKS[PAIRS], "test"),
    "reader.search": Selection(TASKS[SEARCH], "validation"),
}


@dataclass(frozen=True)
class ReaderRows:
    """The rows of :data:`READERS`: those of heads by task and split, scored pairs of sentences, and what is searched.

    Each of the ``questions`` has its place's paragraph; no paragraph comes twice.
    """

    heads: Mapping[tuple[str, str], Any]
    pairs: Any
    questions: list[str]
    paragraphs: list[str]

    @classmethod
    def of(cls, rows: Mapping[str, Any]) -> ReaderRows:
        """From all that was read, by the names of :data:`READERS`."""
        heads = {(task, split): rows[f"reader.{task}.{split}"] for task in HEADS for split in ("train", "validation")}
        search = rows["reader.search"]
        first = dict(zip(reversed(list(search["context"])), reversed(list(search["question"])), strict=True))
        paragraphs = [list(first)[row] for row in sample(len(first), PARAGRAPHS, SEED)]
        return cls(heads, rows["reader.pairs"], [first[paragraph] for paragraph in paragraphs], paragraphs)

    def fingerprint(self) -> str:
        """sha256 of all of them."""
        search = zip(self.questions, self.paragraphs, strict=True)
        pairs = ({"question": question, "context": paragraph} for question, paragraph in search)
        prints = "\n".join(map(fingerprint, [*self.heads.values(), self.pairs, pairs]))
        return hashlib.sha256(prints.encode()).hexdigest()
