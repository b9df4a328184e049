"""Token spectra against one sentence at a time, written another way."""

import numpy as np
import pytest
import torch
from scipy.stats import skew

from isonb_lab.papers.token_spectra import token_spectrum


@pytest.fixture
def sentences():
    g = torch.Generator().manual_seed(0)
    states = torch.randn(5, 9, 12, generator=g, dtype=torch.float64) + 1
    lengths = torch.tensor([9, 4, 7, 2, 9])
    return states, torch.arange(9) < lengths[:, None]


def test_sentence_by_sentence(sentences):
    states, mask = sentences
    result = token_spectrum(states, mask)
    real = [x[m].numpy() for x, m in zip(states, mask, strict=True)]
    values = np.concatenate([np.linalg.svd(x, compute_uv=False) for x in real])
    assert np.allclose(np.sort(result.values.numpy()), np.sort(values))
    assert result.skewness == pytest.approx(skew(values))
    assert result.median == pytest.approx(np.median(values) / values.max())
    assert result.quantile(0.25) == pytest.approx(np.quantile(values, 0.25) / values.max())
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in real]
    cosines = [(x @ x.T)[~np.eye(len(x), dtype=bool)].mean() for x in unit]
    assert result.token_uniformity == pytest.approx(np.mean(cosines))
    assert result.cls_uniformity == pytest.approx(np.mean([(x @ x[0]).mean() for x in unit]))


def test_bound_is_the_theorem(sentences):
    states, mask = sentences
    ratios = []
    for x, m in zip(states, mask, strict=True):
        rows = x[m].numpy()
        _, s, vt = np.linalg.svd(rows, full_matrices=False)
        for k in range(len(s)):
            away = rows - rows @ vt[:k].T @ vt[:k]
            ratios.append(np.linalg.norm(away, axis=1).max() / s[k])
    result = token_spectrum(states, mask).bound
    assert result == pytest.approx(max(ratios))
    assert result <= 1 + 1e-12


def test_padding_may_hold_anything(sentences):
    states, mask = sentences
    other = torch.where(mask[..., None], states, 1e3)
    assert token_spectrum(other, mask).values.tolist() == token_spectrum(states, mask).values.tolist()
