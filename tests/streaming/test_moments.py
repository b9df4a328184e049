"""Streaming moments against numpy on the union, however the points were cut."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import assert_same, check_rejects, gpu, never_waiting, no_values, normal, some_mask, uneven

from isonb import checks
from isonb.errors import DegenerateError, ShapeError
from isonb.streaming import moments
from isonb.streaming.moments import Moments
from isonb.streaming.traces import LengthMoments


def union(parts, dims=5):
    """Count, mean and covariance of all points together, by numpy."""
    points = np.concatenate([np.asarray(part, dtype=np.float64).reshape(-1, dims) for part in parts])
    return len(points), points.mean(0), np.cov(points.T)


def assert_moments(got, parts, **tolerances):
    n, mean, cov = union(parts, got.mean.shape[0])
    assert int(got.n) == n
    assert_same(got.mean, torch.from_numpy(mean), **tolerances)
    assert_same(got.cov, torch.from_numpy(np.atleast_2d(cov)), **tolerances)


def pieces(x, sizes):
    """Consecutive pieces of the given sizes, the rest in the last one."""
    return torch.split(x, [*sizes, len(x) - sum(sizes)])


@pytest.mark.parametrize("sizes", [(), (1,), (1, 1, 1), (17, 3, 40), (0, 5, 0)])
def test_any_cut_gives_the_moments_of_the_union(sizes):
    x = uneven(80, 5) + 3
    parts = pieces(x, sizes)
    streamed, merged = Moments(), Moments()
    for part in parts:
        streamed.update(part)
        other = Moments().update(part.clone().requires_grad_())
        before = [tensor.clone() for tensor in other.state_tensors()]
        merged.merge(other).update(part[:0])
        assert_same(other.state_tensors(), before, rtol=0, atol=0)  # it stays as it was
    assert_moments(streamed, parts)
    assert_moments(merged, parts)
    assert not streamed.cov.requires_grad


@given(st.lists(st.integers(0, 30), max_size=6), st.floats(-1e3, 1e3), st.integers(0, 1000))
def test_merging_is_exact_whatever_the_shards(sizes, mean, seed):
    x = uneven(sum(sizes) + 2, 3, seed=seed) + mean
    total = Moments()
    for part in pieces(x, sizes):
        total.merge(Moments().update(part))
    assert_moments(total, [x], rtol=1e-8, atol=1e-10 * (1 + abs(mean)))


def test_all_leading_axes_are_one_cloud_and_the_mask_drops_rows():
    x, mask = uneven(3, 7, 5), some_mask(3, 7)
    assert_moments(Moments().update(x), [x])
    padded = torch.where(mask.unsqueeze(-1), x, torch.nan)
    assert_moments(Moments().update(padded, mask).update(x + 1), [x[mask], x + 1])
    assert_moments(Moments().update(padded, mask.long()), [x[mask]])


@pytest.mark.parametrize("batch", [3001, 100_000])
def test_float32_far_from_the_origin(batch):
    """Mean 100, standard deviation 1; the reference is in float64."""
    x = normal(100_000, 64, seed=1).float() + 100
    n, mean, cov = union([x], 64)
    stream = Moments()
    for part in x.split(batch):
        stream.update(part)
    assert np.linalg.norm(stream.cov.numpy() - cov) <= 1e-6 * np.linalg.norm(cov)
    assert np.abs(stream.mean.numpy() - mean).max() <= 1e-6
    assert int(stream.n) == n
    assert stream.cov.dtype == torch.float64


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e12])
def test_a_long_batch_is_summarised_before_its_values_are_looked_at(monkeypatch, scale):
    monkeypatch.setattr(moments, "_CHUNK", 7)
    x, mask = (uneven(200, 5) + 3) * scale, some_mask(200)
    before = uneven(9, 5) * scale
    stream = Moments().update(before)
    twin = copy.deepcopy(stream)
    assert_moments(stream.update(x.float()), [before, x.float()], rtol=1e-5, atol=1e-6 * scale**2)
    assert_moments(twin.update(x, mask), [before, x[mask]], rtol=1e-9, atol=1e-12 * scale**2)


@pytest.mark.parametrize(("bad", "word"), [(torch.nan, "finite"), (-torch.inf, "finite"), (1e30, "fit")])
def test_a_bad_value_in_a_long_batch_leaves_no_trace(monkeypatch, bad, word):
    monkeypatch.setattr(moments, "_CHUNK", 7)
    x = uneven(200, 5).float()
    stream, twin = Moments().update(x), Moments().update(x)
    spoilt = x.clone()
    spoilt[150, 2] = bad
    check_rejects(stream.update, DegenerateError, word, spoilt)
    assert_same(stream.update(x).cov, twin.update(x).cov, rtol=0, atol=0)


def test_empty_updates_change_nothing():
    x = uneven(9, 5)
    stream = Moments().update(x)
    stream.update(uneven(4, 5), torch.zeros(4, dtype=torch.bool)).update(torch.ones(0, 5)).merge(Moments())
    assert_moments(stream, [x])
    late = Moments().update(torch.ones(4, 5), torch.zeros(4, dtype=torch.bool)).update(x)
    assert_moments(late, [x])
    assert_moments(Moments().merge(stream), [x])
    assert_moments(Moments(5).merge(stream), [x])


def test_saved_and_restored():
    x, y = uneven(9, 5).float(), uneven(6, 5, seed=4)
    stream = Moments().update(x)
    state = [part.clone() for part in stream.state_tensors()]
    for twin in (pickle.loads(pickle.dumps(stream)), copy.deepcopy(stream), Moments.from_state(*state)):
        assert_same(twin.update(y).cov, Moments().update(x).update(y).cov)
    assert_moments(stream, [x], rtol=1e-5, atol=1e-6)
    assert_same(stream.to("cpu").cov, Moments.from_state(*state).cov)


def test_what_came_in_inference_mode_is_added_to_later():
    x, y = uneven(9, 5), uneven(6, 5, seed=4)
    with torch.inference_mode():
        streams = [Moments().update(x + 0), Moments().merge(Moments().update(x + 0)), LengthMoments().update(x + 0)]
    assert_moments(streams[0].update(y), [x, y])
    assert_moments(streams[1].merge(Moments().update(y)), [x, y])
    assert_moments(streams[2].update(y).moments, [x, y])


def test_a_state_stays_where_it_is():
    x, mask = uneven(9, 5), some_mask(9)
    for kind in (Moments, LengthMoments):
        stream = kind(5, device="meta").update(x, mask)  # stands for a state on an accelerator
        assert {part.device.type for part in stream.state_tensors()} == {"meta"}


def test_too_few_points():
    with pytest.raises(ShapeError, match=r"Moments.mean needs at least 1 points; got 0"):
        _ = Moments().mean
    with pytest.raises(ShapeError, match=r"Moments.cov needs at least 2 points; got 1"):
        _ = Moments().update(torch.ones(1, 3)).cov
    with pytest.raises(ShapeError, match="its dimension"):
        Moments().state_tensors()
    assert int(Moments().n) == 0
    assert_same(Moments().update(torch.ones(1, 3)).mean, torch.ones(3).double())


def test_rejected_input():
    stream = Moments().update(torch.ones(4, 3))
    check_rejects(stream.update, ShapeError, "must have 3 dimensions as before; got 4", torch.ones(4, 4))
    check_rejects(stream.update, ShapeError, "mask", torch.ones(4, 3), torch.ones(3).bool())
    check_rejects(stream.update, DegenerateError, "finite", torch.full((4, 3), torch.nan))
    check_rejects(stream.merge, ShapeError, "both must have 3 dimensions; got 2", Moments(2))
    assert int(stream.n) == 4


def test_updates_read_nothing_back():
    x, mask = uneven(3, 8, 6).to("meta"), some_mask(3, 8).to("meta")
    with no_values():
        stream = Moments().update(x).update(x, mask).update(x.float()).merge(Moments(6, device="meta"))
    assert stream.cov.shape == (6, 6)


@gpu
def test_cuda():
    x, mask = uneven(3, 50, 6).float(), some_mask(3, 50)
    stream = Moments().update(x.cuda(), mask.cuda())
    more, empty = x.cuda(), Moments(6, device="cuda")
    with never_waiting():
        stream.update(more).merge(empty)
    assert stream.mean.device.type == "cuda"
    assert_moments(stream.to("cpu"), [x[mask], x], rtol=1e-5, atol=1e-6)


@gpu
def test_cuda_strict():
    with checks.strict(), pytest.raises(ShapeError, match="at least 2 points"):
        _ = Moments().update(torch.ones(1, 3).cuda()).cov
