"""SBERT-WK: saved sentence vectors, the definition token by token, masks, and what it can't work with."""

import numpy as np
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


def by_loops(states, window):
    """One sentence (K, T, d) without padding, token by token."""
    vectors, spreads = [], []
    for token in states.transpose(1, 0, 2)[:-1]:
        alignment, novelty = [], []
        for k in range(len(token)):
            left = token[k - window : k] if k >= window else token[:0]
            columns = np.concatenate([left, token[k + 1 : k + window + 1], token[k : k + 1]]).T
            r = np.linalg.qr(columns, mode="r")
            others = r[:-1, :-1] / np.linalg.norm(r[:-1, :-1], axis=0)
            last = r[:, -1]
            toward = others.mean(1) @ last[:-1] / np.linalg.norm(last[:-1])
            alignment.append(1 / (2 * columns.shape[1] * toward))
            novelty.append(abs(last[-1]) / np.linalg.norm(last))
        weights = np.array(alignment) / sum(alignment) + np.array(novelty) / sum(novelty)
        vectors.append((weights / weights.sum()) @ token)
        unit = token / np.linalg.norm(token, axis=1, keepdims=True)
        spreads.append(np.var((unit[1:] * unit[:-1]).sum(1), ddof=1))
    return (np.array(spreads) / sum(spreads)) @ np.array(vectors)


@pytest.mark.parametrize("window", [1, 2, 3])
def test_definition(window):
    states = normal(6, 3, 5, 12).cumsum(0)  # each layer close to the one before
    got = sbert_wk(states, layer_start=1, window=window)
    want = np.stack([by_loops(states[1:, b].numpy(), window) for b in range(3)])
    assert_same(got, torch.from_numpy(want), rtol=1e-8)


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
    check_rejects(sbert_wk, ShapeError, "leave at least 2", states, torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]]))


@gpu
def test_cuda():
    inputs = load(CASE)
    want = sbert_wk(inputs["hidden_states"], inputs["attention_mask"])
    got = sbert_wk(inputs["hidden_states"].cuda(), inputs["attention_mask"].cuda())
    assert_same(got.cpu(), want, rtol=1e-7)
