"""About 300 English sentences written for this project: small enough to ship, varied enough to show a cloud's shape.

Each sentence has a topic and a register. Some are near-paraphrases of another (``paraphrase_of``); some share most of
their words with another and mean something else (``near_miss_of``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from isonb.errors import InputError, fail


@dataclass(frozen=True)
class Sentence:
    """One sentence. ``paraphrase_of`` and ``near_miss_of`` hold the id of the sentence it is paired with, or None."""

    id: str
    text: str
    topic: str
    register: str
    paraphrase_of: str | None = None
    near_miss_of: str | None = None


def sentences(topic: str | None = None, register: str | None = None) -> list[Sentence]:
    """The sentences of one topic and register (None: all), always in the order of the file.

    Raises :class:`~isonb.errors.InputError` for a topic or register that no sentence has.

    >>> len(sentences()) >= 300, sorted({s.topic for s in sentences("law")})
    (True, ['law'])
    """
    lines = Path(__file__).with_name("sentences.jsonl").read_text(encoding="utf-8").splitlines()
    every = [Sentence(**json.loads(line)) for line in lines]
    for name, choice in (("topic", topic), ("register", register)):
        choices = sorted({getattr(sentence, name) for sentence in every})
        if choice is not None and choice not in choices:
            fail(InputError, f"{name} must be one of {', '.join(choices)}", repr(choice), "Leave it out for all.")
    return [s for s in every if topic in (None, s.topic) and register in (None, s.register)]


def topics() -> list[str]:
    """The topics present, sorted."""
    return sorted({s.topic for s in sentences()})
