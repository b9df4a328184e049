"""Spectra against numpy and scipy, the official values, and what must not change them."""

import numpy as np
import pytest
import torch
from golden_cases import cases, load, points, values
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support import assert_same, check_gradient, check_rejects, normal, some_mask, uneven

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb.measures.spectrum import (
    anisotropy,
    explained_variance,
    singular_values,
    spectral_cdf,
    spectral_median,
    spectral_skewness,
    varex_score,
)


@pytest.mark.parametrize("case", cases("spectral"))
def test_official_values(case):
    x, want = points(case), values("spectral", case)
    spectrum = want["spectrum"]
    k = len(spectrum["ev_1_2_3"])
    assert explained_variance(x, k).tolist() == pytest.approx(spectrum["ev_1_2_3"], rel=1e-9)
    for name, center in (("raw", False), ("centred", True)):
        share = want["anisotropy"][name]
        assert anisotropy(x, len(share), center=center).tolist() == pytest.approx(share, rel=1e-9)
    for center in (False, True):
        saved = spectrum["singular_values_centred" if center else "singular_values"]
        assert singular_values(x, center=center).tolist() == pytest.approx(saved, rel=1e-9, abs=1e-8)
    skewness = spectrum["skewness_all_singular_values_biased"]
    assert spectral_skewness(singular_values(x)).item() == pytest.approx(skewness, rel=1e-9, abs=1e-9)
    if isinstance(skewness := spectrum.get("skewness_without_smallest_singular_value"), float) and k > 2:
        got = spectral_skewness(singular_values(x, drop_last=True)).item()
        assert got == pytest.approx(skewness, rel=1e-9, abs=1e-9)


def sentence_values(tokens, mask, drop_last):
    """Singular values of the sentences of a batch in one list."""
    real = [sentence[keep] for sentence, keep in zip(tokens, mask.bool(), strict=True)]
    return torch.cat([singular_values(sentence, drop_last=drop_last) for sentence in real])


def check_pooled(tokens, mask, saved):
    for key, drop_last in ((None, False), ("official_drop_smallest", True)):
        want = saved if key is None else saved[key]
        pooled = sentence_values(tokens, mask, drop_last)
        assert len(pooled) == want["count"]
        assert spectral_skewness(pooled).item() == pytest.approx(want["skewness"], rel=1e-8)
        assert spectral_median(pooled).item() == pytest.approx(want["median_of_values_over_max"], rel=1e-8)


def test_pooled_spectra_of_sentences():
    case, saved = load("tokens_4x12x32"), values("spectral", "tokens_4x12x32")["per_sentence"]
    tokens, mask = case["tokens"], case["attention_mask"]
    check_pooled(tokens, mask, saved["pooled_singular_values_valid_tokens"])
    everything = torch.ones_like(mask)
    check_pooled(tokens, everything, saved["pooled_singular_values_padding_included_as_in_official_plots"])


def test_pooled_spectra_of_every_layer_of_an_encoder():
    case, saved = load("minilm_tokens_3s"), values("spectral", "minilm_tokens_3s")
    for layer, want in enumerate(saved["per_sentence_by_layer"]):
        states = case["hidden_states"][layer]
        check_pooled(states, case["attention_mask"], want["pooled_singular_values_valid_tokens"])
        flat, stacked = states[case["attention_mask"].bool()], saved["per_layer_valid_tokens"][layer]
        assert anisotropy(flat).tolist() == pytest.approx(stacked["anisotropy"]["raw"], rel=1e-8)
        assert anisotropy(flat, center=True).tolist() == pytest.approx(stacked["anisotropy"]["centred"], rel=1e-8)
        assert spectral_skewness(singular_values(flat)).item() == pytest.approx(stacked["skewness"], rel=1e-8)


