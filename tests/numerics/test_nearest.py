"""The neighbour search against all distances sorted, on clouds that break shortcuts."""

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from support import assert_same, check_rejects, normal, some_mask, uneven
from torch import Tensor

from isonb.errors import ShapeError
from isonb.measures.neighbors import knn, lsds, mle_dimension, two_nn
from isonb.numerics import nearest
from isonb.numerics.compiled import can_compile

ROOT = Path(__file__).resolve().parents[2]
PEAK = """
import torch, isonb
from tests.benchmarks.memory import peak_mb
x = torch.ones(8000, 16) + torch.arange(16)
x[:4000] += 1
isonb.knn(x[:600], 3)
before = peak_mb()
isonb.knn(x, 3)
print(peak_mb() - before)
"""


def sorted_neighbors(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All distances in float64 by differences, sorted, ties by index."""
    away = torch.tensor(cdist(x.double().numpy(), x.double().numpy()))
    away.fill_diagonal_(math.inf)
    away, index = away.sort(dim=1, stable=True)
    return away[:, :k], index[:, :k]


def draw_cloud(kind: str, n: int, d: int, seed: int) -> Tensor:
    x = normal(n, d, seed=seed)
    if kind == "grid":
        x = x.round()
    if kind == "copies":
        x = x[torch.randint(0, max(1, n // 4), (n,), generator=torch.Generator().manual_seed(seed))]
    if kind == "far":
        x = (x * 64).round() / 64 + 1e4
    if kind == "lone":
        x[0] = 1e6
    if kind == "tight":
        x = x * 1e-4 + (torch.arange(n) % 2).unsqueeze(-1)
    return x


@given(
    st.sampled_from(("normal", "grid", "copies", "far", "tight")),
    st.integers(4, 90),
    st.sampled_from((1, 2, 20, 60)),
    st.integers(1, 3),
    st.sampled_from((None, 1, 7, 1000)),
    st.sampled_from((torch.float32, torch.float64)),
    st.integers(0, 1000),
)
def test_knn_is_exact(kind, n, d, k, chunk, dtype, seed):
    x = draw_cloud(kind, n, d, seed).to(dtype)
    distances, indices = knn(x, k, chunk=chunk)
    want, order = sorted_neighbors(x, k)
    assert distances.dtype == dtype
    assert_same(distances, want, rtol=1e-6 if dtype == torch.float32 else 1e-12, atol=1e-9, dtype=False)
    if kind in ("grid", "copies", "far") and dtype == torch.float64:  # ties and zeros are exact: lowest index first
        assert torch.equal(indices, order)


def test_a_product_too_coarse_for_float32_is_found_out():
    """Two clusters whose points a float32 product can't tell apart: the candidates fail the certificate."""
    x = draw_cloud("tight", 400, 64, 0).float()
    assert_same(knn(x, 3)[0], sorted_neighbors(x, 3)[0], rtol=1e-6, atol=0, dtype=False)
    calls, again = [], nearest.Search._among_all

    def counted(search, clouds, some, *rest):
        calls.append(len(some))
        return again(search, clouds, some, *rest)

    with mock.patch.object(nearest.Search, "_among_all", counted):
        knn(x, 3)
        assert sum(calls) > 100
        calls.clear()
        knn(normal(400, 64).float(), 3)
        assert sum(calls) == 0


@pytest.mark.skipif(not can_compile(torch.ones(1)), reason="memory of the compiled loops")
def test_rows_that_are_searched_again_need_no_matrix_of_all_pairs():
    """Copies: no row can be told from its like by a product, so all are searched again. All pairs are 512 MB."""
    done = subprocess.run([sys.executable, "-c", PEAK], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 128


def test_knn_known_values():
    x = torch.tensor([[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    distances, indices = knn(x, 2)
    assert distances.tolist() == [[0, 5], [0, 5], [5, 5]]
    assert indices.tolist() == [[1, 2], [0, 2], [0, 1]]


def test_masked_rows_are_nobodys_neighbours():
    x, mask = normal(3, 30, 5), some_mask(3, 30)
    distances, indices = knn(x, 3, mask=mask)
    for cloud, real, away, index in zip(x, mask, distances, indices, strict=True):
        remaining = real.nonzero().squeeze(1)
        want = knn(cloud[real], 3)
        assert_same(away[real], want[0])
        assert torch.equal(index[real], remaining[want[1]])
        assert bool((index[~real] == -1).all())
        assert bool((away[~real] == 0).all())


@pytest.mark.parametrize("real", [3, 4, 6, 9])
def test_no_row_is_its_own_neighbour_where_few_rows_are_real(real):
    """Fewer real rows than candidates: those at infinity, the row itself among them, fill up the choice."""
    for seed in range(20):
        order = torch.randperm(150, generator=torch.Generator().manual_seed(seed))
        x, mask = normal(150, 9, seed=seed), order < real
        distances, indices = knn(x, real - 1, mask=mask)
        want = knn(x[mask], real - 1)
        assert_same(distances[mask], want[0])
        assert torch.equal(indices[mask], mask.nonzero().squeeze(1)[want[1]])


def test_far_clouds_in_float32():
    x = (uneven(80, 30) * 64).round() / 64
    for function in (lambda z: knn(z, 4)[1], two_nn, partial(mle_dimension, k=5)):
        assert_same(function((x + 1e4).float()), function(x), rtol=1e-3, dtype=False)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(("normal", "grid", "copies", "far", "tight", "lone")),
    st.sampled_from((4, 30, 127, 128, 129, 256, 300, 513)),
    st.sampled_from((1, 3, 40)),
    st.sampled_from((1, 2, 12, 28)),
    st.sampled_from((None, 50)),
    st.sampled_from((None, 0.05, 0.8)),
    st.integers(0, 1000),
)
def test_compiled_choice_is_the_plain_one(kind, n, d, k, chunk, share, seed):
    """To the last bit where the plain arithmetic is exact; else lengths that round alike may change places."""
    x = torch.stack([draw_cloud(kind, n, d, seed + c).float() for c in range(2)])
    mask = None if share is None else torch.rand(2, n, generator=torch.Generator().manual_seed(seed)) < share
    if mask is not None:
        mask[:, : min(n, k + 1)] = True
    k = min(k, n - 1)
    without = {"neighbour_algorithm": lambda x, mask: "product", "can_compile": lambda x: False}
    with mock.patch.multiple(nearest, **without):
        plain, order = knn(x, k, mask=mask, chunk=chunk)
    away, index = knn(x, k, mask=mask, chunk=chunk)
    assert can_compile(x)
    assert_same(away, plain, rtol=1e-6, atol=0)
    if kind in ("grid", "copies", "far") and d < 8:
        assert torch.equal(index, order)
    else:
        off_diagonal = torch.ones_like(plain, dtype=torch.bool)
        close = plain.diff(dim=-1) <= 1e-5 * plain[..., 1:]
        off_diagonal[..., 1:] &= ~close
        off_diagonal[..., :-1] &= ~close
        off_diagonal[..., -1] = False  # one as near may lie beyond it
        assert torch.equal(index[off_diagonal], order[off_diagonal])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("normal", "grid", "copies", "far", "tight", "lone")),
    st.integers(4, 600),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from((None, 1, 2, 9)),
    st.integers(0, 1000),
)
def test_a_kd_tree_finds_the_nearest_of_another_label_to_the_last_tie(kind, n, d, k, labels, seed):
    x, k = draw_cloud(kind, n, d, seed), min(k, n - 1)
    label = None if labels is None else torch.randint(0, labels, (n,), generator=torch.Generator().manual_seed(seed))
    with mock.patch.object(nearest, "neighbour_algorithm", return_value="boxes"):
        search = nearest.Search(x[None], None)
    index, square = (result[0] for result in search(k, None, label))
    away = (search.points[0].unsqueeze(1) - search.points[0]).square().cumsum(-1)[..., -1]
    label = torch.arange(n) if label is None else label
    want, order = away.masked_fill(label.unsqueeze(1) == label, math.inf).sort(dim=1, stable=True)
    assert_same(square, want[:, :k], rtol=1e-12, atol=0)
    if kind in ("grid", "copies"):
        assert torch.equal(index, torch.where(want.isinf(), -1, order)[:, :k])


@pytest.mark.parametrize("k", [0, 6, -1, 2.0, True])
def test_k_out_of_range(k):
    check_rejects(knn, ShapeError, "k must be an integer from 1 to 5", normal(6, 2), k)
    check_rejects(mle_dimension, ShapeError, "k must be an integer from 2 to 5", normal(6, 2), k)
    check_rejects(lsds, ShapeError, "k must be an integer from 1 to 5", normal(6, 2), normal(6, 2), k)
    mask = torch.tensor([1, 1, 1, 0, 1, 0])
    check_rejects(knn, ShapeError, "k must be an integer from 1 to 3", normal(6, 2), 4, mask=mask)
