"""Both tree algorithms against each other, and the distances they work on where float arithmetic is hard."""

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from support import (
    assert_same,
    normal,
    some_mask,
)
from torch import Tensor

from isonb import trees
from isonb.distances import by_differences, edge_lengths, squared_distances
from isonb.homology import h0_barcode


def both(x: Tensor, real: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The edges of one batch by Prim and by Boruvka."""
    return trees._by_prim(x, real), trees._boruvka(trees._weights(x, real))


@pytest.mark.parametrize("n", [2, 3, 5, 16, 17, 64, 65])
@pytest.mark.parametrize("kind", ["normal", "grid", "equal"])
def test_prim_and_boruvka_build_trees_of_the_same_lengths(n, kind):
    x = normal(6, n, 3, seed=n)
    x = {"normal": x, "grid": x.round(), "equal": torch.ones_like(x)}[kind]
    prim, boruvka = both(x)
    for edges in (prim, boruvka):
        for tree in edges.numpy():
            graph = np.zeros((n, n))
            graph[tree[:, 0], tree[:, 1]] = 1
            assert connected_components(graph, directed=False)[0] == 1
    assert_same(edge_lengths(x, boruvka).sort(-1).values, edge_lengths(x, prim).sort(-1).values, rtol=0, atol=0)


def test_prim_and_boruvka_keep_masked_rows_out_of_the_tree():
    x, real = normal(8, 33, 3).mul(2).round(), some_mask(8, 33, keep=2)
    prim, boruvka = both(x, real)
    for edges in (prim, boruvka):
        inner = real.gather(1, edges.flatten(1)).view(edges.shape).all(-1)
        assert torch.equal(inner.sum(1), real.sum(1) - 1)
    lengths = [edge_lengths(x, e)[real.gather(1, e.flatten(1)).view(e.shape).all(-1)] for e in (prim, boruvka)]
    assert_same(lengths[0].sum(), lengths[1].sum())


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e18])
def test_lengths_neither_overflow_nor_vanish(scale):
    x = normal(40, 60, dtype=torch.float32)
    assert_same(h0_barcode(x * scale) / scale, h0_barcode(x), rtol=1e-5, atol=0)


def hard_clouds() -> dict[str, Tensor]:
    x = normal(120, 50)
    tight = torch.cat([x[:60] * 1e-3, x[60:] * 1e-3 + 1.0])
    return {
        "offset": x + 1e4,
        "far point": torch.cat([torch.full((1, 50), 1e4), x]),
        "tight clusters": tight,
        "copies": torch.cat([x, x[:30]]),
    }


@pytest.mark.parametrize("kind", ["offset", "far point", "tight clusters", "copies"])
def test_float32_products_choose_the_right_tree(kind):
    """The value on float32 points equals that on the same points in float64, where distances resolve everything."""
    x = hard_clouds()[kind].float()
    assert not by_differences(x)
    got, want = h0_barcode(x), h0_barcode(x.double())
    assert_same(got, want, rtol=1e-3, atol=0, dtype=False)
    assert int((got == 0).sum()) == (30 if kind == "copies" else 0)


@pytest.mark.parametrize("d", [3, 60])
def test_an_offset_or_a_far_first_point_changes_nothing(d):
    x = (normal(50, d) * 64).round() / 64
    assert_same(h0_barcode(x + 1e9), h0_barcode(x), rtol=1e-12)
    far = torch.cat([torch.full((1, d), 1e9, dtype=torch.float64), x])
    assert_same(h0_barcode(far)[1:], h0_barcode(x), rtol=1e-12)
    assert_same(h0_barcode(far, mask=torch.arange(51) > 0)[:-1], h0_barcode(x), rtol=1e-12)


def test_distances_by_product_and_by_difference_agree():
    for shape in ((70, 20), (3, 40, 50), (1100, 300)):
        x = normal(*shape)
        assert not by_differences(x)
        assert_same(squared_distances(x), torch.cdist(x, x).square(), rtol=1e-9, atol=1e-9)


def test_batches_of_nothing():
    assert h0_barcode(torch.ones(0, 5, 3)).shape == (0, 4)
