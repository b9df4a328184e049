"""What barcodes are made of: metrics, distances, thresholds; and the generators they give."""

import math
from functools import partial

import gudhi
import numpy as np
import pytest
import ripser
import torch
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform
from support import assert_same, check_gradient, check_rejects, nasty, normal, some_mask

from isonb.barcodes import rips as homology
from isonb.barcodes.inputs import EXPONENTS, SQUARES
from isonb.barcodes.rips import Persistence, h0_barcode, rips_barcode
from isonb.errors import DegenerateError, DtypeError, InputError, ShapeError
from tests.barcodes.test_rips import KINDS, by_birth

SMOOTH = (*SQUARES, *EXPONENTS)


@pytest.mark.parametrize("metric", SMOOTH)
def test_bars_under_a_metric_are_those_of_scipys_distances(metric):
    x, mask = torch.stack([normal(20, 6, seed=seed) + 1 for seed in range(2)]), some_mask(2, 20)
    bars, edges = h0_barcode(x, return_edges=True, metric=metric)
    masked = h0_barcode(x, mask=mask, metric=metric)
    for cloud, its, pairs, real, under_mask in zip(x, bars, edges, mask, masked, strict=True):
        condensed = pdist(cloud.numpy(), metric)
        matrix = torch.tensor(squareform(condensed))
        assert_same(its, torch.tensor(linkage(condensed, "single")[::-1, 2].copy()), rtol=1e-12)
        assert_same(matrix[pairs[:, 0], pairs[:, 1]], its, rtol=1e-12)
        alone = h0_barcode(cloud[real], metric=metric)
        assert_same(under_mask[: len(alone)], alone)
        want = ripser.ripser(matrix.numpy(), distance_matrix=True)["dgms"][1]
        result = rips_barcode(cloud, metric=metric)
        np.testing.assert_allclose(by_birth(result[1]), by_birth(want), rtol=1e-5)
        precomputed = partial(rips_barcode, torch.tensor(condensed), metric="precomputed")
        assert_same(precomputed(), result, rtol=1e-12)
        below = {"threshold": float(matrix.quantile(0.1)), "keep_infinite": True}
        result = rips_barcode(cloud, metric=metric, **below)
        assert 1 < int(result[0][1].isinf().sum()) < 20
        assert_same(precomputed(**below), result, rtol=1e-12)
    x = normal(14, 3, seed=4)
    assert len(rips_barcode(x, metric=metric)[1][0])
    check_gradient(lambda z: h0_barcode(z, metric=metric), x)
    check_gradient(lambda z: [bar for bars in rips_barcode(z, metric=metric) for bar in bars], x)


