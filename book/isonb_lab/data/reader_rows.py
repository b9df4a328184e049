"""What other readers of a fine-tuned model read than its own head: texts of other tasks, the same for all runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isonb_lab.data.rows import read_rows
from isonb_lab.data.sources import fingerprint, sample
from isonb_lab.data.tasks import TASKS

SEED = 43  # of the rows that are drawn
HEADS = ("sst2", "cola")  # tasks of a fresh head and of neighbours
TRAINED = 1500  # rows of them that a reader is fitted on
PAIRS, SEARCH = "stsb_test", "squad"
PARAGRAPHS = 500  # that are searched, each by one question
HEAD_SPLITS = tuple((task, split) for task in HEADS for split in ("train", "validation"))
SPLITS = (*HEAD_SPLITS, (PAIRS, "test"), (SEARCH, "validation"))


@dataclass(frozen=True)
class ReaderRows:
    """The rows of :data:`SPLITS`: those of heads by task and split, scored pairs of sentences, and what is searched.

    Each of the ``questions`` has its place's paragraph; no paragraph comes twice.
    """

    heads: Mapping[tuple[str, str], Any]
    pairs: Any
    questions: list[str]
    paragraphs: list[str]

    @classmethod
    def read(cls, folder: Path | None) -> ReaderRows:
        """From a data folder or the hub; raises as :func:`~isonb_lab.data.rows.load_task`."""
        heads = {
            (task, split): read_rows(TASKS[task], folder, split, TRAINED if split == "train" else None, SEED)
            for task, split in HEAD_SPLITS
        }
        pairs, rows = (
            read_rows(TASKS[task], folder, split) for task, split in ((PAIRS, "test"), (SEARCH, "validation"))
        )
        first = dict(zip(reversed(list(rows["context"])), reversed(list(rows["question"])), strict=True))
        paragraphs = [list(first)[row] for row in sample(len(first), PARAGRAPHS, SEED)]
        return cls(heads, pairs, [first[paragraph] for paragraph in paragraphs], paragraphs)

    def fingerprint(self) -> str:
        """sha256 of all of them."""
        search = zip(self.questions, self.paragraphs, strict=True)
        pairs = ({"question": question, "context": paragraph} for question, paragraph in search)
        prints = "\n".join(map(fingerprint, [*self.heads.values(), self.pairs, pairs]))
        return hashlib.sha256(prints.encode()).hexdigest()
