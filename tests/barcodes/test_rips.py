"""Barcodes against gudhi, ripser and saved values; trees against each other; gradients, masks, precision, errors."""

import sys

import gudhi
import numpy as np
import pytest
import ripser
import torch
from golden_cases import cases, points, values
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist, squareform
from support import (
    assert_same,
    check_finite_gradient,
    check_invariant,
    check_rejects,
    gpu,
    gradient,
    nasty,
    normal,
    some_mask,
)
from torch import Tensor

from isonb.barcodes.rips import h0_barcode, rips_barcode
from isonb.errors import CloudWarning, DegenerateError, DependencyError, InputError, ShapeError
from isonb.measures.neighbors import two_nn

CLOUDS = [case for case in cases("topology") if case != "barcodes_a"]
CLOSE = 1e-5  # largest allowed error of a bar, as a share of the diameter: ripser computes in float32
KINDS = ("normal", "grid", "line", "copies", "offset", "circle", "clusters")


def clouds(least: int, most: int) -> st.SearchStrategy[Tensor]:
    """Clouds of any kind; in 300 dimensions distances come from a matrix product."""
    size, dims = st.integers(least, most), st.sampled_from((1, 2, 3, 6, 300))
    clouds = st.builds(lambda n, d, seed: normal(n, d, seed=seed), size, dims, st.integers(0, 2**32 - 1))
    return st.builds(nasty, clouds, st.sampled_from(KINDS))


def by_birth(diagram) -> np.ndarray:
    """The bars (m, 2) of a diagram, or of births and deaths, in order."""
    diagram = torch.stack(diagram, -1) if isinstance(diagram, tuple) else diagram
    diagram = np.asarray(diagram, dtype=float).reshape(-1, 2)
    return diagram[np.lexsort(diagram.T[::-1])]


def gudhi_bars(x: np.ndarray, dim: int) -> np.ndarray:
    tree = gudhi.RipsComplex(points=x).create_simplex_tree(max_dimension=dim + 1)
    tree.compute_persistence()
    bars = tree.persistence_intervals_in_dimension(dim).reshape(-1, 2)
    return bars[np.isfinite(bars[:, 1])]


def ripser_bars(x: np.ndarray, dim: int) -> np.ndarray:
    bars = ripser.ripser(cdist(x, x), maxdim=dim, distance_matrix=True)["dgms"][dim]
    return bars[np.isfinite(bars[:, 1])]


@pytest.mark.filterwarnings("ignore::isonb.errors.CloudWarning")  # two points in 300 dimensions, on purpose
@settings(max_examples=1200)
@given(clouds(2, 40))
def test_h0_equals_gudhi_and_ripser(x):
    bars, x = h0_barcode(x).numpy(), x.numpy()
    assert bars.shape == (len(x) - 1,)
    assert np.all(np.diff(bars) <= 0)
    for peer in (gudhi_bars(x, 0), ripser_bars(x, 0)):
        deaths = np.sort(peer[:, 1])[::-1]
        assert np.count_nonzero(bars) == len(deaths)  # the peers drop the zero bars of duplicates
        if len(deaths):
            assert np.abs(bars[: len(deaths)] - deaths).max() <= CLOSE * cdist(x, x).max()


@settings(max_examples=300)
@given(clouds(4, 24))
def test_h1_equals_gudhi_and_ripser(x):
    ours, x = by_birth(rips_barcode(x)[1]), x.numpy()
    size = cdist(x, x).max()
    assert np.all(ours[:, 1] > ours[:, 0])
    for peer in (gudhi_bars(x, 1), ripser_bars(x, 1)):
        assert gudhi.bottleneck_distance(ours, peer) <= CLOSE * size
    theirs = gudhi_bars(x, 1)
    long = theirs[:, 1] - theirs[:, 0] > 1e-12 * size  # bars of rounding only, where tied distances come out unequal
    assert len(ours) == np.count_nonzero(long)


@pytest.mark.parametrize("case", CLOUDS)
def test_saved_barcodes(case):
    x, saved = points(case), values("topology", case)
    deaths = torch.tensor(saved["h0"], dtype=torch.float64).flip(0)
    assert_same(h0_barcode(x), deaths, rtol=1e-9, atol=1e-12)
    if "h1" in saved:
        np.testing.assert_allclose(by_birth(rips_barcode(x)[1]), by_birth(saved["h1"]), rtol=1e-9)


def test_the_gradient_of_a_zero_bar_is_zero():
    x = normal(8, 3)
    x = torch.cat([x, x[:4]])
    check_finite_gradient(h0_barcode, x)
    slope = gradient(lambda z: h0_barcode(z)[-4:], x)
    assert bool((slope == 0).all())
    assert bool((h0_barcode(x)[-4:] == 0).all())
    check_finite_gradient(h0_barcode, torch.ones(5, 2, dtype=torch.float64))


