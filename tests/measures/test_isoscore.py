"""IsoScore and IsoScore* against the five steps of the paper, the official code, and the properties it promises."""

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, points, shrinkage, values
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf, oas
from support import (
    P4,
    Q8,
    assert_same,
    check_batch_equals_loop,
    check_dtypes,
    check_finite_gradient,
    check_gradient,
    check_rejects,
    gradient,
    normal,
    uneven,
)

from isonb.errors import DegenerateError, InputError, ShapeError
from isonb.measures.isoscore import isoscore, isoscore_from_cov, isoscore_star, participation_ratio, shrinkage_intensity


def wishart(d, seed=3):
    """A full covariance of d dimensions."""
    return torch.cov(uneven(4 * d, d, seed=seed).T)


def five_steps(cov):
    """IsoScore by its published steps, from the eigenvalues."""
    eigenvalues = np.linalg.eigvalsh(np.asarray(cov))
    d = len(eigenvalues)
    normed = np.sqrt(d) * eigenvalues / np.linalg.norm(eigenvalues)
    defect = np.linalg.norm(normed - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    fraction = (d - defect**2 * (d - np.sqrt(d))) ** 2 / d**2
    return (d * fraction - 1) / (d - 1)


@pytest.mark.parametrize("shape", [(6, 9), (9, 4), (5, 10), (7, 7)])  # every path through the maths
@pytest.mark.parametrize("zeta", [0, 0.2, 0.7, 1])
def test_the_ratio_of_norms_is_the_five_steps(shape, zeta):
    x, base = uneven(*shape), wishart(shape[1])
    cov = torch.cov(x.T)
    assert_same(isoscore_star(x, zeta, base), torch.tensor(five_steps((1 - zeta) * cov + zeta * base)))
    scaled = torch.eye(shape[1], dtype=torch.float64) * cov.trace() / shape[1]
    assert_same(isoscore_star(x, zeta), torch.tensor(five_steps((1 - zeta) * cov + zeta * scaled)))
    assert_same(isoscore_from_cov(cov), torch.tensor(five_steps(cov)))
    assert_same(isoscore(x), isoscore_star(x, 0, base))
    bases = torch.stack([base, wishart(shape[1], 7)])  # one a cloud
    want = torch.stack([isoscore_star(x, zeta, item) for item in bases])
    assert_same(isoscore_star(x.expand(2, *shape), zeta, bases), want)
    slopes = [gradient(lambda z, first=entry: isoscore_star(z, 1, first), x) for entry in (None, base)]
    assert all(slope.abs().max() < 1e-12 for slope in slopes)  # full shrinkage is constant
    single = isoscore_star(x.float().requires_grad_(), zeta, base.requires_grad_())
    assert_same(single, isoscore_star(x, zeta, base).float(), rtol=1e-5, atol=1e-6)
    single.backward()
    assert base.grad is None  # the matrix is a constant


@pytest.mark.parametrize("case", cases("spectral"))
def test_official_values(case):
    x, want = points(case), values("spectral", case)["isoscore"]
    for name in ("official", "official_torch"):
        if name in want:
            assert isoscore(x).item() == pytest.approx(want[name], abs=1e-7)
    bases = {"identity": torch.eye(x.shape[1]).double(), "saved_c0": shrinkage(case), "trace_scaled_identity": None}
    for name, base in bases.items():
        got = [isoscore_star(x, zeta, base).item() for zeta in want["zeta_values"]]
        assert got == pytest.approx(want["star"][name], rel=1e-9, abs=1e-12)
        assert got == pytest.approx(want["star_official"][name], abs=1e-7)  # its square roots of d are float32
        if base is not None:
            slope = gradient(lambda z, base=base: isoscore_star(z, 0.2, base), x)
            assert_matches(slope, want["gradient_zeta_0.2"][name], rtol=1e-8, atol=1e-13)


def test_official_values_with_padding_and_over_layers():
    tokens = values("spectral", "tokens_4x12x32")["with_padding"]["isoscore"]
    x = load("tokens_4x12x32")["tokens"].flatten(0, 1)
    got = [isoscore_star(x, zeta).item() for zeta in tokens["zeta_values"]]
    assert got == pytest.approx(tokens["star"]["trace_scaled_identity"], rel=1e-9)
    case = load("minilm_tokens_3s")
    layers = case["hidden_states"][1:].transpose(0, 1)  # any order: a score of the union
    mask = case["attention_mask"][:, None].expand(-1, 6, -1).bool()
    want = values("spectral", "minilm_tokens_3s")["layers_1_to_6"]["isoscore"]
    flat, keep = layers.reshape(-1, 384), mask.reshape(-1)
    for name, base in {"saved_c0": shrinkage("minilm_tokens_3s"), "trace_scaled_identity": None}.items():
        got = [isoscore_star(flat, zeta, base, mask=keep).item() for zeta in want["zeta_values"]]
        assert got == pytest.approx(want["star"][name], rel=1e-9)


@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 10**6), st.floats(-3, 3))
def test_bounds(n, d, seed, log_scale):
    x = uneven(n, d, seed=seed) * 10**log_scale
    assert 0 <= isoscore(x).item() <= (n - 2) / (d - 1) + 1e-9
    assert 0 <= isoscore_star(x, 0.2).item() <= 1
    assert 1 - 1e-12 <= participation_ratio(x).item() <= min(n - 1, d) + 1e-9
    if n > 3:  # averages of squares over distinct rows, the numerator's never the smaller
        assert participation_ratio(x, unbiased=True).item() >= 1 - 1e-9
    if n > 2:
        assert 0 <= shrinkage_intensity(x).item() <= 1


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=8), st.integers(0, 100))
def test_more_shrinkage_is_more_isotropic(spread, seed):
    x = normal(20, len(spread), seed=seed) * torch.tensor(spread, dtype=torch.float64)
    scores = [isoscore_star(x, zeta).item() for zeta in (0, 0.25, 0.5, 0.75, 1)]
    assert scores == sorted(scores)
    assert scores[-1] == pytest.approx(1)


