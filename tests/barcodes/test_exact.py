"""Trees and neighbours of clouds that break shortcuts, against all distances in float64, and against each other."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import python
from scipy.cluster.hierarchy import linkage
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist, squareform
from support import assert_same, gradient, nasty, normal, some_mask
from torch import Tensor

from isonb.barcodes import inputs, parallel_trees, trees
from isonb.barcodes.rips import h0_barcode
from isonb.measures.neighbors import knn
from isonb.numerics import dispatch, distances, nearest
from isonb.numerics.distances import edge_lengths, localized, squared_distances

KINDS = ("offset", "skewed", "far twins", "far clusters", "lattice", "copies", "lone", "signs")


def draw(seed: int) -> tuple[Tensor, Tensor | None]:
    """A batch of clouds in float32 or float64 and perhaps a mask: 2 to 512 points, 1 to 768 dimensions."""
    dice = np.random.default_rng(seed)
    g = torch.Generator().manual_seed(seed)
    kind, clouds = KINDS[seed % len(KINDS)], int(dice.integers(1, 4))
    n, d = int(2 ** dice.uniform(1, 9)), int(768 ** dice.uniform(0, 1))
    x = torch.randn(clouds, n, d, generator=g, dtype=torch.float64)
    two = (torch.arange(n) % 2).view(-1, 1)
    if kind == "offset":  # mean cosines up to 1 - 1e-7
        x = x * math.sqrt(10 ** dice.uniform(-7, 0)) + torch.randn(d, generator=g, dtype=torch.float64)
    elif kind == "skewed":
        x = x * torch.logspace(0, -dice.uniform(0, 6), d, dtype=torch.float64) + dice.uniform(0, 10)
    elif kind == "far twins":
        x = x[:, torch.arange(n) // 2] * 10 ** dice.uniform(-6, 0) + 100 * (torch.arange(n) // 2 % 2).view(-1, 1)
    elif kind == "far clusters":
        x = x * 10 ** dice.uniform(-6, 0) + two * 10 ** dice.uniform(0, 6)
    elif kind == "lattice":
        x = (x * dice.integers(1, 4)).round() + int(dice.integers(0, 2000))
    elif kind == "copies":
        x = x[:, torch.randint(0, max(1, n // 4), (n,), generator=g)]
    elif kind == "lone":
        x[:, -1] = 10 ** dice.uniform(1, 8)
    else:
        x = x.sign() / d**0.5
    wide = bool(dice.integers(0, 2))
    x = x * 10 ** dice.choice([0.0, dice.uniform(-30, 22), dice.uniform(-90, 90) if wide else 0.0])
    mask = some_mask(clouds, n, keep=2, seed=seed) if n > 2 and dice.integers(0, 3) == 0 else None
    return x if wide else x.float(), mask


def all_squares(x: Tensor) -> np.ndarray:
    """Squared distances of one cloud, at unit size, by differences."""
    x = x.double()
    unit = (x / 2.0 ** math.floor(math.log2(float(x.abs().max()) or 1.0))).numpy()
    return cdist(unit, unit, "sqeuclidean")


def numbers(edges: Tensor, real: Tensor | None, n: int) -> Tensor:
    """Edges between real rows as sorted numbers, the others as -1."""
    number = edges.amin(-1) * n + edges.amax(-1)
    if real is not None:
        number = torch.where(real.gather(1, edges.flatten(1)).view(edges.shape).all(-1), number, -1)
    return number.sort(-1).values


def check(seed: int) -> None:
    """The tree, its bars and their gradient, and the neighbours of one batch."""
    x, mask = draw(seed)
    n, k = x.shape[1], 3
    edges = inputs.tree_edges(x, mask)[0]
    assert torch.equal(numbers(edges, mask, n), numbers(inputs.tree_edges(x.double(), mask)[0], mask, n)), seed
    for c in range(len(x)):
        real = torch.ones(n, dtype=torch.bool) if mask is None else mask[c]
        squares, local = all_squares(x[c] * real.unsqueeze(1)), edges[c][real[edges[c]].all(-1)].numpy()
        want = linkage(squareform(squares[np.ix_(real, real)], checks=False), "single")[:, 2]
        np.testing.assert_allclose(
            np.sort(squares[local[:, 0], local[:, 1]]), want, rtol=1e-9, atol=0, err_msg=str(seed)
        )
        joined = coo_array((np.ones(len(local)), local.T), (n, n))
        assert connected_components(joined, directed=False)[0] == n - int(real.sum()) + 1, seed
        few = min(k, int(real.sum()) - 1)
        index = nearest.neighbours(x[c], few, None if mask is None else mask[c])[1][real]
        away = np.where(real[None] & ~torch.eye(n, dtype=torch.bool), squares, np.inf)[real]
        result = np.take_along_axis(away, index.numpy(), 1)
        np.testing.assert_allclose(result, np.sort(away, 1)[:, :few], rtol=1e-9, atol=0, err_msg=str(seed))
        if seed % len(KINDS) != KINDS.index("signs"):  # whose equal distances a sum rounds apart
            again = nearest.neighbours(x[c].double(), few, None if mask is None else mask[c])[1]
            assert torch.equal(index, again[real]), seed
    if x.dtype == torch.float32:
        slopes = []
        for points in (x.clone().requires_grad_(), x.double().requires_grad_()):
            slopes.append(torch.autograd.grad(h0_barcode(points, mask=mask).sum(), points)[0].double())
        assert float((slopes[0] - slopes[1]).norm()) <= 1e-5 * float(slopes[1].norm()), seed


def test_trees_and_neighbours_of_hard_clouds_are_exact():
    for seed in (*range(120), 1359):  # the last: equal lengths whose sums were taken in two orders
        check(seed)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_and_a_power_of_two_change_no_bar_and_no_neighbour(kind, compiled, monkeypatch):
    if not compiled:
        for module in (dispatch, nearest):
            monkeypatch.setattr(module, "can_compile", lambda x: False)
    x, _ = draw(KINDS.index(kind) + 8 * 12)
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(1))
    assert torch.equal(h0_barcode(x[:, order] * 8), h0_barcode(x) * 8)
    assert torch.equal(knn(x[:, order] * 8, 1)[0], knn(x, 1)[0][:, order] * 8)


@pytest.mark.parametrize("seed", [1, 4, 14])
def test_threads_change_no_edge_and_no_neighbour(seed):
    x, mask = draw(seed)
    few, threads, result = min(3, x.shape[1] - 1), torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            result.append((h0_barcode(x, return_edges=True, mask=mask), nearest.neighbours(x, few)[1]))
    finally:
        torch.set_num_threads(threads)
    ((bars, edges), index), ((bars_again, edges_again), index_again) = result
    assert torch.equal(bars, bars_again)
    assert torch.equal(edges, edges_again)
    assert torch.equal(index, index_again)


PARALLEL = {"paths": parallel_trees.by_paths, "Boruvka": parallel_trees.by_boruvka}


def in_parallel(name: str, x: Tensor, real: Tensor | None = None) -> Tensor:
    """The edges of one batch as an accelerator finds them."""
    weights = parallel_trees.mask_pairs(squared_distances(localized(x, real)), real)
    return PARALLEL[name](torch.minimum(weights, weights.mT))


@settings(max_examples=80)
@given(
    n=st.integers(2, 90),
    d=st.sampled_from([1, 3, 9, 40]),
    kind=st.sampled_from(["normal", "grid", "equal", "copies", "clusters", "far point"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    masked=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_way_names_the_same_edges_ties_and_all(n, d, kind, dtype, masked, seed):
    x = nasty(normal(2, n, d, seed=seed), kind).to(dtype)
    real = some_mask(2, n, keep=2) if masked and n > 2 else None
    named = {name: numbers(way(x, real)[0], real, n) for name, way in trees.ALGORITHMS.items()}
    for name, result in named.items():
        assert torch.equal(result, named["differences"]), name
    for name in PARALLEL if kind in ("grid", "equal") else ():
        assert torch.equal(numbers(in_parallel(name, x, real), real, n), named["differences"]), name


@settings(max_examples=60)
@given(n=st.integers(2, 40), few=st.integers(1, 60), seed=st.integers(0, 99), apart=st.booleans())
def test_both_ways_in_parallel_find_one_tree_however_many_weights_are_equal(n, few, seed, apart):
    weights = torch.randint(0, few, (3, n, n), generator=torch.Generator().manual_seed(seed)).double() - 1
    weights = torch.minimum(weights, weights.mT)
    if apart:  # a row off the mask
        weights[:, 0] = weights[:, :, 0] = torch.finfo(weights.dtype).max
    results = [way(weights.clone()).aminmax(dim=-1) for way in PARALLEL.values()]
    first, other = ((ends.min * n + ends.max).sort(-1).values for ends in results)
    assert torch.equal(first, other)


@pytest.mark.parametrize(("n", "name"), [(8, "by_paths"), (9, "by_boruvka")])
def test_large_clouds_go_by_boruvka(monkeypatch, n, name):
    monkeypatch.setattr(parallel_trees, "TRIPLES", 2 * 8**3)
    monkeypatch.setattr(parallel_trees, name, lambda weights: name)
    assert parallel_trees.parallel_trees(torch.ones(2, n, n, device="meta")) == name


def test_batches_of_nothing():
    for n, d in ((5, 3), (3000, 2), (600, 768)):  # each way
        assert h0_barcode(torch.ones(0, n, d)).shape == (0, n - 1)
        assert knn(torch.ones(0, n, d), 2)[1].shape == (0, n, 2)


def test_a_tree_needs_no_folder_to_write_to_and_no_library_of_barcodes(tmp_path):
    """Installed read-only and without a home to keep machine code in, loops are compiled for the process alone."""
    script = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import sys, torch
from isonb.barcodes.rips import h0_barcode
print(h0_barcode(torch.tensor([[0.0], [1.0], [3.0]]), return_edges=True)[1].tolist(), {"gudhi", "gph"} & {*sys.modules})
"""
    assert python("-c", script, cwd=tmp_path).strip() == "[[1, 2], [0, 1]] set()"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12, 1e18])
