"""The neighbour search against all distances sorted, on clouds that break shortcuts."""

import contextlib
import math
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import python
from scipy.spatial.distance import cdist
from support import assert_same, check_rejects, nasty, normal
from torch import Tensor

from isonb import anisotropy, effective_rank, isoscore_star, knn, knn_queries, local_dimension, lsds, mle_dimension
from isonb.errors import InputError, ShapeError
from isonb.measures.neighbourhoods import Neighbours
from isonb.measures.uniformity import rbf_uniformity
from isonb.numerics import nearest
from isonb.numerics.compiled import can_compile
from isonb.numerics.products import add_upper_gram, gram
from isonb.points import chosen_layers

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("normal", "grid", "copies", "offset", "clusters", "far point")


def sorted_neighbors(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """All distances in float64 by differences, sorted, ties by index."""
    away = torch.tensor(cdist(x.double().numpy(), x.double().numpy()))
    away.fill_diagonal_(math.inf)
    away, index = away.sort(dim=1, stable=True)
    return away[:, :k], index[:, :k]


@settings(max_examples=250)
@given(
    kind=st.sampled_from(KINDS),
    n=st.sampled_from((4, 5, 30, 90, 127, 128, 129, 150, 256, 300, 513)),
    d=st.sampled_from((1, 2, 3, 9, 20, 40, 60)),
    k=st.sampled_from((1, 2, 3, 8, 12, 28)),
    chunk=st.sampled_from((None, 1, 7, 50, 1000)),
    share=st.sampled_from((None, 0.0, 0.05, 0.8)),  # of rows that are real: k + 1 at least
    dtype=st.sampled_from((torch.float32, torch.float64)),
    compiled=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_knn_is_exact_compiled_or_not_and_masked_rows_are_nobodys_neighbours(
    kind, n, d, k, chunk, share, dtype, compiled, seed
):
    x, k = nasty(normal(n, d, seed=seed), kind).to(dtype), min(k, n - 1)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    mask = None if share is None else order < max(k + 1, share * n)
    plain = {"neighbour_algorithm": lambda x, mask: "product", "can_compile": lambda x: False}
    with contextlib.nullcontext() if compiled else mock.patch.multiple(nearest, **plain):
        distances, indices = knn(x, k, mask=mask, chunk=chunk)
    real = torch.arange(n) if mask is None else mask.nonzero().squeeze(1)
    want, near = sorted_neighbors(x[real], k)
    assert distances.dtype == dtype
    assert_same(distances[real], want, rtol=1e-6 if dtype == torch.float32 else 1e-12, atol=1e-9, dtype=False)
    if kind in ("grid", "copies") and (dtype == torch.float64 or d < 8):  # exact: of a tie the lowest index
        assert torch.equal(indices[real], real[near])
    if mask is not None:
        assert bool((indices[~mask] == -1).all())
        assert not distances[~mask].any()


def test_a_product_too_coarse_for_float32_is_found_out():
    """Two clusters whose points a float32 product can't tell apart: the candidates fail the certificate."""
    x = (1e-4 * normal(400, 64) + (torch.arange(400) % 2).unsqueeze(1)).float()
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


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.integers(4, 600),
    st.integers(1, 5),
    st.integers(1, 9),
    st.sampled_from((None, 1, 2, 9)),
    st.integers(0, 1000),
)
def test_a_kd_tree_finds_the_nearest_of_another_label_to_the_last_tie(kind, n, d, k, labels, seed):
    x, k = nasty(normal(n, d, seed=seed), kind), min(k, n - 1)
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


MEMORY = """
import torch, isonb
from tests.benchmarks.memory import peak_mb
x = torch.empty(50_000, 384).normal_()
search = lambda m, x: isonb.knn_queries(x[:m] + 1, x, 10)
search(1, x[:600]), search(100, x[:600])
start = peak_mb()
search(1, x), search(500, x)
print(peak_mb() - start)
x = torch.ones(8000, 16) + torch.arange(16)
x[:4000] += 1
isonb.knn(x[:600], 3)
start = peak_mb()
isonb.knn(x, 3)
print(peak_mb() - start)
"""


@pytest.mark.skipif(not can_compile(torch.ones(1)), reason="memory of the compiled loops")
def test_a_search_needs_little_memory():
    """No copy of a corpus of 77 MB; no matrix of all pairs, 512 MB, where copies are all searched again."""
    corpus, pairs = map(float, python("-c", MEMORY, cwd=ROOT).split())
    assert corpus < 77 / 2
    assert pairs < 128


@pytest.mark.parametrize("k", [0, 6, -1, 2.0, True])
def test_k_out_of_range(k):
    x = normal(6, 2)
    for function, inputs, low in ((knn, (x,), 1), (mle_dimension, (x,), 2), (lsds, (x, x), 1)):
        check_rejects(function, ShapeError, f"k must be an integer from {low} to 5", *inputs, k)
    mask = torch.tensor([1, 1, 1, 0, 1, 0])
    check_rejects(knn, ShapeError, "k must be an integer from 1 to 3", x, 4, mask=mask)


@pytest.mark.parametrize("chunk", [0, -1, 2.0, True])
def test_a_chunk_is_a_number_of_rows(chunk):
    x = normal(6, 2)
    for function, inputs in ((knn, (x, 1)), (knn_queries, (x, x, 1)), (rbf_uniformity, (x,))):
        check_rejects(function, InputError, "chunk must be at least 1", *inputs, chunk=chunk)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_numbers_of_numpy_are_numbers(dtype):
    x, three, one = normal(20, 6), dtype(3), dtype(1)
    for of in (
        lambda k: knn(x, k)[1],
        lambda k: knn_queries(x, x, k)[1],
        lambda k: lsds(x, x, k),
        lambda k: mle_dimension(x, k),
        lambda k: local_dimension(x, k),
        lambda k: anisotropy(x, k),
        lambda k: Neighbours(x, k).occurrences(k),
        lambda k: rbf_uniformity(x, chunk=k),
        lambda k: effective_rank(x, k),
        lambda k: chosen_layers((k, k), 4),
    ):
        assert_same(torch.as_tensor(of(three)), torch.as_tensor(of(3)), rtol=0, atol=0)
    assert chosen_layers(one, 4) == [1]
    assert_same(isoscore_star(x, np.float32(0.5)), isoscore_star(x, 0.5), rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(3, 5), (384, 128), (401, 130), (2, 450, 140), (0, 400, 128), (12, 66, 700)])
