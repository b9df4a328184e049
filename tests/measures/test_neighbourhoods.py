"""One search: what is read off it for the whole cloud and for parts of it is what the part alone reads."""

import importlib.util
import sys

import pytest
import torch
from support import assert_same, check_rejects, normal, uneven

from isonb import knn, mle_dimension, two_nn
from isonb.errors import DegenerateError, DependencyError, ShapeError
from isonb.measures.neighbourhoods import Neighbours


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["plain", "far", "tight", "copies"])
def test_a_reading_of_a_part_is_that_of_the_part_alone(kind, dtype):
    x = uneven(300, 20)
    x = {"far": x + 1e3, "tight": x * 1e-3 + 1, "copies": x[torch.arange(300) % 250]}.get(kind, x).to(dtype)
    near, draw = Neighbours(x, 6), torch.Generator().manual_seed(0)
    for share in (0.9, 0.5, 0.05):
        part = torch.rand(300, generator=draw) < share
        assert torch.equal(near.two_nn(part), two_nn(x[part]))
        assert torch.equal(near.mle_dimension(part, 5), mle_dimension(x[part], 5))
        assert torch.equal(near.within(part, 6), knn(x[part], 6)[0])
    assert torch.equal(near.two_nn(), two_nn(x))
    assert torch.equal(near.two_nn(discard=0.3), two_nn(x, 0.3))
    assert torch.equal(near.mle_dimension(), mle_dimension(x, 6))
    assert torch.equal(near.within(k=9), knn(x, 9)[0])


def test_a_star_is_a_hub():
    x = torch.cat([torch.zeros(1, 30), torch.eye(30)]).double()
    assert Neighbours(x, 3).occurrences(1).tolist() == [30, 1, *[0] * 29]
    assert int(Neighbours(x, 3).occurrences().sum()) == 31 * 3


def test_bad_parts():
    near = Neighbours(normal(20, 3), 4)
    check_rejects(near.within, ShapeError, "k must be an integer from 1 to 1", torch.arange(20) < 2, 2)
    for reading in (near.within, near.two_nn, near.mle_dimension):
        check_rejects(reading, ShapeError, "mask must have one entry a row", torch.arange(3))
        zeros_and_ones = torch.arange(20) % 3
        assert torch.equal(reading(zeros_and_ones.clamp(max=1)), reading(zeros_and_ones > 0))
    for k in (0, 5, 2.0):
        with pytest.raises(ShapeError, match="k must be an integer from 1 to the 4 neighbours found"):
            near.occurrences(k)
    check_rejects(Neighbours, ShapeError, "k must be an integer from 1 to 19", normal(20, 3), 20)
    check_rejects(Neighbours, DegenerateError, "x must be finite", normal(20, 3) / 0)


def test_the_mean_part_needs_no_second_search():
    """Of nine tenths of the points and twelve neighbours, two are there but once in 10^9."""
    x, part = normal(500, 8), torch.arange(500) % 10 != 0
    near = Neighbours(x)
    near.x = torch.full_like(x, torch.nan)  # a search would fail
    assert_same(near.within(part, 2), knn(x[part], 2)[0])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of SWIG
@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="needs faiss")
@pytest.mark.parametrize("kind", ["plain", "far", "huge", "copies"])
def test_an_approximate_search_says_how_many_it_missed(kind):
    x = normal(2000, 24)
    x = {"far": x.float() + 1e4, "huge": x * 1e160, "copies": x[torch.arange(2000) % 200]}.get(kind, x.float())
    near, (away, index) = Neighbours(x, 10, approximate=True), knn(x, 10)
    itself = torch.arange(2000).unsqueeze(1)
    assert not bool((near.indices == itself).any())
    unit = x.abs().max()
    y = x.double() / unit
    assert_same((near.distances / unit).double(), (y[near.indices] - y[itself]).norm(dim=-1), rtol=1e-6)
    found = (near.distances <= away[:, -1:] * (1 + 1e-6)).double().mean().item()
    assert near.recall == pytest.approx(found, abs=0.02)
    assert found > 0.99
    if kind != "copies":  # where ties stand in for each other
        shared = (near.indices.unsqueeze(2) == index.unsqueeze(1)).any(2)
        assert shared.double().mean().item() == pytest.approx(found, abs=1e-3)


def test_an_approximate_search_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(DependencyError, match="an approximate search needs faiss: pip install"):
        Neighbours(normal(20, 3), 4, approximate=True)
