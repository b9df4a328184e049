"""Token spectra against one sentence at a time, written another way."""

import numpy as np
import pytest
import torch
from scipy.stats import skew

from isonb_lab.papers.token_spectra import token_spectrum
from tests.support import normal


@pytest.fixture
def sentences():
    return normal(5, 9, 12) + 1, torch.arange(9) < torch.tensor([9, 4, 7, 2, 9])[:, None]


def test_sentence_by_sentence(sentences):
    states, mask = sentences
    result = token_spectrum(torch.where(mask[..., None], states, 1e3), mask)  # padding may hold anything
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
        aways = [rows - rows @ vt[:k].T @ vt[:k] for k in range(len(s))]
        ratios += [np.linalg.norm(away, axis=1).max() / s[k] for k, away in enumerate(aways)]
    result = token_spectrum(states, mask)
    assert result.bound == pytest.approx(max(ratios))
    assert result.bound <= 1 + 1e-12