def test_blocks_mirror_the_product(shape):
    x = normal(*shape)
    assert_same(gram(x), x @ x.mT, rtol=1e-12, atol=1e-11)
    assert_same(gram(x.mT), x.mT @ x, rtol=1e-12, atol=1e-11)
    assert_same(gram(x), gram(x).mT, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5), (401, 130), (130, 401), (5, 0), (450, 1)])
def test_adding_above_the_diagonal(shape):
    x, start = normal(*shape), normal(shape[0], shape[0], seed=1)
    out = start.clone()
    add_upper_gram(out, x)
    assert_same(out.triu(), (start + x @ x.mT).triu(), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("shape", [(3, 5), (401, 130), (2, 450, 140)])
def test_a_function_of_the_entries_is_that_of_the_product(shape):
    x = normal(*shape)
    half = x.square().sum(-1) / 2
    result = gram(x, lambda block, i, j: block.sub_(half[..., i, None]).sub_(half[..., None, j]).exp_())
    assert_same(result, (-torch.cdist(x, x).square() / 2).exp(), rtol=1e-9, atol=1e-11)


def test_a_recorded_product_has_its_gradient():
    x = normal(400, 130).requires_grad_()
    gram(x).sum().backward()
    assert_same(x.grad, 2 * x.detach().sum(0).expand_as(x), rtol=1e-9, atol=1e-9)
