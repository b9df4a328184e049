"""The shipped sentences: their promises."""

from collections import Counter

from isonb_lab.data import corpus


def overlap(a, b):
    first, other = ({*"".join(c.lower() if c.isalnum() else " " for c in text).split()} for text in (a, b))
    return len(first & other) / len(first | other)


def test_size_variety_and_pairs():
    every = corpus.sentences()
    result = {s.id: s for s in every}
    lengths = [len(s.text.split()) for s in every]
    assert len(result) == len({s.text for s in every}) == len(every) == 310
    assert min(lengths) == 3
    assert 40 <= max(lengths) <= 50
    assert len({s.register for s in every}) >= 5
    topics = Counter(s.topic for s in every)
    assert corpus.topics() == sorted(topics)
    assert len(topics) >= 8
    assert min(topics.values()) >= 25
    pairs = [(s, result[s.paraphrase_of]) for s in every if s.paraphrase_of]
    misses = [(s, result[s.near_miss_of]) for s in every if s.near_miss_of]
    assert (len(pairs) >= 38, len(misses) >= 14) == (True, True)
    assert all(a.topic == b.topic for a, b in pairs + misses)
    close, far = (sorted(overlap(a.text, b.text) for a, b in some) for some in (misses, pairs))
    assert close[len(close) // 2] > 0.5 > far[len(far) // 2]  # word overlap can't tell the two kinds of pair apart