def test_the_direction_of_a_float32_row_is_that_of_float64():
    """Cosine distances of 1e-6, of which a product of float32 keeps no digit."""
    x = (normal(30, 8) * 1e-3 + 1).float()
    assert_same(h0_barcode(x, metric="cosine"), h0_barcode(x.double(), metric="cosine"), rtol=1e-6, dtype=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("backend", ["_giotto", "_gudhi"])
def test_bars_below_a_threshold_are_those_of_gudhi_and_ripser(kind, share, backend, monkeypatch):
    monkeypatch.setattr(homology, "_giotto", getattr(homology, backend))
    matrix = squareform(pdist(nasty(normal(24, 2, seed=3), kind).numpy()))
    threshold = float(np.quantile(matrix, share))
    tree = gudhi.RipsComplex(distance_matrix=matrix, max_edge_length=threshold).create_simplex_tree(max_dimension=3)
    tree.compute_persistence(persistence_dim_max=True)
    inputs = torch.tensor(matrix)
    bars = partial(rips_barcode, max_dim=2, metric="precomputed")
    result = bars(inputs, threshold=threshold, keep_infinite=True)
    cut = torch.where(inputs <= threshold, inputs, torch.inf)
    assert_same(bars(cut, keep_infinite=True), result)
    finite = bars(inputs, threshold=threshold)
    for dimension, (birth, death) in enumerate(result):
        want = tree.persistence_intervals_in_dimension(dimension).reshape(-1, 2)
        ended = torch.isfinite(death)
        assert int((~ended).sum()) == np.isinf(want).sum()
        assert not bool(ended[: int((~ended).sum())].any())
        lasting = death > birth * (1 + 1e-12)
        ours = by_birth(torch.stack((birth, death), -1)[lasting])
        np.testing.assert_allclose(ours, by_birth(want[want[:, 1] > want[:, 0] * (1 + 1e-12)]), rtol=1e-12)
        assert_same(finite[dimension], [birth[ended], death[ended]])


@pytest.mark.parametrize("backend", ["_giotto", "_gudhi"])
def test_a_loop_without_a_triangle_is_infinite(backend, monkeypatch):
    monkeypatch.setattr(homology, "_giotto", getattr(homology, backend))
    ring = nasty(normal(6, 2), "circle")
    (loop,) = rips_barcode(ring, threshold=1.1, keep_infinite=True, return_generators=True)[1].diagram.tolist()
    assert loop == [pytest.approx(1), math.inf]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threshold", [math.inf, 1.2])
def test_each_bar_has_its_vertices(kind, threshold):
    x = nasty(normal(22, 3, seed=1), kind)
    options = {"threshold": threshold, "keep_infinite": True}
    result = rips_barcode(x, 2, return_generators=True, **options)
    assert_same([element.diagram.unbind(-1) for element in result], rips_barcode(x, 2, **options))
    for dimension, entry in enumerate(result):
        assert isinstance(entry, Persistence)
        assert entry.dimension == dimension
        birth, death = entry.diagram.unbind(-1)
        endless = torch.isinf(death)
        assert bool((entry.pairing[endless][:, -2:] == -1).all())
        tail, head = x[entry.pairing[~endless][:, -2]], x[entry.pairing[~endless][:, -1]]
        assert_same((tail - head).norm(dim=-1), death[~endless])
        if dimension:
            assert_same((x[entry.pairing[:, 0]] - x[entry.pairing[:, 1]]).norm(dim=-1), birth)
    vertex, low, high = result[0].pairing.T
    assert sorted(vertex.tolist()) == list(range(len(x)))  # each point is born once
    label = torch.arange(len(x))  # and ends when the component of an older one is joined
    for dying, a, b in zip(vertex.flip(0).tolist(), low.flip(0).tolist(), high.flip(0).tolist(), strict=True):
        if a >= 0:
            assert dying == max(label[a], label[b])
            label[label == dying] = min(label[a], label[b]).item()


def test_generators_are_those_of_torch_topological_and_of_gudhi():
    nn = pytest.importorskip("torch_topological.nn")
    for seed in range(3):
        x = normal(30, 3, seed=seed)
        ours, theirs = rips_barcode(x, return_generators=True), nn.VietorisRipsComplex(dim=1)(x)
        tree = gudhi.RipsComplex(points=x.numpy()).create_simplex_tree(max_dimension=2)
        tree.compute_persistence()
        flags = tree.flag_persistence_generators()
        for item, other, flag in zip(ours, theirs, (flags[0], flags[1][0]), strict=True):
            assert item.dimension == other.dimension
            assert_same(
                torch.tensor(by_birth(item.diagram)), torch.tensor(by_birth(other.diagram)), rtol=1e-6, dtype=False
            )
            for pairing in (other.pairing, flag):
                edges = lambda pairs: {tuple(map(frozenset, (p[:-2], p[-2:]))) for p in np.asarray(pairs)}  # noqa: E731
                if item.dimension:
                    assert edges(item.pairing.tolist()) == edges(pairing.tolist())
                else:  # which of two components is the elder is anyone's choice
                    assert {edge for _, edge in edges(item.pairing.tolist())} == {e for _, e in edges(pairing.tolist())}
        assert float(nn.WassersteinDistance()(ours, theirs)) == pytest.approx(0, abs=1e-5)


X = normal(9, 3)
ONE_CONSTANT = torch.cat([X[:8], torch.full((1, 3), 3.7)])
WITHIN = {"metric": "precomputed", "threshold": 1}


@pytest.mark.parametrize(
    ("kind", "match", "x", "options"),
    [
        (InputError, r"metric must be one of euclidean.*'canberra'.*pdist", X, {"metric": "canberra"}),
        (InputError, "metric must be one of euclidean.*got 2", X, {"metric": 2}),
        (DegenerateError, r"no row may be zero for cosine; got row \[2\]", X * (X[2] != X), {"metric": "cosine"}),
        (DegenerateError, r"constant for correlation; got row \[8\]", ONE_CONSTANT, {"metric": "correlation"}),
        (DegenerateError, "distances of the points", X.float() * 1e30, {"metric": "sqeuclidean"}),
        (DegenerateError, r"must fit torch\.float32; got inf", torch.tensor([[3e38, 0.0], [-3e38, 0.0]]), {}),
        (ShapeError, r"n \(n - 1\) / 2 entries; got 5", torch.ones(5), {"metric": "precomputed"}),
        (DegenerateError, "finite", torch.full((3,), torch.inf), {"metric": "precomputed"}),
        (DtypeError, "floating-point", torch.ones(3, 3).long(), WITHIN),
        (DtypeError, "must be a torch.Tensor", "x", WITHIN),
        *((InputError, "threshold must be a length", X, {"threshold": it}) for it in (-1.0, float("nan"), "1", True)),
    ],
)
def test_what_is_no_metric_no_distance_and_no_threshold_is_refused(kind, match, x, options):
    check_rejects(rips_barcode if "threshold" in options else h0_barcode, kind, match, x, **options)


def test_points_that_nothing_joins_and_points_at_the_largest_distance():
    nothing = torch.full((6,), torch.inf, dtype=torch.float64)
    (birth, death), (loops, _) = rips_barcode(nothing, metric="precomputed", keep_infinite=True)
    assert (birth.tolist(), death.tolist(), len(loops)) == ([0.0] * 4, [math.inf] * 4, 0)
    most = torch.finfo(torch.float32).max
    far = torch.tensor([1.0, most, torch.inf])
    assert rips_barcode(far, metric="precomputed", keep_infinite=True)[0][1].tolist() == [math.inf, most, 1.0]
    cross = torch.cat([torch.eye(4), -torch.eye(4)]).double()  # of a sphere of three dimensions
    assert [len(death) for _, death in rips_barcode(cross, 3)] == [7, 0, 0, 1]


@pytest.mark.parametrize("kind", ["cdist", "cosine", "float64", "half"])
def test_distances_that_are_off_by_rounding_are_taken(kind):
    """As they come: by products in float32, of float32 kept in float64, 1 minus cosines, halves of both."""
    x = normal(60, 32)
    unit = torch.nn.functional.normalize(x.float(), dim=-1)
    inputs = 1 - unit @ unit.T if kind == "cosine" else torch.cdist(x.float(), x.float())
    inputs = {"float64": inputs.double(), "half": inputs.half()}.get(kind, inputs)
    exact = torch.tensor(squareform(pdist(x.numpy(), "cosine" if kind == "cosine" else "euclidean")))
    assert bool(inputs.diagonal().any()) or bool((inputs < 0).any())
    got, want = (h0_barcode(x, metric="precomputed").double() for x in (inputs, exact))
    assert torch.allclose(got, want, atol=2e-3 if kind == "half" else 1e-5)
    assert bool((got >= 0).all())
    far = exact.max().item() * 2
    assert torch.allclose(rips_barcode(inputs, metric="precomputed", threshold=far)[0][1].double(), want, atol=5e-3)
    spread = inputs.clone()
    spread[0, 1:] = spread[1:, 0] = torch.inf
    (_, death), *_ = rips_barcode(spread, metric="precomputed", threshold=far, keep_infinite=True)
    assert death.isinf().sum() == 2  # the one apart, and the others


def test_gradients_pass_through_distances_that_are_off_by_rounding():
    x = normal(40, 16, dtype=torch.float32).requires_grad_()
    (through,) = torch.autograd.grad(h0_barcode(torch.cdist(x, x), metric="precomputed").sum(), x)
    (exact,) = torch.autograd.grad(h0_barcode(x.double()).sum(), x)
    assert torch.allclose(through, exact, atol=1e-3)


@pytest.mark.parametrize("off", [0.02, -0.02])
def test_distances_that_are_off_by_more_are_refused(off):
    inputs = torch.cdist(normal(20, 4), normal(20, 4, seed=0))
    inputs = (inputs + inputs.T) / 2
    inputs[3, 5] += off * inputs.max()
    for wrong in (inputs, inputs + off * torch.eye(20), 1 - inputs):
        with pytest.raises(DegenerateError, match="distances must be symmetric"):
            h0_barcode(wrong, metric="precomputed")
