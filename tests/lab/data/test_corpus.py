"""The shipped sentences: their promises, and what a damaged file gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isonb.lab.data import corpus
from isonb.lab.data.corpus import CorpusError


def words(text: str) -> set[str]:
    return set("".join(c.lower() if c.isalnum() else " " for c in text).split())


def overlap(a: str, b: str) -> float:
    return len(words(a) & words(b)) / len(words(a) | words(b))


def test_size_and_variety() -> None:
    found = corpus.sentences()
    lengths = [len(s.text.split()) for s in found]
    assert 300 <= len(found) <= 330
    assert len(corpus.topics()) >= 8
    assert len(corpus.registers()) >= 5
    assert min(lengths) == 3
    assert 40 <= max(lengths) <= 50
    assert all(len(corpus.sentences(topic=t)) >= 25 for t in corpus.topics())
    assert sum("?" in s.text for s in found) >= 20
    assert sum("!" in s.text for s in found) >= 8
    assert sum(any(c.isdigit() for c in s.text) for s in found) >= 20


def test_pairs() -> None:
    found = {s.id: s for s in corpus.sentences()}
    pairs = [(s, found[s.paraphrase_of]) for s in found.values() if s.paraphrase_of]
    misses = [(s, found[s.near_miss_of]) for s in found.values() if s.near_miss_of]
    assert 38 <= len(pairs) <= 45
    assert 14 <= len(misses) <= 20
    assert all(a.topic == b.topic for a, b in pairs + misses)
    assert not any(s.paraphrase_of and s.near_miss_of for s in found.values())
    close = sorted(overlap(a.text, b.text) for a, b in misses)
    far = sorted(overlap(a.text, b.text) for a, b in pairs)
    assert close[len(close) // 2] > 0.5 > far[len(far) // 2]  # word overlap can't tell the two kinds of pair apart


def test_order_and_filters() -> None:
    assert corpus.sentences() == corpus.sentences()
    law = corpus.sentences(topic="law")
    assert [s.id for s in law] == [s.id for s in corpus.sentences() if s.topic == "law"]
    both = corpus.sentences(topic="law", register="formal")
    assert both == [s for s in law if s.register == "formal"]
    assert len(both) > 3


@pytest.mark.parametrize(("field", "value"), [("topic", "alchemy"), ("register", "shouted")])
def test_unknown_filter_names_the_known_ones(field: str, value: str) -> None:
    with pytest.raises(CorpusError, match=rf"{field} must be one of .*{value}"):
        corpus.sentences(**{field: value})


GOOD = {"id": "a-01", "text": "A cone.", "topic": "a", "register": "plain"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "at least one sentence"),
        (["{not json"], "line 1 must be a JSON object"),
        (["[1, 2]"], "line 1 must have id"),
        ([json.dumps({k: v for k, v in GOOD.items() if k != "topic"})], "line 1 must have id"),
        ([json.dumps(GOOD | {"mood": "glad"})], "line 1 must have id"),
        ([json.dumps(GOOD | {"text": ""})], "line 1: text must be text"),
        ([json.dumps(GOOD | {"text": " A cone."})], "without outer blanks"),
        ([json.dumps(GOOD | {"text": 3})], "line 1: text must be text"),
        ([json.dumps(GOOD), json.dumps(GOOD | {"text": "Another."})], "each id must be used once"),
        ([json.dumps(GOOD), json.dumps(GOOD | {"id": "a-02"})], "each text must be used once"),
        ([json.dumps(GOOD | {"paraphrase_of": "a-99"})], "must be the id of another sentence; got 'a-99'"),
        ([json.dumps(GOOD | {"near_miss_of": "a-01"})], "near_miss_of of a-01"),
    ],
)
def test_damaged_file(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "sentences.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(CorpusError, match=message):
        corpus.read(path)


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="UTF-8 file"):
        corpus.read(tmp_path / "missing.jsonl")
    (tmp_path / "latin.jsonl").write_bytes("café".encode("latin-1"))
    with pytest.raises(CorpusError, match="UTF-8 file"):
        corpus.read(tmp_path / "latin.jsonl")


def test_blank_lines_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "sentences.jsonl"
    path.write_text("\n" + json.dumps(GOOD) + "\n\n", encoding="utf-8")
    assert [s.id for s in corpus.read(path)] == ["a-01"]
