"""Trees and neighbours of clouds that break shortcuts, against all distances in float64 by differences."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from support import some_mask
from torch import Tensor

from isonb.barcodes import inputs
from isonb.barcodes.rips import h0_barcode
from isonb.measures.neighbors import knn
from isonb.numerics import dispatch, nearest

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


def least_tree(squares: np.ndarray) -> np.ndarray:
    """Squared lengths of a least spanning tree, ascending: Prim's algorithm on all pairs."""
    n = len(squares)
    key, out, lengths = squares[0].copy(), np.ones(n, dtype=bool), []
    out[0] = False
    for _ in range(n - 1):
        node = int(np.argmin(np.where(out, key, np.inf)))
        lengths.append(key[node])
        out[node] = False
        key = np.minimum(key, squares[node])
    return np.sort(lengths)


def parts(edges: Tensor, n: int) -> int:
    """Components that edges leave of n points."""
    label = list(range(n))
    for a, b in edges.tolist():
        old, new = label[a], label[b]
        label = [new if item == old else item for item in label]
    return len(set(label))


def check(seed: int) -> None:
    """The tree, its bars and their gradient, and the neighbours of one batch."""
    x, mask = draw(seed)
    n, k = x.shape[1], 3
    edges = inputs.tree_edges(x, mask)[0]
    assert torch.equal(_sorted(edges, mask, n), _sorted(inputs.tree_edges(x.double(), mask)[0], mask, n)), seed
    for c in range(len(x)):
        real = torch.ones(n, dtype=torch.bool) if mask is None else mask[c]
        squares, local = all_squares(x[c] * real.unsqueeze(1)), edges[c][real[edges[c]].all(-1)].numpy()
        want = least_tree(squares[np.ix_(real, real)])
        np.testing.assert_allclose(
            np.sort(squares[local[:, 0], local[:, 1]]), want, rtol=1e-9, atol=0, err_msg=str(seed)
        )
        assert parts(local, n) == n - int(real.sum()) + 1, seed
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


def _sorted(edges: Tensor, mask: Tensor | None, n: int) -> Tensor:
    """Edges between real rows as sorted numbers, the others as -1."""
    number = edges[..., 0] * n + edges[..., 1]
    if mask is not None:
        number = torch.where(mask.gather(1, edges.flatten(1)).view(edges.shape).all(-1), number, -1)
    return number.sort(-1).values


def test_trees_and_neighbours_of_hard_clouds_are_exact():
    for seed in (*range(240), 1359):  # the last: equal lengths whose sums were taken in two orders
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 6000, 1000))
def test_trees_and_neighbours_of_five_thousand_hard_clouds_are_exact(start):
    for seed in range(start, start + 1000):
        check(seed)


@pytest.mark.parametrize("seed", range(0, 48, 3))
def test_without_numba_the_edges_are_the_same(seed, monkeypatch):
    x, mask = draw(seed)
    want = _sorted(inputs.tree_edges(x, mask)[0], mask, x.shape[1])
    monkeypatch.setattr(dispatch, "can_compile", lambda x: False)
    monkeypatch.setattr(nearest, "can_compile", lambda x: False)
    assert torch.equal(_sorted(inputs.tree_edges(x, mask)[0], mask, x.shape[1]), want)


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


@pytest.mark.parametrize("seed", range(1, 24, 3))
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
