"""The tree algorithms against each other, and the distances they work on where float arithmetic is hard."""

import subprocess
import sys
from functools import partial
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from support import (
    assert_same,
    check_gradient,
    gradient,
    nasty,
    normal,
    some_mask,
)
from torch import Tensor

from isonb.barcodes import compiled_prim, parallel_trees, trees
from isonb.barcodes.rips import h0_barcode
from isonb.barcodes.tiled_trees import tiled_tree
from isonb.measures.neighbors import knn
from isonb.numerics import compiled, compiled_nearest, distances
from isonb.numerics.distances import by_differences, edge_lengths, localized, squared_distances

PARALLEL = {"paths": parallel_trees.by_paths, "Boruvka": parallel_trees.by_boruvka}


def in_parallel(name: str, x: Tensor, real: Tensor | None = None) -> Tensor:
    """The edges of one batch as an accelerator finds them."""
    weights = weights_of(x, real)
    return PARALLEL[name](torch.minimum(weights, weights.mT))


def weights_of(x: Tensor, real: Tensor | None) -> Tensor:
    return trees._apart(squared_distances(localized(x, real)), real)


def graph_of(edges: Tensor, n: int) -> np.ndarray:
    """Edges as a matrix of ones."""
    graph = np.zeros((n, n))
    graph[edges[:, 0], edges[:, 1]] = 1
    return graph


@pytest.mark.parametrize("name", PARALLEL)
@pytest.mark.parametrize("n", [2, 3, 5, 16, 17, 64, 65])
@pytest.mark.parametrize("kind", ["normal", "grid", "equal"])
def test_trees_in_parallel_have_the_lengths_of_prims(name, n, kind):
    x = normal(6, n, 3, seed=n)
    x = {"normal": x, "grid": x.round(), "equal": torch.ones_like(x)}[kind]
    prim, other = trees.spanning_tree(x), in_parallel(name, x)
    for edges in (prim, other):
        for tree in edges.numpy():
            assert connected_components(graph_of(tree, n), directed=False)[0] == 1
    assert_same(edge_lengths(x, other).sort(-1).values, edge_lengths(x, prim).sort(-1).values, rtol=0, atol=0)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 40), few=st.integers(1, 60), seed=st.integers(0, 99), apart=st.booleans())
def test_both_ways_in_parallel_find_one_tree_however_many_weights_are_equal(n, few, seed, apart):
    weights = torch.randint(0, few, (3, n, n), generator=torch.Generator().manual_seed(seed)).double() - 1
    weights = torch.minimum(weights, weights.mT)
    if apart:  # a row off the mask
        weights[:, 0] = weights[:, :, 0] = torch.finfo(weights.dtype).max
    found = [way(weights.clone()).aminmax(dim=-1) for way in PARALLEL.values()]
    one, other = ((ends.min * n + ends.max).sort(-1).values for ends in found)
    assert torch.equal(one, other)


@pytest.mark.parametrize("name", PARALLEL)
def test_trees_in_parallel_keep_masked_rows_out(name):
    x, real = normal(8, 33, 3).mul(2).round(), some_mask(8, 33, keep=2)
    trees_of = trees.spanning_tree(x, real), in_parallel(name, x, real)
    for edges in trees_of:
        inner = real.gather(1, edges.flatten(1)).view(edges.shape).all(-1)
        assert torch.equal(inner.sum(1), real.sum(1) - 1)
    lengths = [edge_lengths(x, e)[real.gather(1, e.flatten(1)).view(e.shape).all(-1)] for e in trees_of]
    assert_same(lengths[0].sum(), lengths[1].sum())


