"""Streaming statistics: any cut into pieces, any order of merging and any shards give what one pass gives."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from support import assert_same, check_rejects, normal, uneven

from isonb.errors import DegenerateError, ShapeError
from isonb.measures.cosine import cosine_contributions, cosine_penalty, mean_cosine
from isonb.measures.isoscore import participation_ratio
from isonb.streaming.moments import Moments
from isonb.streaming.streams import Average, Skewness, UnitSums
from isonb.streaming.traces import LengthMoments, squared_traces

X = uneven(23, 5)
KINDS = {
    "unit sums": (UnitSums, lambda s: torch.cat([s.mean_cosine[None], s.penalty[None], s.contributions])),
    "lengths": (LengthMoments, lambda s: s.participation_ratio),
    "skewness": (Skewness, lambda s: s.value),
    "average": (Average, lambda s: s.value),
    "moments": (Moments, lambda s: torch.cat([s.mean, s.cov.flatten()])),
}


def want(name):
    if name == "unit sums":
        return torch.cat([mean_cosine(X)[None], cosine_penalty(X)[None], cosine_contributions(X)])
    if name == "lengths":
        return participation_ratio(X, unbiased=True)
    if name == "moments":
        return torch.cat([X.mean(0), X.T.cov().flatten()])
    gap = X.flatten() - X.mean()
    return (gap**3).mean() / (gap**2).mean() ** 1.5 if name == "skewness" else X.mean()


def reduced(shards):
    """Each shard in a thread, where a sum waits for what the others send; the results, and the number of sums."""
    barrier, sent = threading.Barrier(len(shards), timeout=60), {}

    def reduce(shard):
        messages = itertools.count()

        def total(x):
            number = next(messages)
            sent.setdefault(number, []).append(x)
            barrier.wait()
            return torch.stack(sent[number]).sum(0)

        return shard.reduced(total)

    with ThreadPoolExecutor(len(shards)) as pool:
        return list(pool.map(reduce, shards)), len(sent)


@pytest.mark.parametrize("name", KINDS)
def test_reducing_sums_over_shards_in_two_messages(name):
    kind, value = KINDS[name]
    shards = [kind().update(part) for part in (X[:1], X[2:9], X[9:9], torch.cat([X[1:2], X[9:]]))]
    results, sums = reduced(shards)
    for result in results:
        assert_same(value(result), want(name))
    assert sums <= 2


def test_far_from_the_origin_in_float32():
    x = normal(500, 8, dtype=torch.float32) + 1000
    stream = LengthMoments()
    for piece in x.split(37):
        stream.update(piece)
    want = participation_ratio(x.double(), unbiased=True)
    assert_same(stream.participation_ratio, want, rtol=1e-6)


def test_nothing_seen_is_the_limit():
    assert Average().value == 0
    assert Skewness().value == 0
    assert Skewness().update(torch.ones(3)).value == 0
    assert UnitSums(3).mean_cosine == 0


def test_averages_over_distinct_rows() -> None:
    """Written out over all ordered quadruples of distinct rows: |a-b|^2 |c-d|^2 / 4 and ((a-b).(c-d))^2 / 4."""
    x = normal(6, 3)
    totals, squares = [], []
    for a, b, c, d in itertools.permutations(range(6), 4):
        first, second = x[a] - x[b], x[c] - x[d]
        totals.append(first.square().sum() * second.square().sum() / 4)
        squares.append((first @ second).square() / 4)
    total, square = squared_traces(x)
    torch.testing.assert_close(total, torch.stack(totals).mean(), rtol=1e-10, atol=0)
    torch.testing.assert_close(square, torch.stack(squares).mean(), rtol=1e-10, atol=0)
    check_rejects(squared_traces, ShapeError, "at least 4 points; got 3", x[:3])
    check_rejects(squared_traces, DegenerateError, "must not all be equal", torch.ones(5, 3))
