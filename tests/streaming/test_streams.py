"""Streaming statistics: any cut into pieces, any order of merging and any shards give what one pass gives."""

import pytest
import torch
from support import assert_same, normal, uneven

from isonb.measures.cosine import cosine_contributions, cosine_penalty, mean_cosine
from isonb.measures.isoscore import participation_ratio
from isonb.streaming.moments import Moments
from isonb.streaming.streams import Average, Skewness, UnitSums
from isonb.streaming.traces import LengthMoments

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


class Network:
    """Sums what every shard sends: the first who asks for a sum that isn't known yet waits for the next round."""

    def __init__(self):
        self.sums, self.mail = [], []

    def line(self):
        reference = iter(self.sums)

        def total(x):
            for reply in reference:
                return reply
            self.mail.append(x)
            raise InterruptedError

        return total

    def run(self, shards):
        while True:
            try:
                return [shard.reduced(self.line()) for shard in shards]
            except InterruptedError:
                for shard in shards[1:]:
                    with pytest.raises(InterruptedError):
                        shard.reduced(self.line())
                self.sums.append(torch.stack(self.mail).sum(0))
                self.mail.clear()


@pytest.mark.parametrize("name", KINDS)
def test_reducing_sums_over_shards_in_two_messages(name):
    kind, value = KINDS[name]
    shards = [kind().update(part) for part in (X[:1], X[2:9], X[9:9], torch.cat([X[1:2], X[9:]]))]
    network = Network()
    for result in network.run(shards):
        assert_same(value(result), want(name))
    assert len(network.sums) <= 2


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
