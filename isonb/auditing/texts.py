"""What can be seen of texts without a model: empty ones, repeats, and the same opening or ending again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from isonb.auditing.findings import Finding
from isonb.auditing.reading.rows import NAMED
from isonb.auditing.told import clipped, counted
from isonb.errors import InputError, fail

WORDS = 4  # of an opening or ending that texts may share
LETTERS = 1000  # of a token at most: what follows so many times the longest input can't be read
SHARE, LEAST = 0.05, 10  # of the texts, and how many, that share it before it is boilerplate


def check_texts(texts: Any, name: str = "texts") -> list[str]:
    """The texts as a list of strings. InputError for one string, for none, and for what is no string."""
    if texts is None or isinstance(texts, str | bytes) or not hasattr(texts, "__iter__"):
        got = "nothing" if texts is None else f"one {type(texts).__name__}"
        fail(InputError, f"{name} must be a list of strings", got, "Pass the texts that the model is used on.")
    every = list(texts)
    wrong = next((i for i, text in enumerate(every) if not isinstance(text, str)), None)
    if wrong is not None:
        got = f"{type(every[wrong]).__name__} at {wrong}"
        fail(InputError, f"{name} must be a list of strings", got, "Leave out what is missing.")
    return every


def within(texts: Sequence[str], tokens: int) -> list[str]:
    """The texts as far as a model can read them that takes so many tokens: a tokenizer needs seconds for a megabyte.

    >>> [len(text) for text in within(["short", "long " * 10**6], 256)]
    [5, 256000]
    """
    return [text[: LETTERS * tokens] for text in texts]


def distinct_rows(texts: Sequence[str]) -> list[int]:
    """The numbers of the texts that aren't empty, each text once."""
    seen: set[str] = set()
    return [i for i, text in enumerate(texts) if text.strip() and not (text in seen or seen.add(text))]  # type: ignore[func-returns-value]


def text_findings(texts: Sequence[str], kept: Sequence[int]) -> Iterator[Finding]:
    """Empty texts, repeats and boilerplate."""
    empty = [i for i, text in enumerate(texts) if not text.strip()]
    if empty:
        text = f"Empty: {counted(len(empty), 'text')} of {len(texts):,}."
        advice = "Left out here. A model gives them a vector all the same, and they match each other."
        yield Finding("empty texts", "fault", text, advice, rows=tuple(empty[:NAMED]))
    repeats = len(texts) - len(empty) - len(kept)
    if repeats:
        often = [(text, count) for text, count in Counter(texts).most_common(NAMED + 1) if count > 1 and text.strip()]
        severity = "warning" if repeats > len(texts) / 100 else "note"
        said = f"Repeats of an earlier text: {counted(repeats, 'text')} ({repeats / len(texts):.1%})."
        examples = tuple(f"{clipped(text)}, {count:,} times" for text, count in often[:NAMED])
        rows = _later(texts, set(kept))
        yield Finding("duplicate texts", severity, said, "Left out here. Drop them.", rows=rows, examples=examples)
    yield from _boilerplate([texts[i] for i in kept])


def _later(texts: Sequence[str], kept: set[int]) -> tuple[int, ...]:
    later = (i for i, text in enumerate(texts) if i not in kept and text.strip())
    return tuple(row for row, _ in zip(later, range(NAMED), strict=False))


def _boilerplate(texts: Sequence[str]) -> Iterator[Finding]:
    for side, cut in (("open", slice(None, WORDS)), ("end", slice(-WORDS, None))):
        parts = (text.split() for text in texts)
        common = Counter(" ".join(words[cut]) for words in parts if len(words) > WORDS).most_common(3)
        often = [(part, count) for part, count in common if count >= max(LEAST, SHARE * len(texts))]
        if often:
            share = often[0][1] / len(texts)
            said = f"Boilerplate: {share:.0%} of the texts {side} with the same {WORDS} words."
            advice = "Cut it off before you encode: it makes texts alike that aren't."
            examples = tuple(f"{clipped(part)}, {count:,} texts" for part, count in often)
            yield Finding("boilerplate", "warning", said, advice, examples=examples)
