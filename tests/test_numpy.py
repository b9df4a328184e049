"""numpy arrays in the place of tensors: the same values, whatever their layout, and typed errors for the rest."""

from functools import partial

import numpy as np
import pytest
import torch
from support import assert_same, some_mask, uneven
from test_bad_input import ALL, CLOUDS, NUMBERS, SEQUENCES, leaves

import isonb
from isonb import DtypeError
from isonb.metrics import IsoScore, MeanCosine, Sampled, SpectralSkewness, TokenUniformity
from isonb.points import pool

X = uneven(60, 6)


@pytest.mark.parametrize("name", [name for name in ALL if name not in SEQUENCES[2:]])  # their partners have a test
def test_every_measure(name):
    x = X.T @ X if name == "isoscore_from_cov" else X
    assert_same(leaves(ALL[name](x.numpy())), leaves(ALL[name](x)))


@pytest.mark.parametrize("name", [name for name in CLOUDS if name not in SEQUENCES])
def test_masks(name):
    mask = some_mask(60)
    assert_same(leaves(CLOUDS[name](X.numpy(), mask=mask.numpy())), leaves(CLOUDS[name](X, mask=mask)))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name):
    s = X[:, 0].abs()
    assert_same(leaves(NUMBERS[name](s.numpy())), leaves(NUMBERS[name](s)))


def test_what_is_beside_the_points():
    labels, cov, y = torch.arange(60) % 3, X.T.cov(), X.flip(-1)
    assert_same(isonb.isoscore_star(X.numpy(), 0.3, cov.numpy()), isonb.isoscore_star(X, 0.3, cov))
    for pair in (partial(isonb.lsds, k=4), isonb.cka, isonb.alignment, partial(isonb.knn_queries, k=2)):
        assert_same(pair(X.numpy(), y.numpy()), pair(X, y))
    assert_same(isonb.lidar(X.view(20, 3, 6).numpy()), isonb.lidar(X.view(20, 3, 6)))
    assert_same(isonb.nc1(X.numpy(), labels.numpy()), isonb.nc1(X, labels))
    loss = isonb.PersistentEntropyLoss()
    assert_same(loss(X.numpy(), labels.numpy()), loss(X, labels))
    assert [n for n, _ in isonb.label_groups(X.numpy(), labels.numpy())] == [0, 1, 2]
    states = uneven(5, 2, 4, 6)
    assert_same(isonb.layer_average([s.numpy() for s in states]), isonb.layer_average(states))
    assert_same(isonb.sbert_wk([s.numpy() for s in states], layer_start=1), isonb.sbert_wk(states, layer_start=1))
    mask = torch.ones(2, 4, dtype=torch.bool)
    points, real = isonb.points_from_hidden_states([s.numpy() for s in states], mask.numpy())
    assert_same(points, pool(list(states[1:]), mask, "tokens"))
    assert bool(real.all())


@pytest.mark.parametrize("make", [isonb.Whitening, isonb.ZeroMean, isonb.SoftZCA, isonb.AllButTheTop,
                                  isonb.MeanDirection, isonb.PartialWhitening, isonb.SingularDecay,
                                  lambda: isonb.ClusterRemoval(3, 1)])  # fmt: skip
def test_fit_and_transform(make):
    assert_same(make().fit(X.numpy()).transform(X.numpy()), make().fit(X).transform(X))
    single = X.float()
    assert_same(make().fit_transform(single.numpy()), make().fit_transform(single))


def test_streams_flows_and_metrics():
    assert_same(isonb.Moments().update(X.numpy()).cov, isonb.Moments().update(X).cov)
    assert_same(isonb.fit_flow(X.numpy()).transform(X.numpy()), isonb.fit_flow(X).transform(X))
    sentences, mask = X.view(10, 6, 6), some_mask(10, 6)
    for make in (IsoScore, MeanCosine, TokenUniformity, SpectralSkewness, lambda: Sampled(isonb.isoscore)):
        ours, theirs = make(), make()
        ours.update(sentences.numpy(), mask.numpy())
        theirs.update(sentences, mask)
        assert_same(ours.compute(), theirs.compute())


def test_any_layout():
    array = X.numpy().copy()
    want = isonb.isoscore(X)
    frozen = array.copy()
    frozen.flags.writeable = False
    for same in (array[::-1], np.asfortranarray(array), frozen, array.astype(">f8"), np.repeat(array, 2, 1)[:, ::2]):
        assert_same(isonb.isoscore(same), want)
    assert isonb.isoscore(array.astype(np.float16)).dtype == torch.float32


@pytest.mark.parametrize("bad", [np.ones((4, 3), dtype=int), np.full((4, 3), "a"), np.full((4, 3), None),
                                 np.ones((4, 3), dtype="datetime64[s]")])  # fmt: skip
def test_arrays_that_are_no_points(bad):
    with pytest.raises(DtypeError, match=r"^isoscore: .*; got .*\."):
        isonb.isoscore(bad)
