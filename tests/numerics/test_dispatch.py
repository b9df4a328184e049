"""The way that is chosen on each side of each border; and timed, that it is never much slower than the other."""

import time
from unittest import mock

import pytest
import torch
from support import normal

from isonb.barcodes import trees
from isonb.numerics import dispatch, nearest, queries
from isonb.numerics.compiled import can_compile

pytestmark = pytest.mark.skipif(not can_compile(torch.ones(1)), reason="the ways that are compiled")

SLOWER = 1.5
K, CORPUS = 10, 10_000  # neighbours asked for, and rows that queries are asked of
BORDERS = [  # what is looked for, in how many dimensions, number of points of the border, the ways below and above
    *(("tree", d, dispatch.SUBTRACTED // d, "differences", "neighbours") for d in (12, 24, 64)),
    *(("tree", d, dispatch.FEWEST_MULTIPLIED // d, "differences", "product") for d in (128, 384)),
    ("tree", 384, dispatch.MOST_MULTIPLIED, "product", "neighbours"),
    *(("tree", d, dispatch.TREES[d], "differences", "neighbours") for d in (2, 3, 5)),
    *(("cloud", d, int((dispatch.ALL_PAIRS / d) ** 0.5), "differences", "product") for d in (16, 64, 384)),
    *(
        ("cloud", d, dispatch.BOXES[d], way, "boxes")
        for d, way in ((2, "differences"), (3, "differences"), (5, "product"))
    ),
    ("corpus", 64, dispatch.COMPARED, "differences", "product"),
    ("corpus", 3, dispatch.QUERIED, "differences", "boxes"),
]
SIDES = [
    (kind, d, *side)
    for kind, d, border, low, high in BORDERS
    for side in ((border // 2, low, high), (2 * border, high, low))
]
SIDES += [("corpus", d, 512, "product", "differences") for d in (128, 384, 768)]
sides = pytest.mark.parametrize(("kind", "d", "n", "way", "other"), SIDES)


def problem(kind, d, n):
    """How to take any way."""
    x, corpus = normal(1, n, d).float(), normal(CORPUS, d, seed=1).float()
    if kind == "tree":
        return lambda way: trees.ALGORITHMS[way](x, None)
    if kind == "corpus":
        return lambda way: queries.ALGORITHMS[way](x[0], corpus, K, 512)

    def search(way):
        with mock.patch.object(nearest, "neighbour_algorithm", return_value=way):
            return nearest.neighbours(x, K)

    return search


def spent(take, way):
    """Seconds of this process, not of others beside it."""
    start = time.process_time()
    take(way)
    return time.process_time() - start


@sides
def test_the_way_on_each_side_of_a_border(kind, d, n, way, other):
    x = torch.empty(1, n, d)
    chosen = {
        "tree": lambda: dispatch.tree_algorithm(x),
        "cloud": lambda: dispatch.neighbour_algorithm(x),
        "corpus": lambda: dispatch.query_algorithm(x[0], torch.empty(CORPUS, d), K),
    }
    assert chosen[kind]() == way


@pytest.mark.timed
@sides
def test_the_chosen_way_is_not_much_slower_than_the_other(kind, d, n, way, other):
    take = problem(kind, d, n)
    for each in (way, other):
        take(each)
    for attempt in range(3):
        turns = [(spent(take, way), spent(take, other)) for _ in range(3 + 4 * attempt)]
        ours, theirs = (min(times) for times in zip(*turns, strict=True))
        if ours < SLOWER * theirs:
            return
    pytest.fail(f"{n} x {d}: {way} {1e3 * ours:.2f} ms, {other} {1e3 * theirs:.2f} ms")
