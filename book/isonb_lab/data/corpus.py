"""About 300 English sentences written for this project: small enough to ship, varied enough to show a cloud's shape.

Each sentence has a topic and a register. Some are near-paraphrases of another (``paraphrase_of``); some share most of
their words with another and mean something else (``near_miss_of``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sentence:
    """One sentence. ``paraphrase_of`` and ``near_miss_of`` hold the id of the sentence it is paired with, or None."""

    id: str
    text: str
    topic: str
    register: str
    paraphrase_of: str | None = None
    near_miss_of: str | None = None


def sentences() -> list[Sentence]:
    """All sentences, in the order of the file.

    >>> len(sentences())
    310
    """
    lines = Path(__file__).with_name("sentences.jsonl").read_text(encoding="utf-8").splitlines()
    return [Sentence(**json.loads(line)) for line in lines]


def topics() -> list[str]:
    """The topics present, sorted."""
    return sorted({sentence.topic for sentence in sentences()})