def test_gradient_of_a_clamped_value_survives():
    plane = torch.tensor([[1.0, 0], [-1, 0], [2, 0], [-2, 0]], dtype=torch.float64)
    lifted = plane + 1e-3 * normal(4, 2)
    assert gradient(isoscore, lifted).abs().max() > 1e-4


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e6])
def test_rank_one_and_equal_rows(offset):
    line = torch.arange(5.0).double().unsqueeze(1) * torch.tensor([1.0, -2, 0.5]) + offset
    assert isoscore(line).item() == pytest.approx(0, abs=1e-9)
    check_finite_gradient(isoscore, line)
    check_finite_gradient(lambda z: isoscore_star(z, 0.2), line)
    equal = torch.full((7, 3), 0.1) + offset
    for function in (isoscore, participation_ratio, isoscore_star, shrinkage_intensity):
        check_rejects(function, DegenerateError, "must not all be equal", equal)
    check_rejects(isoscore, DegenerateError, "must not all be equal", torch.stack([equal, uneven(7, 3).float()]))


def test_equal_rows_beside_a_matrix_score_the_matrix():
    base = wishart(3)
    assert_same(isoscore_star(torch.ones(5, 3).double(), 0.2, base), isoscore_from_cov(base))
    check_rejects(isoscore_star, DegenerateError, "equal", torch.ones(5, 3), 0.2, torch.zeros(3, 3))
    check_rejects(isoscore_star, DegenerateError, "equal", torch.ones(5, 3), 0, torch.eye(3))