@pytest.mark.parametrize(("n", "name"), [(8, "by_paths"), (9, "by_boruvka")])
def test_large_clouds_go_by_boruvka(monkeypatch, n, name):
    monkeypatch.setattr(parallel_trees, "TRIPLES", 2 * 8**3)
    monkeypatch.setattr(parallel_trees, name, lambda weights: name)
    assert parallel_trees.parallel_trees(torch.ones(2, n, n)) == name


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 90),
    d=st.sampled_from([1, 3, 9, 40]),
    kind=st.sampled_from(["normal", "grid", "equal", "copies", "clusters", "offset"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    rows=st.integers(1, 100),
    seed=st.integers(0, 99),
)
def test_the_tree_of_strips_is_prims(n, d, kind, dtype, rows, seed):
    """With lists that run out and strips of any height, against Prim."""
    x = normal(n, d, seed=seed)
    spread = torch.where(torch.arange(n) < n // 2, 0.0, 1.0).unsqueeze(1)
    x = {
        "normal": x,
        "grid": x.round(),
        "equal": torch.ones_like(x),
        "copies": x[torch.arange(n) // 3],
        "clusters": 1e-3 * x + spread,
        "offset": x + 1e4,
    }[kind].to(dtype)
    with mock.patch.object(trees, "tiled_tree", partial(tiled_tree, strip=rows * n)):
        tiled, again = trees._of_strips(x), trees._of_strips(x)
    assert connected_components(graph_of(tiled, n), directed=False)[0] == 1
    assert torch.equal(tiled, again)
    numbers = [(edges.amin(-1) * n + edges.amax(-1)).sort().values for edges in (tiled, trees.spanning_tree(x))]
    assert torch.equal(*numbers)


def test_a_large_cloud_goes_by_strips_masked_rows_or_not(monkeypatch):
    x, real = normal(2, 70, 20), some_mask(2, 70, keep=2)
    want, masked = h0_barcode(x), h0_barcode(x, mask=real)
    monkeypatch.setattr(trees, "DENSE", 50)
    monkeypatch.setattr(trees, "_by_prim", None)
    assert_same(h0_barcode(x), want, rtol=0, atol=0)
    assert_same(h0_barcode(x, mask=real), masked, rtol=0, atol=0)
    one = torch.arange(70) < 1
    assert_same(trees.spanning_tree(x[0], one), torch.stack((torch.zeros(69), torch.arange(1, 70.0)), -1).long())


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
    assert_same(got, want, rtol=1e-6, atol=0, dtype=False)
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


def test_only_clouds_that_a_product_is_too_coarse_for_are_computed_in_float64(monkeypatch):
    finer = []
    plain = trees._finer
    monkeypatch.setattr(trees, "_finer", lambda x, real: finer.append(len(x)) or plain(x, real))
    x = normal(3, 40, 60, dtype=torch.float32)
    want = h0_barcode(x.double())
    for offset in (0, 10):
        assert_same(h0_barcode(x + offset), h0_barcode((x + offset).double()), rtol=1e-6, dtype=False)
    assert not finer
    far = torch.cat([x[:1] * 1e-5 + torch.arange(40).view(-1, 1) % 2, x[1:]])
    assert_same(h0_barcode(far), h0_barcode(far.double()), rtol=1e-6, dtype=False)
    assert finer[0] == 1
    finer.clear()
    assert_same(h0_barcode(x * 1e25) / 1e25, want, rtol=1e-6, dtype=False)
    assert_same(h0_barcode(x * 1e-30) / 1e-30, want, rtol=1e-6, dtype=False)
    assert finer == [3, 3]


def test_batches_of_nothing():
    assert h0_barcode(torch.ones(0, 5, 3)).shape == (0, 4)


def plain_and_compiled(x: Tensor, real: Tensor | None = None) -> list[tuple[Tensor, Tensor]]:
    """Edges and weights of one batch by the plain loop and by the compiled one."""
    weights, first = weights_of(x, real), trees._first(x, real)
    loops = compiled_prim.compiled_prim()
    assert loops is not None
    return [loops.grow(weights, first), trees._prim(weights.clone(), first)]


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(2, 70),
    d=st.sampled_from([1, 3, 9, 40]),
    kind=st.sampled_from(["normal", "grid", "equal", "copies", "clusters", "offset", "far point"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    masked=st.booleans(),
    seed=st.integers(0, 999),
)
def test_the_compiled_loop_takes_the_edges_of_the_plain_one(n, d, kind, dtype, masked, seed):
    """The same edges in the same order, ties and all."""
    x = nasty(normal(3, n, d, seed=seed), kind).to(dtype)
    real = some_mask(3, n, keep=2) if masked and n > 2 else torch.ones(3, n, dtype=torch.bool)
    (edges, lengths), (want, want_lengths) = plain_and_compiled(x, real if masked else None)
    inner = real.gather(1, want.flatten(1)).view(want.shape).all(-1)  # where a masked row hangs says nothing
    assert torch.equal(inner.sum(1), real.sum(1) - 1)
    assert torch.equal(real.gather(1, edges.flatten(1)).view(edges.shape).all(-1), inner)
    assert torch.equal(edges[inner], want[inner])
    assert torch.equal(lengths, want_lengths)


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(2, 60),
    d=st.sampled_from([2, 40]),
    kind=st.sampled_from(["normal", "grid", "equal", "copies", "clusters", "far point"]),
    masked=st.booleans(),
    seed=st.integers(0, 999),
)
def test_float32_barcodes_and_gradients_by_the_compiled_loop_equal_float64(n, d, kind, masked, seed):
    x = nasty(normal(2, n, d, seed=seed), kind).float()
    mask = some_mask(2, n, keep=2) if masked and n > 2 else None
    assert_same(h0_barcode(x, mask=mask), h0_barcode(x.double(), mask=mask), rtol=1e-6, atol=0, dtype=False)
    if kind == "normal":  # no ties: the tree is one and the same
        got, want = (gradient(lambda z: h0_barcode(z, mask=mask), points) for points in (x, x.double()))
        assert_same(got, want, rtol=1e-4, atol=1e-5, dtype=False)


def test_the_loops_are_compiled_wherever_numba_is(monkeypatch):
    assert compiled_prim.compiled_prim() is not None
    assert compiled_nearest.compiled_choice(compiled_nearest.WIDEST) is not None
    assert compiled_nearest.compiled_choice(compiled_nearest.WIDEST + 1) is None
    x, made = normal(30, 4).float(), (compiled_prim._load, compiled_nearest._load, compiled._load)
    want, neighbours = h0_barcode(x), knn(x, 3)[1]
    for load in made:
        load.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compiled_prim.compiled_prim() is None
    assert compiled_nearest.compiled_choice(1) is None
    assert torch.equal(h0_barcode(x), want)
    assert torch.equal(knn(x, 3)[1], neighbours)
    for load in made:
        load.cache_clear()


def test_the_compiled_loop_needs_no_folder_to_write_to(tmp_path):
    """Installed read-only and without a home to keep machine code in, it is compiled for the process alone."""
    script = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import torch
from isonb.barcodes import compiled_prim
weights = torch.tensor([[[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]]])
print(compiled_prim.compiled_prim().grow(weights, torch.zeros(1, dtype=torch.long))[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[[0, 1], [1, 2]]]"
    assert not list(tmp_path.iterdir())


def test_lengths_can_be_derived_twice():
    edges = torch.tensor([[0, 1], [1, 2], [0, 3], [2, 2]])
    check_gradient(lambda x: edge_lengths(x, edges)[:3].square(), normal(4, 3), twice=True)
    slope = gradient(lambda x: edge_lengths(x, edges), torch.ones(4, 3))
    assert bool((slope == 0).all())


@settings(max_examples=60, deadline=None)
@given(
    d=st.sampled_from([1, 3, 40, 770]),
    kind=st.sampled_from(["normal", "grid", "equal", "copies", "clusters", "offset", "far point"]),
    scale=st.sampled_from([1e-30, 1.0, 1e30]),
    seed=st.integers(0, 999),
)
def test_compiled_lengths_are_the_plain_ones_to_the_last_bit(d, kind, scale, seed):
    x = (nasty(normal(2, 30, d, seed=seed), kind) * scale).float()
    edges = torch.randint(0, 30, (2, 50, 2), generator=torch.Generator().manual_seed(seed))
    with mock.patch.object(distances, "compiled_lengths", return_value=None):
        plain = edge_lengths(x, edges)
    by_loop = edge_lengths(x, edges)
    assert compiled.compiled_lengths() is not None
    assert torch.equal(by_loop, plain)
    ends = [x.gather(1, edges[..., k : k + 1].expand(2, 50, d)) for k in (0, 1)]
    exact = (ends[0].double() - ends[1].double()).square().sum(-1).sqrt()
    assert_same(plain, exact, rtol=1e-7, atol=0, dtype=False)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12, 1e18])
def test_lengths_in_pieces_equal_lengths_at_once(scale, monkeypatch):
    x, edges = normal(2, 30, 5, dtype=torch.float32) * scale, torch.randint(0, 30, (2, 40, 2))
    whole, slope = edge_lengths(x, edges), gradient(lambda z: edge_lengths(z, edges), x)
    exact = edge_lengths(x.double(), edges)
    assert_same(whole, exact, rtol=1e-6, atol=0, dtype=False)
    monkeypatch.setattr(distances, "PIECE", 15)
    assert torch.equal(edge_lengths(x, edges), whole)
    assert_same(gradient(lambda z: edge_lengths(z, edges), x), slope, rtol=1e-5, atol=1e-5)
