"""The way that is chosen is never much slower than another: both sides of each border, timed."""

import time
from unittest import mock

import pytest
import torch
from support import normal

from isonb.barcodes import trees
from isonb.numerics import dispatch, nearest, queries
from isonb.numerics.compiled import can_compile

SLOWER = 1.5
K = 10  # neighbours asked for


def around(border):
    return border // 2, border * 2


def pairs(d):
    """Points up to which all pairs of d coordinates are compared."""
    return int((dispatch.ALL_PAIRS / d) ** 0.5)


TREES = {(d, n): ("differences", "neighbours") for d in (12, 24, 64) for n in around(dispatch.SUBTRACTED // d)}
TREES |= {(d, n): ("differences", "product") for d in (128, 384) for n in around(dispatch.FEWEST_MULTIPLIED // d)}
TREES |= {(384, n): ("product", "neighbours") for n in around(dispatch.MOST_MULTIPLIED)}
TREES |= {(d, n): ("neighbours", "differences") for d in (2, 3, 5) for n in around(dispatch.TREES[d])}
CLOUDS = {(d, n): ("differences", "product") for d in (16, 64, 384) for n in around(pairs(d))}
CLOUDS |= {(d, 2 * dispatch.BOXES[d]): ("boxes", "product") for d in (2, 3, 5)}
CLOUDS |= {(d, dispatch.BOXES[d] // 2): ("differences", "boxes") for d in (2, 3)}
CORPUS = {(64, m): ("differences", "product") for m in around(dispatch.COMPARED)}
CORPUS |= {(d, 512): ("differences", "product") for d in (128, 192, 768, 1024)}
CORPUS |= {(3, m): ("boxes", "differences") for m in around(dispatch.QUERIED)}
BORDERS = [(kind, *key, *ways) for kind, table in (("tree", TREES), ("cloud", CLOUDS), ("corpus", CORPUS))
           for key, ways in table.items()]  # fmt: skip


def problem(kind, d, n):
    """The way that is chosen, and how to take any."""
    x = normal(1, n, d).float()
    if kind == "tree":
        return dispatch.tree_algorithm(x), lambda way: trees.ALGORITHMS[way](x, None)
    if kind == "corpus":
        corpus = normal(10_000, d, seed=1).float()
        return dispatch.query_algorithm(x[0], corpus, K), lambda way: queries.ALGORITHMS[way](x[0], corpus, K, 512)

    def search(way):
        with mock.patch.object(nearest, "neighbour_algorithm", return_value=way):
            return nearest.neighbours(x, K)

    return dispatch.neighbour_algorithm(x), search


def spent(take, way):
    """Seconds of this process, not of others beside it."""
    start = time.process_time()
    take(way)
    return time.process_time() - start


@pytest.mark.skipif(not can_compile(torch.ones(1)), reason="the ways that are compiled")
@pytest.mark.parametrize(("kind", "d", "n", "first", "other"), BORDERS)
def test_the_chosen_way_is_not_much_slower_than_the_other(kind, d, n, first, other):
    chosen, take = problem(kind, d, n)
    assert chosen in (first, other)
    rest = other if chosen == first else first
    for way in (first, other):
        take(way)
    for attempt in range(3):
        turns = [(spent(take, chosen), spent(take, rest)) for _ in range(3 + 4 * attempt)]
        ours, theirs = (min(times) for times in zip(*turns, strict=True))
        if ours < SLOWER * theirs:
            return
    pytest.fail(f"{n} x {d}: {chosen} {1e3 * ours:.2f} ms, {rest} {1e3 * theirs:.2f} ms")