def test_rejected_input():
    x = uneven(6, 4)
    check_rejects(isoscore, ShapeError, "at least 2 dimensions", x[:, :1])
    check_rejects(isoscore, ShapeError, "at least 4 points", x[:3], unbiased=True)
    check_rejects(participation_ratio, DegenerateError, "unbiased", torch.eye(4).double(), unbiased=True)
    check_rejects(isoscore_star, InputError, r"zeta must be a number in \[0, 1\]", x, 1.5)
    check_rejects(isoscore_star, InputError, "zeta", x, "automatic")
    check_rejects(isoscore_star, InputError, "where shrinkage_cov is given; got .auto.. Leave", x, "auto", wishart(4))
    check_rejects(isoscore_star, ShapeError, r"must be \(4, 4\)", x, 0.2, wishart(3))
    check_rejects(isoscore_star, ShapeError, "shrinkage_cov", x, 0.2, wishart(4).expand(2, 4, 4))
    check_rejects(isoscore_from_cov, ShapeError, "square", x)
    check_rejects(isoscore_from_cov, ShapeError, "2 dimensions", torch.ones(1, 1))
    check_rejects(isoscore_from_cov, DegenerateError, "must not be zero", torch.zeros(3, 3))
    check_rejects(shrinkage_intensity, InputError, "method must be one of", x, "oracle")


def test_scores_from_a_covariance_are_differentiable():
    check_gradient(isoscore_from_cov, wishart(4))
    check_batch_equals_loop(isoscore_from_cov, torch.stack([wishart(4, seed) for seed in (1, 2, 3)]))
    check_dtypes(isoscore_from_cov, wishart(4))


def test_without_a_matrix_it_is_isoscore_on_another_scale():
    """So the bias of a small sample stays, which a matrix of a larger one takes away."""
    x, zeta, d = uneven(7, 5), 0.8, 5
    q = 1 / (1 + (d - 1) * isoscore(x))
    shrunk = 1 / d + (1 - zeta) ** 2 * (q - 1 / d)
    assert_same(isoscore_star(x, zeta), (1 / shrunk - 1) / (d - 1))


def test_intensities_match_scikit_learn():
    for x in (uneven(40, 6), uneven(12, 30)):
        assert shrinkage_intensity(x, "lw").item() == pytest.approx(ledoit_wolf(x.numpy())[1], rel=1e-9)
    d = 500  # scikit-learn leaves out the terms in 2/d, which vanish in high dimension
    wide = normal(60, d) * torch.linspace(0.2, 3, d)
    assert shrinkage_intensity(wide, "oas").item() == pytest.approx(oas(wide.numpy())[1], rel=5e-3)


def test_published_and_hand_worked_scores():
    figure = torch.diag(torch.tensor([10.0, 6, 4, 4] + 764 * [1.0], dtype=torch.float64))  # of I-STAR
    for got, want in (
        (isoscore_from_cov(figure), 0.867339),
        (participation_ratio(Q8), 1.843810),
        (participation_ratio(Q8, unbiased=True), 2.189421),
        (isoscore(Q8), 0.421905),
        (isoscore(Q8, unbiased=True), 0.594711),
        (participation_ratio(P4, unbiased=True), 8 / 3),
    ):
        assert got.item() == pytest.approx(want, abs=5e-7)


def test_the_suite_of_the_isoscore_paper():
    """Rudman et al. 2022: dimensions used, the largest variance, lines and planes."""
    used = [torch.diag((torch.arange(25) < k).double()) for k in range(1, 26)]
    assert_same(torch.stack(list(map(isoscore_from_cov, used))), torch.arange(25.0).double() / 24, atol=1e-12)
    largest = {1: 1.0, 10: 0.257, 25: 0.0915, 75: 0.028}
    for variance, want in largest.items():
        cov = torch.diag(torch.tensor([variance] + [1.0] * 9).double())
        assert isoscore_from_cov(cov).item() == pytest.approx(want, abs=1e-3)
    points = normal(20_000, 25, seed=7) * used[6].diag()
    assert isoscore(points).item() == pytest.approx(6 / 24, abs=5e-3)
    line, (x, y) = torch.linspace(-3, 5, 200).double().unsqueeze(1), normal(2, 10_000, seed=12)
    for direction in (torch.tensor([1.0, 2, -3]), normal(1, 1000, seed=11)):
        assert isoscore(line * direction).item() == pytest.approx(0, abs=1e-12)
    assert isoscore(torch.stack([x, y, (x + 2 * y - 4) / 3], 1)).item() == pytest.approx(0.455, abs=0.01)
    assert isoscore(torch.stack([x, y, 6 + x - 5 * y], 1)).item() == pytest.approx(0.037, abs=0.003)
