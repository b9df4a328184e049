"""The tree algorithms against each other, and the distances they work on where float arithmetic is hard."""

import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same, check_gradient, gradient, nasty, normal, some_mask
from torch import Tensor

from isonb.barcodes import parallel_trees, trees
from isonb.barcodes.rips import h0_barcode
from isonb.measures.neighbors import knn
from isonb.numerics import distances
from isonb.numerics.distances import edge_lengths, localized, squared_distances

PARALLEL = {"paths": parallel_trees.by_paths, "Boruvka": parallel_trees.by_boruvka}


def in_parallel(name: str, x: Tensor, real: Tensor | None = None) -> Tensor:
    """The edges of one batch as an accelerator finds them."""
    weights = parallel_trees.mask_pairs(squared_distances(localized(x, real)), real)
    return PARALLEL[name](torch.minimum(weights, weights.mT))


def numbers(edges: Tensor, real: Tensor | None, n: int) -> Tensor:
    """Edges between real rows as sorted numbers, the others as -1."""
    number = edges.amin(-1) * n + edges.amax(-1)
    if real is not None:
        number = torch.where(real.gather(1, edges.flatten(1)).view(edges.shape).all(-1), number, -1)
    return number.sort(-1).values


@settings(max_examples=80, deadline=None)
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


@settings(max_examples=60, deadline=None)
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


def test_distances_by_product_and_by_difference_agree():
    for shape in ((70, 20), (3, 40, 50), (1100, 300)):
        x = normal(*shape)
        assert_same(squared_distances(x), torch.cdist(x, x).square(), rtol=1e-9, atol=1e-9)


def test_batches_of_nothing():
    for n, d in ((5, 3), (3000, 2), (600, 768)):  # each way
        assert h0_barcode(torch.ones(0, n, d)).shape == (0, n - 1)
        assert knn(torch.ones(0, n, d), 2)[1].shape == (0, n, 2)


def test_the_compiled_loops_need_no_folder_to_write_to(tmp_path):
    """Installed read-only and without a home to keep machine code in, they are compiled for the process alone."""
    script = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import torch
from isonb.barcodes.trees import spanning_tree
print(spanning_tree(torch.tensor([[0.0], [1.0], [3.0]]))[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[1, 2], [0, 1]]"
    assert not list(tmp_path.iterdir())


def test_lengths_can_be_derived_twice():
    edges = torch.tensor([[0, 1], [1, 2], [0, 3], [2, 2]])
    check_gradient(lambda x: edge_lengths(x, edges)[:3].square(), normal(4, 3), twice=True)
    slope = gradient(lambda x: edge_lengths(x, edges), torch.ones(4, 3))
    assert bool((slope == 0).all())


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
