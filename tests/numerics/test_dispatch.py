"""The way that is chosen is never much slower than another: both sides of each border, timed."""

import time

import pytest
import torch
from support import normal

from isonb.barcodes.trees import ALGORITHMS
from isonb.numerics import dispatch
from isonb.numerics.compiled import can_compile

SLOWER = 1.5
BORDERS = {
    (d, n): ("differences", "neighbours")
    for d in (12, 24, 64)
    for n in (dispatch.SUBTRACTED // d // 2, dispatch.SUBTRACTED // d * 2)
}
BORDERS |= {
    (d, n): ("differences", "product")
    for d in (dispatch.MULTIPLIED, 384)
    for n in (dispatch.FEWEST_MULTIPLIED // d // 2, dispatch.FEWEST_MULTIPLIED // d * 2)
}
BORDERS |= {(384, n): ("product", "neighbours") for n in (dispatch.MOST_MULTIPLIED // 2, dispatch.MOST_MULTIPLIED * 2)}


def spent(way, x):
    """Milliseconds of this process, not of others beside it."""
    start = time.process_time()
    ALGORITHMS[way](x, None)
    return time.process_time() - start


@pytest.mark.skipif(not can_compile(torch.ones(1)), reason="the ways that are compiled")
@pytest.mark.parametrize(("d", "n"), BORDERS)
def test_the_chosen_tree_is_not_much_slower_than_the_other(d, n):
    x = normal(1, n, d).float()
    one, other = BORDERS[d, n]
    chosen = dispatch.tree_algorithm(x)
    assert chosen in (one, other)
    rest = other if chosen == one else one
    for way in (one, other):
        ALGORITHMS[way](x, None)
    for attempt in range(3):
        turns = [(spent(chosen, x), spent(rest, x)) for _ in range(3 + 4 * attempt)]
        ours, theirs = (min(times) for times in zip(*turns, strict=True))
        if ours < SLOWER * theirs:
            return
    pytest.fail(f"{n} x {d}: {chosen} {1e3 * ours:.2f} ms, {rest} {1e3 * theirs:.2f} ms")
