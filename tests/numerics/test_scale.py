"""Clouds of any size in float32: the right value where there is one, a typed error where it doesn't fit."""

import pytest
import torch
from support import as_on_an_accelerator, assert_same, normal, uneven

import isonb
from isonb import DegenerateError
from isonb.losses import SpectrumControlLoss
from isonb.numerics.scale import size_of, unit_sized
from isonb.streaming.traces import squared_traces

TOO_LARGE = {
    "rbf_uniformity": lambda x: isonb.rbf_uniformity(x, normalize=False),
    "IsoBN": lambda x: isonb.IsoBN(x.shape[-1])(x),
    "SpectrumControlLoss": isonb.SpectrumControlLoss(),
    "squared_traces": squared_traces,
    "bits_per_dimension": lambda x: isonb.fit_flow(uneven(30, 6).float()).bits_per_dimension(x),
}


@pytest.mark.parametrize("size", [1e19, 1e30])
@pytest.mark.parametrize("name", TOO_LARGE)
def test_squares_that_do_not_fit_are_an_error(name, size):
    x = uneven(20, 6).float()
    if name == "rbf_uniformity" and size == 1e19:  # the squares don't fit, and the answer does
        assert_same(TOO_LARGE[name](x * size).double(), TOO_LARGE[name]((x * size).double()), rtol=1e-6)
        return
    with pytest.raises(DegenerateError, match=r"scale of the points must fit torch.float32; got .*\."):
        TOO_LARGE[name](x * size)
    for out in TOO_LARGE[name](x.double() * size) if name == "squared_traces" and size < 1e30 else ():
        assert bool(torch.isfinite(out))  # float64 has room


def test_a_refused_batch_leaves_no_trace():
    x, layer = uneven(20, 6).float(), isonb.IsoBN(6)
    layer(x)
    before = [part.clone() for part in layer.buffers()]
    with pytest.raises(DegenerateError):
        layer(torch.cat([x, x * 1e20]))
    assert_same(list(layer.buffers()), before, rtol=0, atol=0)


@pytest.mark.parametrize("size", [1e-30, 1e17])
def test_moments_of_float32_points_neither_overflow_nor_vanish(size):
    x = normal(5000, 4).float()
    cov = isonb.Moments().update(x[:3000] * size).update(x[3000:] * size).cov
    assert_same(cov / size**2, x.double().T.cov(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_a_flow_starts_from_points_of_any_size(size):
    x = uneven(40, 4).float() * size
    z = isonb.GlowFlow(4, levels=1, depth=1).begin(x)(x)[0]
    assert_same(z.mean(0), torch.zeros(4), atol=1e-4)
    assert_same(z.std(0, correction=0), torch.ones(4), rtol=1e-3)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_sentence_vectors_of_any_size(size):
    states = uneven(6, 3, 5, 8).float()
    got = isonb.sbert_wk(states * size, layer_start=1)
    assert_same(got / size, isonb.sbert_wk(states, layer_start=1), rtol=1e-3, atol=1e-4)


def test_a_penalty_of_no_matrix_is_zero():
    x = torch.zeros(0, 6, 4, requires_grad=True)
    loss = SpectrumControlLoss()(x)
    assert loss.item() == 0
    loss.backward()
    assert isonb.sbert_wk(torch.zeros(13, 0, 6, 4)).shape == (0, 4)


def test_unit_size_is_exact_and_free_where_nothing_is_to_be_done(monkeypatch):
    x = uneven(8, 3).float()
    assert unit_sized(x) is x
    assert unit_sized(torch.zeros(4, 3)).abs().max() == 0
    far = torch.stack([x, x * 2.0**90])
    assert torch.equal(unit_sized(far)[1] * size_of(far)[1], far[1])
    sizes = unit_sized(far).abs().amax((-2, -1))
    assert bool(((sizes >= 1) & (sizes < 2)).all())
    as_on_an_accelerator(monkeypatch)
    assert unit_sized(x) is not x
    assert torch.equal(unit_sized(x) * size_of(x), x)
