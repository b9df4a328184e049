"""Streaming statistics: any cut into pieces, any order of merging and any shards give what one pass gives."""

import itertools

import pytest
import torch
from support import assert_same, normal, some_mask, uneven

from isonb.errors import ShapeError
from isonb.measures.cosine import cosine_contributions, cosine_penalty, mean_cosine
from isonb.measures.isoscore import participation_ratio
from isonb.streaming.streams import Average, Skewness, UnitSums
from isonb.streaming.traces import LengthMoments

X = uneven(23, 5)
CUTS = [0, 1, 2, 9, 9, 23]
PIECES = [X[a:b] for a, b in itertools.pairwise(CUTS)]
KINDS = {
    "unit sums": (UnitSums, lambda s: torch.cat([s.mean_cosine[None], s.penalty[None], s.contributions])),
    "lengths": (LengthMoments, lambda s: s.participation_ratio),
    "skewness": (Skewness, lambda s: s.value),
    "average": (Average, lambda s: s.value),
}


def want(name):
    if name == "unit sums":
        return torch.cat([mean_cosine(X)[None], cosine_penalty(X)[None], cosine_contributions(X)])
    if name == "lengths":
        return participation_ratio(X, unbiased=True)
    gap = X.flatten() - X.mean()
    return (gap**3).mean() / (gap**2).mean() ** 1.5 if name == "skewness" else X.mean()


@pytest.mark.parametrize("name", KINDS)
def test_pieces_give_the_whole(name):
    kind, value = KINDS[name]
    summary = kind()
    for piece in PIECES:
        assert summary.update(piece) is summary
    assert_same(value(summary), want(name))


@pytest.mark.parametrize("name", KINDS)
def test_merging_in_any_order(name):
    kind, value = KINDS[name]
    parts = [kind().update(piece) for piece in PIECES if len(piece)]
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        total = kind.from_state(*parts[order[0]].state_tensors())
        before = [parts[i].state_tensors() for i in order[1:]]
        for i in order[1:]:
            total.merge(parts[i])
        assert_same(value(total), want(name))
        assert_same(tuple(parts[i].state_tensors() for i in order[1:]), tuple(before))


class Network:
    """Sums what every shard sends: the first who asks for a sum that isn't known yet waits for the next round."""

    def __init__(self):
        self.sums, self.mail = [], []

    def line(self):
        known = iter(self.sums)

        def total(x):
            for reply in known:
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


def test_masked_rows_change_nothing():
    mask = some_mask(23)
    noisy = torch.where(mask[:, None], X, float("nan"))
    for kind, value in (KINDS["unit sums"], KINDS["lengths"]):
        assert_same(value(kind().update(noisy, mask)), value(kind().update(X[mask])))


def test_far_from_the_origin_in_float32():
    x = normal(500, 8, dtype=torch.float32) + 1000
    stream = LengthMoments()
    for piece in x.split(37):
        stream.update(piece)
    want = participation_ratio(x.double(), unbiased=True)
    assert_same(stream.participation_ratio, want, rtol=1e-6)


def test_published_value_of_eight_points():
    x = torch.tensor([[3.0, 0, 0], [-3, 0, 1], [0, 2, 0], [0, -2, -1], [1, 1, 1], [-1, -1, -1], [2, 1, 0], [-2, -1, 0]])
    assert LengthMoments().update(x).participation_ratio.item() == pytest.approx(2.189421, abs=1e-6)


def test_zero_rows_have_no_direction():
    x = torch.cat([X, torch.zeros(2, 5, dtype=torch.float64)])
    sums = UnitSums().update(x)
    assert_same(sums.mean_cosine, mean_cosine(x))
    assert_same(sums.penalty, cosine_penalty(x))


def test_nothing_seen_is_the_limit():
    assert Average().value == 0
    assert Skewness().value == 0
    assert Skewness().update(torch.ones(3)).value == 0
    assert UnitSums(3).mean_cosine == 0


def test_another_dimension_is_refused():
    with pytest.raises(ShapeError, match="points must have 5 dimensions as before; got 4"):
        UnitSums().update(X).update(X[:, :4])
