"""SBERT-WK: saved sentence vectors, masks, and what it can't work with."""

import pytest
import torch
from golden_cases import load, values
from support import assert_same, check_rejects, gpu, normal

from isonb.errors import ShapeError
from isonb.transforms.sbert_wk import sbert_wk

CASE = "minilm_tokens_3s"
SAVED = values("layers", CASE)["sbert_wk"]


@pytest.mark.parametrize("key", SAVED)
def test_saved(key):
    inputs = load(CASE)
    start, window = int(key.split("_")[2]), int(key.split("_")[4])
    got = sbert_wk(inputs["hidden_states"], inputs["attention_mask"], layer_start=start, window=window)
    assert_same(got, torch.tensor(SAVED[key], dtype=torch.float64), rtol=1e-8, atol=1e-10)
    single = sbert_wk(inputs["hidden_states"].float(), inputs["attention_mask"], layer_start=start, window=window)
    assert_same(single.double(), got, rtol=1e-3, atol=1e-5)


def test_mask():
    states = normal(5, 2, 7, 8).cumsum(0)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [1] * 7])
    noisy = states.clone()
    noisy[:, 0, 4:] = float("nan")
    got = sbert_wk(tuple(noisy), mask, layer_start=0)
    assert_same(got[:1], sbert_wk(states[:, :1, :4], layer_start=0))
    assert_same(got[1:], sbert_wk(states[:, 1:], layer_start=0))


def test_hard_tokens():
    states = normal(5, 2, 4, 6).cumsum(0)
    states[:, 0, 1] = 0  # a zero token
    states[:, 0, 0] = states[:1, 0, 0]  # a token that never moves
    states[2, 1] = 0  # a layer of zeros
    out = sbert_wk(states.float(), layer_start=0)
    assert bool(torch.isfinite(out).all())
    still = states[:1].expand(5, 2, 4, 6)  # no variance anywhere: the plain mean
    assert_same(sbert_wk(still, layer_start=0), still[0, :, :-1].mean(1), rtol=1e-6)
    assert not sbert_wk(states.requires_grad_(), layer_start=0).requires_grad


def test_bad_input():
    states = normal(7, 2, 4, 6)
    check_rejects(sbert_wk, ShapeError, "at least 3 of the 7", states, layer_start=5)
    check_rejects(sbert_wk, ShapeError, "window of 0", states, window=0)
    check_rejects(sbert_wk, ShapeError, r"\(B, T, d\)", states[0])
    check_rejects(sbert_wk, ShapeError, "must be L", states[:0])
    for shape in ((1, 4), (2, 5), (2, 4, 1), (4,)):
        check_rejects(
            sbert_wk, ShapeError, r"one entry a row of a layer, shape \(2, 4\)", states, torch.ones(shape).bool()
        )
    check_rejects(sbert_wk, ShapeError, "leave at least 2", states, torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]))


@gpu
def test_cuda():
    inputs = load(CASE)
    want = sbert_wk(inputs["hidden_states"], inputs["attention_mask"])
    got = sbert_wk(inputs["hidden_states"].cuda(), inputs["attention_mask"].cuda())
    assert_same(got.cpu(), want, rtol=1e-7)
