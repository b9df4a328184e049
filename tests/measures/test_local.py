"""Neighbours of queries in a corpus, and the dimension about each point."""

import math
from unittest import mock

import pytest
import torch
from support import assert_same, check_gradient, check_rejects, nasty, normal, some_mask, uneven

from isonb import knn, knn_queries, local_dimension, mle_dimension
from isonb.errors import DegenerateError, ShapeError


def brute(queries, corpus, k):
    away = (queries.double().unsqueeze(1) - corpus.double()).norm(dim=-1)
    result = away.sort(dim=-1, stable=True)
    return result.values[:, :k], result.indices[:, :k]


@pytest.mark.parametrize("kind", ["normal", "offset", "tight", "huge", "tiny", "copies", "grid", "few"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("way", ["differences", "product", "boxes", "plain"])
def test_neighbours_of_queries_are_those_of_all_differences(kind, dtype, way):
    d = 2 if kind == "grid" else 20
    clouds = normal(5 if kind == "few" else 300, d), normal(70, d, seed=1)
    corpus, queries = (nasty(cloud, "normal" if kind == "few" else kind).to(dtype) for cloud in clouds)
    queries[:5] = corpus[:5]
    with mock.patch("isonb.numerics.queries.query_algorithm", return_value=way):
        distances, index = knn_queries(queries, corpus, 5, chunk=32)
    want, places = brute(queries, corpus, 5)
    assert torch.equal(index, places)
    assert_same(distances.double(), want, rtol=1e-6 if dtype == torch.float32 else 1e-12)


def test_a_cloud_asked_for_itself_finds_itself_first():
    x = uneven(40, 6)
    distances, index = knn_queries(x, x, 4)
    assert torch.equal(index[:, 0], torch.arange(40))
    assert torch.equal(index[:, 1:], knn(x, 3)[1])
    assert not distances[:, 0].any()
    assert knn_queries(x[:0], x, 4)[1].shape == (0, 4)
    check_gradient(lambda a, b: knn_queries(a, b, 2)[0], x[:3], x[5:12])
    assert knn_queries(x.float(), x, 1)[0].dtype == torch.float64


@pytest.mark.parametrize("m", [1, 80])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_bad_number_is_found_wherever_the_corpus_holds_it(m, bad):
    queries = normal(m, 30).float()
    for row in (0, 57, 1199):
        corpus = normal(1200, 30).float()
        corpus[row, 29] = bad
        check_rejects(knn_queries, DegenerateError, "corpus must be finite", queries, corpus, 3)


@pytest.mark.parametrize("way", ["differences", "product", "boxes", "plain"])
def test_a_distance_that_float32_does_not_hold_is_refused(way):
    corpus = torch.linspace(2e38, 3e38, 40).unsqueeze(1)
    with mock.patch("isonb.numerics.queries.query_algorithm", return_value=way):
        assert knn_queries(corpus[:2], corpus, 3)[0].isfinite().all()
        check_rejects(knn_queries, DegenerateError, "the distances of the points must fit", -corpus, corpus, 3)


def test_bad_queries():
    x = uneven(10, 6)
    check_rejects(knn_queries, ShapeError, "queries must have the 6 dimensions", x[:, :5], x, 2)
    check_rejects(knn_queries, ShapeError, "k must be an integer from 1 to the 10 rows", x, x, 11)
    check_rejects(knn_queries, ShapeError, "k must be an integer", x, x, 2.0)


def test_the_harmonic_mean_of_local_dimensions_is_the_pooled_one():
    x, mask = uneven(60, 4), some_mask(60, keep=30)
    assert_same(1 / (1 / local_dimension(x, 8)).mean(), mle_dimension(x, 8))
    local = local_dimension(x, 8, mask=mask)
    assert not local[~mask].any()
    assert_same(1 / (1 / local[mask]).mean(), mle_dimension(x, 8, mask=mask))
    line, plane = torch.linspace(0, 1, 200).unsqueeze(1) * torch.ones(3), normal(400, 3) * torch.tensor([1, 1, 0]) + 9
    both = local_dimension(torch.cat([line, plane.float()]), 20)
    assert both[:200].median() < 1.3 < 1.7 < both[200:].median()
    check_gradient(lambda z: local_dimension(z, 3), x[:6])
    check_rejects(
        local_dimension, DegenerateError, "every point must have neighbours", x[:5].repeat_interleave(6, 0), 3
    )