def test_pooling_by_mask():
    case = load("tokens_4x12x32")
    tokens, mask = case["tokens"], case["attention_mask"]
    padded = singular_values(tokens, mask=mask)
    real = torch.arange(12) < mask.sum(-1, keepdim=True)  # values beyond the real tokens are zeros of the padding
    assert padded[~real].abs().max() < 1e-9
    pooled = spectral_skewness(padded.flatten(), mask=real.flatten())
    assert_same(pooled, spectral_skewness(sentence_values(tokens, mask, False)))
    check_gradient(lambda s: spectral_skewness(s, mask=some_mask(2, 9)), uneven(2, 9).abs())


@given(st.lists(st.floats(0, 100, allow_subnormal=False), min_size=3, max_size=20).filter(lambda v: np.ptp(v) > 1e-3))
def test_skewness_median_and_distribution_match_scipy(numbers):
    s = torch.tensor(numbers, dtype=torch.float64)
    assert spectral_skewness(s).item() == pytest.approx(stats.skew(numbers), rel=1e-7, abs=1e-9)
    over = np.array(numbers) / max(numbers)
    for q in (0.1, 0.25, 0.5, 1.0):
        assert spectral_median(s, q).item() == pytest.approx(np.quantile(over, q), rel=1e-9, abs=1e-12)
    x, share = spectral_cdf(s)
    want = stats.ecdf(over).cdf
    for value in over:
        last = int((x <= value + 1e-12).sum()) - 1
        assert share[last].item() == pytest.approx(want.evaluate(value + 1e-12))
    assert (x.diff() >= 0).all()


@pytest.mark.parametrize(("n", "d", "p"), [(40, 10, 0.3), (40, 10, 0.25), (5, 12, 0.75), (100, 100, 0.29)])
def test_varex_is_the_ratio_of_shares(n, d, p):
    x = uneven(n, d)
    variances = np.sort(np.linalg.eigvalsh(np.cov(x.numpy().T)))[::-1]
    explained = np.append(np.cumsum(variances) / variances.sum(), np.ones(2))
    m = round(p * 1000) * d // 1000
    assert varex_score(x, p).item() == pytest.approx(m / d / explained[m - 1], rel=1e-9)
    assert varex_score(x, p, official_index=True).item() == pytest.approx(m / d / explained[m], rel=1e-9)
    flat = normal(50, 1) * torch.ones(d)
    assert varex_score(flat, p).item() == pytest.approx(m / d)


def test_masked_spectrum_ends_in_zeros():
    x, mask = uneven(9, 6), some_mask(9)
    for center in (False, True):
        full, dropped = singular_values(x, center=center, mask=mask), singular_values(x[mask], center=center)
        assert_same(full[: len(dropped)], dropped)
        assert (full[len(dropped) :].abs() < 1e-12).all()


def test_rejected_input():
    x = uneven(6, 4)
    for k in (0, 5, 2.0):
        check_rejects(anisotropy, ShapeError, "k must be between 1 and 4", x, k)
    check_rejects(singular_values, ShapeError, "drop_last", x[:1], drop_last=True)
    check_rejects(singular_values, ShapeError, "at least 2 points", x[:1], center=True)
    check_rejects(anisotropy, DegenerateError, "not all be zero", torch.zeros(5, 3))
    check_rejects(anisotropy, DegenerateError, "not all be equal", torch.full((7, 3), 0.1), center=True)
    check_rejects(varex_score, DegenerateError, "not all be equal", torch.full((7, 4), 0.1))
    for p in (0, 1.5, 0.1, float("nan")):
        check_rejects(varex_score, InputError, "p must be in", x, p)
    check_rejects(spectral_skewness, DegenerateError, "not all be equal", torch.full((5,), 0.1))
    check_rejects(spectral_skewness, ShapeError, "mask", torch.rand(3), mask=torch.ones(2).bool())
    check_rejects(spectral_median, DegenerateError, "positive", torch.zeros(3))
    check_rejects(spectral_median, InputError, "q must be", torch.ones(3), 1.5)