def test_lengths_in_pieces_equal_lengths_at_once(scale, monkeypatch):
    x, edges = normal(2, 30, 5, dtype=torch.float32) * scale, torch.randint(0, 30, (2, 40, 2))
    whole, slope = edge_lengths(x, edges), gradient(lambda z: edge_lengths(z, edges), x)
    exact = edge_lengths(x.double(), edges)
    assert_same(whole, exact, rtol=1e-6, atol=0, dtype=False)
    monkeypatch.setattr(distances, "PIECE", 15)
    assert torch.equal(edge_lengths(x, edges), whole)
    assert_same(gradient(lambda z: edge_lengths(z, edges), x), slope, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_equal_distances_given_go_by_the_edge_number_compiled_or_not(masked, monkeypatch):
    matrix = torch.randint(1, 4, (3, 40, 40), generator=torch.Generator().manual_seed(0)).double()
    matrix = torch.minimum(matrix, matrix.mT) * (1 - torch.eye(40))
    real = some_mask(3, 40, keep=2) if masked else None
    compiled_one = numbers(trees.tree_of_distances(matrix, real), real, 40)
    monkeypatch.setattr(trees, "can_compile", lambda x: False)
    assert torch.equal(numbers(trees.tree_of_distances(matrix, real), real, 40), compiled_one)