def test_bars_of_masked_rows_are_zero_last_and_have_no_edge():
    x, mask = normal(10, 3), torch.tensor([0, 1, 1, 0, 1, 1, 1, 0, 0, 1])
    bars, edges = h0_barcode(x, return_edges=True, mask=mask)
    assert bool((bars[:5] > 0).all())
    assert bool((bars[5:] == 0).all())
    assert bool((edges[5:] == -1).all())
    assert bool(mask[edges[:5]].all())
    assert bool((edges[:5, 0] < edges[:5, 1]).all())
    assert edges.dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bars_of_rounding_alone_are_dropped(dtype):
    """Off their axes the ties of a cross-polytope and of a cube break in the last place: no bar comes of that."""
    cube = torch.cartesian_prod(*[torch.arange(2.0)] * 4).double()
    cross = torch.cat([torch.eye(5), -torch.eye(5)]).double()
    want = {"cube": [len(gudhi_bars(cube.numpy(), dim)) for dim in (1, 2)], "cross": [0, 0]}
    for name, x in (("cube", cube), ("cross", cross)):
        for seed in range(8):
            turn = torch.linalg.qr(normal(x.shape[1], x.shape[1], seed=seed))[0]
            bars = rips_barcode((x @ turn).to(dtype), max_dim=2)[1:]
            assert [len(birth) for birth, _ in bars] == want[name]


def test_a_missing_library_falls_back_and_then_says_what_to_install(monkeypatch):
    x = nasty(normal(12, 2), "circle")
    want = rips_barcode(x)
    monkeypatch.setitem(sys.modules, "gph", None)
    assert_same(rips_barcode(x), want)
    monkeypatch.setitem(sys.modules, "gudhi", None)
    with pytest.raises(DependencyError, match=r"pip install .*\[topology\]"):
        rips_barcode(x)
    assert len(rips_barcode(x, max_dim=0)) == 1


def test_float32_inside_the_library_neither_merges_nor_splits():
    """A rhombus whose short diagonal is longer than its sides by 1e-9 of them: the bar is lost in float32."""
    half = (1 + 1e-9) / 2
    height = (1 - half**2) ** 0.5
    x = torch.tensor([[half, 0], [-half, 0], [0, height], [0, -height]], dtype=torch.float64)
    birth, death = rips_barcode(x)[1]
    assert len(ripser_bars(x.numpy(), 1)) == 0
    assert_same(birth, torch.ones(1, dtype=torch.float64))
    assert_same(death - birth, torch.full((1,), 1e-9, dtype=torch.float64), rtol=1e-6)


def test_rips_order_births_and_dimensions():
    x = normal(30, 3)
    h0, h1, h2 = rips_barcode(x, max_dim=2)
    assert_same(h0[1], h0_barcode(x))
    assert bool((h0[0] == 0).all())
    for birth, death in (h1, h2):
        assert bool(((death - birth).diff() <= 0).all())
    assert [len(part) for part in rips_barcode(normal(2, 3), max_dim=2)[1]] == [0, 0]
    assert_same(rips_barcode(x, max_dim=1), [h0, h1])
    check_invariant(lambda z: rips_barcode(z, max_dim=2), x, ["permutation", "rotation", "translation"])
    assert_same(rips_barcode(2.75 * x)[1], [2.75 * part for part in h1])
    check_rejects(rips_barcode, ShapeError, r"\(n, d\)", torch.ones(2, 3, 2))
    for wrong in (-1, 1.5, True, "1"):
        check_rejects(rips_barcode, InputError, "max_dim must be a dimension", torch.ones(3, 2), max_dim=wrong)
    few = normal(3, 2).requires_grad_()  # an empty barcode keeps the graph
    assert not gradient(lambda z: rips_barcode(z)[1], few).any()


@gpu
def test_cuda_h1():
    x = normal(40, 3)
    assert_same([part.cpu() for bars in rips_barcode(x.cuda()) for part in bars], rips_barcode(x))


def cosine_distances(seed: int) -> Tensor:
    return torch.tensor(squareform(pdist(normal(24, 8, seed=seed).numpy(), "cosine")))


def test_distances_in_a_batch_under_a_mask_and_in_a_gradient():
    matrix = torch.stack([cosine_distances(seed) for seed in range(3)]).requires_grad_()
    mask = some_mask(3, 24, keep=3)
    bars = h0_barcode(matrix, mask=mask, metric="precomputed")
    for bar, real, its in zip(matrix, mask, bars, strict=True):
        alone = h0_barcode(bar[real][:, real], metric="precomputed")
        assert torch.equal(its[: len(alone)], alone)
        assert not bool(its[len(alone) :].any())
    slope = torch.autograd.grad(bars.sum(), matrix)[0]
    assert float(slope.sum()) == int(mask.sum()) - 3
    points = normal(30, 3)
    assert_same(h0_barcode(torch.cdist(points, points), metric="precomputed"), h0_barcode(points), rtol=1e-9)
    assert_same(two_nn(torch.cdist(points, points), metric="precomputed"), two_nn(points), rtol=1e-9)


def test_points_that_look_like_distances_or_transposed_are_told():
    matrix = cosine_distances(0)
    for function in (h0_barcode, rips_barcode, two_nn):
        with pytest.warns(CloudWarning, match='is taken as points. Pass metric="precomputed"'):
            function(matrix)
        check_rejects(function, ShapeError, "must be square", matrix[:, :5], metric="precomputed")
        check_rejects(function, DegenerateError, "must be symmetric", matrix - 1, metric="precomputed")
        check_rejects(function, DegenerateError, "must be symmetric", matrix.triu(), metric="precomputed")
    check_rejects(two_nn, InputError, "keep needs points", matrix, keep=0.2, metric="precomputed")
    for function in (h0_barcode, rips_barcode):
        with pytest.warns(CloudWarning, match=r"3 points in 200 dimensions.*x\.T"):
            function(normal(200, 3).T)
        function(normal(8, 768))
