"""The shipped sentences: their promises."""

from __future__ import annotations

import pytest

from isonb.errors import InputError
from isonb.lab.data import corpus


def words(text: str) -> set[str]:
    return set("".join(c.lower() if c.isalnum() else " " for c in text).split())


def overlap(a: str, b: str) -> float:
    return len(words(a) & words(b)) / len(words(a) | words(b))


def test_size_and_variety() -> None:
    found = corpus.sentences()
    lengths = [len(s.text.split()) for s in found]
    assert 300 <= len(found) <= 330
    assert min(lengths) == 3
    assert 40 <= max(lengths) <= 50
    assert len({s.register for s in found}) >= 5
    assert len(corpus.topics()) >= 8
    assert all(len(corpus.sentences(topic=t)) >= 25 for t in corpus.topics())


def test_pairs() -> None:
    found = {s.id: s for s in corpus.sentences()}
    assert len(found) == len({s.text for s in found.values()}) == len(corpus.sentences())
    assert all(s.text == s.text.strip() != "" for s in found.values())
    pairs = [(s, found[s.paraphrase_of]) for s in found.values() if s.paraphrase_of]
    misses = [(s, found[s.near_miss_of]) for s in found.values() if s.near_miss_of]
    assert len(pairs) >= 38
    assert len(misses) >= 14
    assert all(a.topic == b.topic for a, b in pairs + misses)
    assert not any(s.paraphrase_of and s.near_miss_of for s in found.values())
    close = sorted(overlap(a.text, b.text) for a, b in misses)
    far = sorted(overlap(a.text, b.text) for a, b in pairs)
    assert close[len(close) // 2] > 0.5 > far[len(far) // 2]  # word overlap can't tell the two kinds of pair apart


def test_filters_keep_the_order_and_name_what_there_is() -> None:
    law = corpus.sentences(topic="law")
    assert [s.id for s in law] == [s.id for s in corpus.sentences() if s.topic == "law"]
    both = corpus.sentences(topic="law", register="formal")
    assert both == [s for s in law if s.register == "formal"]
    assert len(both) > 3
    with pytest.raises(InputError, match=r"topic must be one of .*alchemy"):
        corpus.sentences(topic="alchemy")
