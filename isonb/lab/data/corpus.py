"""About 300 English sentences written for this project: small enough to ship, varied enough to show a cloud's shape.

Each sentence has a topic and a register. Some are near-paraphrases of another (``paraphrase_of``); some share most of
their words with another and mean something else (``near_miss_of``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from isonb.errors import InputError

__all__ = ["CorpusError", "Sentence", "read", "registers", "sentences", "topics"]


class CorpusError(InputError):
    """A damaged corpus file, or a topic or register that it doesn't hold."""


@dataclass(frozen=True)
class Sentence:
    """One sentence. ``paraphrase_of`` and ``near_miss_of`` hold the id of the sentence it is paired with, or None."""

    id: str
    text: str
    topic: str
    register: str
    paraphrase_of: str | None = None
    near_miss_of: str | None = None


REQUIRED = ("id", "text", "topic", "register")
LINKS = ("paraphrase_of", "near_miss_of")


def sentences(topic: str | None = None, register: str | None = None) -> list[Sentence]:
    """The sentences of one topic and register (None: all), always in the order of the file.

    Raises :class:`CorpusError` for a topic or register that no sentence has.

    >>> len(sentences()) >= 300, sorted({s.topic for s in sentences("law")})
    (True, ['law'])
    """
    found = read()
    for field, wanted, known in (("topic", topic, topics(found)), ("register", register, registers(found))):
        if wanted is not None and wanted not in known:
            raise CorpusError(f"{field} must be one of {', '.join(known)}; got {wanted!r}. Leave it out for all.")
    return [s for s in found if topic in (None, s.topic) and register in (None, s.register)]


def topics(found: Iterable[Sentence] | None = None) -> list[str]:
    """The topics present, sorted."""
    return sorted({s.topic for s in (read() if found is None else found)})


def registers(found: Iterable[Sentence] | None = None) -> list[str]:
    """The registers present, sorted."""
    return sorted({s.register for s in (read() if found is None else found)})


def read(path: str | Path | None = None) -> list[Sentence]:
    """Read and check a corpus file, one JSON object a line; None reads the one that ships.

    Raises :class:`CorpusError` naming the line for text that isn't JSON, missing, empty or unknown fields, an id or a
    text used twice, and a pair that points nowhere or at itself.
    """
    source = files("isonb.lab.data") / "sentences.jsonl" if path is None else Path(path)
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"the corpus must be a UTF-8 file; got {error}. Install isonb again.") from error
    found = [_parse(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    _check(found)
    return found


def _parse(line: str, number: int) -> Sentence:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"line {number} must be a JSON object; got {line[:40]!r} ({error}). Mend the line."
        ) from error
    if not isinstance(row, dict) or not set(REQUIRED) <= set(row) <= {*REQUIRED, *LINKS}:
        got = sorted(row) if isinstance(row, dict) else type(row).__name__
        raise CorpusError(f"line {number} must have {', '.join(REQUIRED)} and at most {', '.join(LINKS)}; got {got}.")
    for field, value in row.items():
        if not (isinstance(value, str) and value.strip() == value != "") and not (field in LINKS and value is None):
            raise CorpusError(
                f"line {number}: {field} must be text without outer blanks; got {value!r}. Mend the line."
            )
    return Sentence(**row)


def _check(found: list[Sentence]) -> None:
    if not found:
        raise CorpusError("the corpus must hold at least one sentence; got none. Install isonb again.")
    for field in ("id", "text"):
        values = [getattr(s, field) for s in found]
        if len(set(values)) < len(values):
            twice = next(v for i, v in enumerate(values) if v in values[:i])
            raise CorpusError(f"each {field} must be used once; got {twice!r} twice. Drop one.")
    ids = {s.id for s in found}
    for s in found:
        for field in LINKS:
            other = getattr(s, field)
            if other is not None and (other not in ids or other == s.id):
                raise CorpusError(
                    f"{field} of {s.id} must be the id of another sentence; got {other!r}. Mend the link."
                )
