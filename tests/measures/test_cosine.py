"""Cosine measures against the full matrix of cosines, the official values, and zero rows."""

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, points, values
from laws import LAWS
from sklearn.metrics.pairwise import cosine_similarity
from support import assert_same, check_dtypes, check_finite_gradient, check_gradient, check_rejects, gradient, uneven

from isonb.errors import DegenerateError, InputError
from isonb.measures.cosine import cls_uniformity, cosine_penalty, mean_cosine, token_uniformity

MEASURES = {name: law for name, law in LAWS.items() if "cosine" in name or name.startswith(("token_u", "cls_u"))}


def with_zero_rows(x):
    """The cloud with a zero row at the end and one in the middle (not first)."""
    zero = x.new_zeros(*x.shape[:-2], 1, x.shape[-1])
    return torch.cat([x[..., :2, :], zero, x[..., 2:, :], zero], -2)


@pytest.mark.parametrize("shape", [(2, 3), (9, 4), (5, 12)])
def test_what_the_official_code_has_not(shape):
    x = uneven(*shape)
    unit = x / x.norm(dim=1, keepdim=True)
    products = (unit[:, None] * unit).flatten(0, 1)[~torch.eye(len(x), dtype=torch.bool).flatten()]
    assert_same(MEASURES["cosine_contributions"](x), products.mean(0))
    assert_same(MEASURES["cls_uniformity without self"](x), (unit[1:] @ unit[0]).mean())
    assert_same(MEASURES["token_uniformity"](x), products.sum(1).mean())


@pytest.mark.parametrize("case", cases("spectral"))
def test_official_values(case):
    x, want = points(case), values("spectral", case)["cosine"]
    names = {
        "mean_cosine": "avg_cosine_offdiagonal",
        "cosine_penalty": "cosreg",
        "token_uniformity with self": "token_uniformity_with_diagonal",
        "cls_uniformity": "cls_uniformity_cosine_to_row0_including_itself",
    }
    for name, key in names.items():
        assert MEASURES[name](x).item() == pytest.approx(want[key], rel=1e-9, abs=1e-12)
    assert_matches(gradient(cosine_penalty, x), want["cosreg_grad"], rtol=1e-8, atol=1e-12)


def check_sentences(tokens, mask, saved):
    for padded, key in ((False, "valid_tokens"), (True, "padding_included_as_in_official_plots")):
        keep = torch.ones_like(mask) if padded else mask
        got = token_uniformity(tokens, keep), cls_uniformity(tokens, keep)
        assert got[0].tolist() == pytest.approx(saved[f"token_uniformity_{key}"], rel=1e-9)
        assert got[1].tolist() == pytest.approx(saved[f"cls_uniformity_{key}"], rel=1e-9)


def test_official_values_of_each_sentence():
    case = load("tokens_4x12x32")
    check_sentences(case["tokens"], case["attention_mask"], values("spectral", "tokens_4x12x32")["per_sentence"])
    case, saved = load("minilm_tokens_3s"), values("spectral", "minilm_tokens_3s")
    for states, want in zip(case["hidden_states"], saved["per_sentence_by_layer"], strict=True):
        check_sentences(states, case["attention_mask"], want)


def test_sampled_pairs_approach_the_exact_mean():
    x = uneven(2, 30, 6)
    exact = mean_cosine(x)
    sampled = mean_cosine(x, n_pairs=40_000, generator=torch.Generator().manual_seed(0))
    cosines = [cosine_similarity(cloud.numpy()) for cloud in x]
    error = max(c[~np.eye(30, dtype=bool)].std() for c in cosines) / 40_000**0.5
    assert (sampled - exact).abs().max() < 4 * error
    again = mean_cosine(x, n_pairs=40_000, generator=torch.Generator().manual_seed(0))
    assert_same(sampled, again, rtol=0, atol=0)
    assert not torch.equal(sampled, mean_cosine(x, n_pairs=40_000, generator=torch.Generator().manual_seed(1)))


def test_a_sampled_pair_is_two_different_usable_points():
    x = torch.tensor([[1.0, 0], [0, 0], [0, 1], [5, 5]]).double()
    mask = torch.tensor([1, 1, 1, 0])
    for seed in range(20):  # only the pair of rows 0 and 2 is left, and its cosine is 0
        assert mean_cosine(x, mask=mask, n_pairs=7, generator=torch.Generator().manual_seed(seed)).item() == 0
    opposite = torch.tensor([[1.0, 0], [-2, 0]])
    assert mean_cosine(opposite, n_pairs=50, generator=torch.Generator().manual_seed(0)).item() == -1


def test_sampled_mean_is_differentiable():
    def sampled(z):
        return mean_cosine(z, n_pairs=9, generator=torch.Generator().manual_seed(0))

    check_gradient(sampled, uneven(2, 5, 3))
    check_dtypes(sampled, uneven(5, 3))


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "cosine_penalty"])
def test_zero_rows_are_left_out(name):
    x = uneven(7, 4)
    assert_same(MEASURES[name](with_zero_rows(x)), MEASURES[name](x))
    check_finite_gradient(MEASURES[name], with_zero_rows(x))


def test_zero_rows_count_in_the_penalty_and_add_nothing():
    x = with_zero_rows(uneven(7, 4))
    assert_same(cosine_penalty(x), cosine_penalty(uneven(7, 4)) * 49 / 81)
    slope = gradient(cosine_penalty, x)
    assert not slope[x.norm(dim=-1) == 0].any()
    assert torch.isfinite(slope).all()
    assert cosine_penalty(torch.zeros(4, 3)).item() == 0


def test_rejected_input():
    x = uneven(6, 4)
    for name, function in MEASURES.items():
        if name != "cosine_penalty":
            check_rejects(function, DegenerateError, f"^{name.split()[0]}: .* differ from zero", torch.zeros(5, 3))
    check_rejects(cls_uniformity, DegenerateError, "first token", torch.cat([torch.zeros(1, 4).double(), x]))
    for n_pairs in (0, -1):
        check_rejects(mean_cosine, InputError, "n_pairs", x, n_pairs=n_pairs)
    assert mean_cosine(torch.full((3, 2), 3e38)).item() == pytest.approx(1.0)
