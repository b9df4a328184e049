"""IsoScore and IsoScore* against the five steps of the paper, the official code, and the properties it promises."""

import functools

import numpy as np
import pytest
import torch
from golden_cases import assert_matches, cases, load, points, shrinkage, values
from hypothesis import given
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf, oas
from support import (
    as_on_an_accelerator,
    assert_same,
    check_asynchronous,
    check_batch_equals_loop,
    check_cuda,
    check_dtypes,
    check_finite_gradient,
    check_gradient,
    check_invariant,
    check_mask_equals_drop,
    check_rejects,
    gpu,
    gradient,
    normal,
    some_mask,
    uneven,
)

from isonb.checks import DegenerateError, DtypeError, InputError, ShapeError
from isonb.isoscore import isoscore, isoscore_from_cov, isoscore_star, participation_ratio, shrinkage_intensity
from isonb.purity import purity

Q8 = [[3, 0, 0], [-3, 0, 1], [0, 2, 0], [0, -2, -1], [1, 1, 1], [-1, -1, -1], [2, 1, 0], [-2, -1, 0]]
Q8 = torch.tensor(Q8, dtype=torch.float64)
P4 = torch.tensor([[2, 0], [0, 1], [1, 3], [4, 4]], dtype=torch.float64)
CROSS = torch.tensor([[1, 0], [0, 2], [-1, 0], [0, -2]], dtype=torch.float64)
VARIANCES = torch.cat([torch.tensor([10.0, 6, 4, 4]), torch.ones(764)]).double()


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


def unbiased_by_distinct_rows(x):
    """PR-U from its definition: products of covariance entries averaged over quadruples of distinct rows."""
    n = len(x)
    top = bottom = 0.0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                for m in range(n):
                    if len({i, j, k, m}) == 4:
                        a, b = x[i] - x[j], x[k] - x[m]
                        top += (a @ a) * (b @ b)
                        bottom += (a @ b) ** 2
    return top / bottom


# every path through the maths: few rows, many rows, half of the dimensions, equal
SHAPES = [(6, 9), (9, 4), (5, 10), (7, 7)]
STARS = {
    "plain": isoscore,
    "ratio": participation_ratio,
    "unbiased": functools.partial(isoscore, unbiased=True),
    "identity": functools.partial(isoscore_star, zeta=0.3),
    "auto": functools.partial(isoscore_star, zeta="auto"),
    "matrix": lambda x, **k: isoscore_star(x, 0.3, wishart(x.shape[-1]).to(x), **k),
    "intensity": shrinkage_intensity,
    "oas": functools.partial(shrinkage_intensity, method="oas"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("zeta", [0, 0.2, 0.7, 1])
def test_the_ratio_of_norms_is_the_five_steps(shape, zeta):
    x, base = uneven(*shape), wishart(shape[1])
    cov = torch.cov(x.T)
    assert_same(isoscore_star(x, zeta, base), torch.tensor(five_steps((1 - zeta) * cov + zeta * base)))
    scaled = torch.eye(shape[1], dtype=torch.float64) * cov.trace() / shape[1]
    assert_same(isoscore_star(x, zeta), torch.tensor(five_steps((1 - zeta) * cov + zeta * scaled)))
    assert_same(isoscore_from_cov(cov), torch.tensor(five_steps(cov)))
    assert_same(isoscore(x), isoscore_star(x, 0, base))


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


@pytest.mark.parametrize(
    "case", [c for c in cases("spectral") if "gradient_zeta_0.2" in values("spectral", c)["isoscore"]]
)
def test_official_gradient(case):
    x, want = points(case), values("spectral", case)["isoscore"]["gradient_zeta_0.2"]
    bases = {"identity": torch.eye(x.shape[1]).double(), "saved_c0": shrinkage(case)}
    for name, base in bases.items():
        slope = gradient(lambda z, base=base: isoscore_star(z, 0.2, base), x)
        assert_matches(slope, want[name], rtol=1e-8, atol=1e-13)


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


def test_known_numbers():
    assert isoscore(P4).item() == pytest.approx(0.551724, abs=5e-7)
    eye = torch.eye(2).double()
    got = [isoscore_star(CROSS, zeta, eye).item() for zeta in (0, 0.3, 1)]
    assert got == pytest.approx([0.470588, 0.628944, 1], abs=5e-7)
    assert isoscore_from_cov(torch.diag(VARIANCES)).item() == pytest.approx(0.867339, abs=5e-7)
    assert participation_ratio(Q8).item() == pytest.approx(1.843810, abs=5e-7)
    assert participation_ratio(Q8, unbiased=True).item() == pytest.approx(2.189421, abs=5e-7)
    assert isoscore(Q8).item() == pytest.approx(0.421905, abs=5e-7)
    assert isoscore(Q8, unbiased=True).item() == pytest.approx(0.594711, abs=5e-7)
    assert participation_ratio(P4, unbiased=True).item() == pytest.approx(8 / 3)


def test_known_intensities():
    want = {"lw": 0.392298, "sqrt-lw": 0.220448, "oas": 0.677891}
    for method, zeta in want.items():
        assert shrinkage_intensity(Q8, method).item() == pytest.approx(zeta, abs=5e-7)
    assert shrinkage_intensity(P4, "lw").item() == shrinkage_intensity(P4).item() == 1
    scores = {"lw": 0.717951, "sqrt-lw": 0.586115, "oas": 0.908371, "sqrt-oas": 0.747937}
    for method, score in scores.items():
        assert isoscore_star(Q8, shrinkage_intensity(Q8, method).item()).item() == pytest.approx(score, abs=5e-7)
    assert isoscore_star(Q8, "auto").item() == pytest.approx(0.586115, abs=5e-7)
    assert isoscore_star(P4, "auto").item() == pytest.approx(1)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
def test_intensities_match_scikit_learn(shape):
    x = uneven(*shape)
    assert shrinkage_intensity(x, "lw").item() == pytest.approx(ledoit_wolf(x.numpy())[1], rel=1e-9)


def test_oracle_intensity_matches_scikit_learn():
    d = 500  # scikit-learn leaves out the terms in 2/d, which vanish in high dimension
    wide = normal(60, d) * torch.linspace(0.2, 3, d)
    assert shrinkage_intensity(wide, "oas").item() == pytest.approx(oas(wide.numpy())[1], rel=5e-3)


def test_an_isotropic_sample_asks_for_full_shrinkage():
    x = torch.cat([torch.eye(3), -torch.eye(3)]).double()
    for method in ("lw", "sqrt-lw", "oas", "sqrt-oas"):
        assert shrinkage_intensity(x, method).item() == 1
    assert isoscore_star(x, "auto").item() == pytest.approx(1)
    check_finite_gradient(lambda z: isoscore_star(z, "auto"), x)
    check_finite_gradient(shrinkage_intensity, x)


@pytest.mark.parametrize("shape", [(5, 3), (6, 2), (7, 9)])
def test_unbiased_ratio_is_an_average_over_distinct_rows(shape):
    x = uneven(*shape)
    want = unbiased_by_distinct_rows(x.numpy())
    assert participation_ratio(x, unbiased=True).item() == pytest.approx(want, rel=1e-9)


def test_unbiased_score_hits_the_population_where_the_plain_one_is_bound():
    truth = isoscore_from_cov(torch.diag(VARIANCES)).item()
    draws = normal(24, 64, 768, seed=5) * VARIANCES.sqrt()
    plain, unbiased = isoscore(draws), isoscore(draws, unbiased=True)
    assert plain.max() < 62 / 767
    assert unbiased.mean().item() == pytest.approx(truth, abs=4 * 0.04 / 24**0.5)


def test_sample_scores_of_the_figure_of_istar():
    batch, larger = normal(700, 768, seed=1) * VARIANCES.sqrt(), normal(20_000, 768, seed=2) * VARIANCES.sqrt()
    base = larger.T.cov()
    got = [isoscore_star(batch, zeta, base).item() for zeta in (0, 0.2, 0.4, 0.6, 0.8)]
    assert got == pytest.approx([0.444, 0.538, 0.643, 0.745, 0.818], abs=0.01)
    assert isoscore_star(batch, "auto").item() == pytest.approx(0.866, abs=4 * 0.009)


# --- the suite of Rudman et al. 2022 -----------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 9, 1000])
def test_suite_high_dimension(d):
    assert isoscore_from_cov(torch.eye(d).double()).item() == pytest.approx(1)
    if d < 10:
        assert isoscore(normal(100_000, d, seed=d)).item() == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("k", range(1, 26))
def test_suite_dimensions_used(k):
    used = (torch.arange(25) < k).double()
    assert isoscore_from_cov(torch.diag(used)).item() == pytest.approx((k - 1) / 24)
    if k in (1, 7, 25):
        assert isoscore(normal(20_000, 25, seed=k) * used).item() == pytest.approx((k - 1) / 24, abs=5e-3)


@pytest.mark.parametrize(("x", "want"), [(1, 1.0), (10, 0.257), (25, 0.0915), (75, 0.028)])
def test_suite_maximum_variance(x, want):
    cov = torch.diag(torch.tensor([x] + [1.0] * 9).double())
    closed = ((x + 9) ** 2 / (x**2 + 9) - 1) / 9
    assert isoscore_from_cov(cov).item() == pytest.approx(closed)
    assert closed == pytest.approx(want, abs=1e-3)
    assert isoscore(normal(100_000, 10, seed=x) * cov.diag().sqrt()).item() == pytest.approx(closed, abs=0.01)


def test_suite_mean_and_scalar_covariance():
    x = normal(20_000, 5, seed=4)
    want = isoscore(x)
    for mean in np.linspace(0, 20, 5):
        assert_same(isoscore(x + mean), want)
    for variance in np.linspace(1, 25, 5):
        assert_same(isoscore(x * variance**0.5 + 3), want)
    assert want.item() == pytest.approx(1, abs=5e-3)


@pytest.mark.parametrize("scale", [1e-5, 1000.0])
def test_suite_scales_and_a_mean_of_a_thousand_in_float32(scale):
    x = (normal(10_000, 3, seed=6) * scale**0.5).float()
    assert isoscore(x).item() == pytest.approx(1, abs=5e-3)
    shifted = normal(10_000, 3, seed=6).float() + 1000
    assert isoscore(shifted).item() == pytest.approx(isoscore(shifted.double()).item(), rel=1e-5)


def test_suite_rotation():
    cov = torch.tensor([[1, 0.8], [0.8, 1]]).double()
    assert isoscore_from_cov(cov).item() == pytest.approx(4 / 3.28 - 1)
    x = normal(10_000, 2, seed=8) @ torch.linalg.cholesky(cov).T
    assert isoscore(x).item() == pytest.approx(0.2195, abs=0.01)
    for degrees in (120, 240):
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        assert_same(isoscore(x @ torch.tensor([[c, s], [-s, c]])), isoscore(x))
    assert_same(isoscore(x @ torch.linalg.eigh(x.T.cov())[1]), isoscore(x))


def test_suite_global_stability():
    line = normal(1000, 1, seed=9).expand(-1, 3)
    meat = normal(15_000, 3, seed=10)
    got = [isoscore(torch.cat([line, meat[:m]])).item() for m in (0, 1000, 5000, 15_000)]
    assert got == pytest.approx([0, 0.5, 0.921, 0.988], abs=0.03)
    assert got == sorted(got)


def test_suite_lines_and_planes():
    t = torch.linspace(-3, 5, 200).double().unsqueeze(1)
    assert isoscore(t * torch.tensor([1.0, 2, -3])).item() == pytest.approx(0, abs=1e-12)
    assert isoscore(t * normal(1, 1000, seed=11)).item() == pytest.approx(0, abs=1e-12)
    assert isoscore_from_cov(torch.ones(10, 10).double()).item() == pytest.approx(0, abs=1e-12)
    assert isoscore_from_cov(torch.diag(torch.tensor([1e5, 1e-10, 1e-10]).double())).item() == pytest.approx(
        0, abs=1e-9
    )
    x, y = normal(10_000, 1, seed=12), normal(10_000, 1, seed=13)
    assert isoscore(torch.cat([x, y, (x + 2 * y - 4) / 3], 1)).item() == pytest.approx(0.455, abs=0.01)
    assert isoscore(torch.cat([x, y, 6 + x - 5 * y], 1)).item() == pytest.approx(0.037, abs=0.003)


@pytest.mark.slow
def test_suite_a_thousand_dimensions_are_biased_by_the_sample():
    assert isoscore(normal(10_000, 1000, seed=14).float()).item() == pytest.approx(0.909, abs=2e-3)


# --- the base every measure shares -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STARS)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradient(name, shape):
    check_gradient(STARS[name], uneven(*shape))


@pytest.mark.parametrize("shape", [(4, 5), (5, 3)])
def test_second_derivative(shape):
    for name in ("plain", "identity", "matrix"):
        check_gradient(STARS[name], uneven(*shape), twice=True)


def test_gradient_under_a_mask():
    x, mask = uneven(2, 8, 5), some_mask(2, 8)
    for function in STARS.values():
        check_gradient(lambda z, f=function: f(z, mask=mask), x)


@pytest.mark.parametrize("name", STARS)
def test_batches_and_masks(name):
    for shape in ((3, 9, 4), (3, 9, 20)):
        x, mask = uneven(*shape), some_mask(*shape[:2])
        check_batch_equals_loop(STARS[name], x)
        check_batch_equals_loop(STARS[name], x, mask)
        check_mask_equals_drop(STARS[name], x[0], mask[0])


def test_one_matrix_a_cloud():
    x, bases = uneven(3, 9, 4), torch.stack([wishart(4, seed) for seed in (1, 2, 3)])
    want = torch.stack([isoscore_star(cloud, 0.4, base) for cloud, base in zip(x, bases, strict=True)])
    assert_same(isoscore_star(x, 0.4, bases), want)


@pytest.mark.parametrize("name", ["plain", "ratio", "unbiased", "identity", "auto", "intensity"])
def test_invariances(name):
    for shape in ((12, 5), (6, 15)):
        check_invariant(STARS[name], uneven(*shape), ["permutation", "rotation", "translation", "scale", "reflection"])


@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 10**6), st.floats(-3, 3))
def test_bounds(n, d, seed, log_scale):
    x = uneven(n, d, seed=seed) * 10**log_scale
    assert 0 <= isoscore(x).item() <= (n - 2) / (d - 1) + 1e-9
    assert 0 <= isoscore_star(x, 0.2).item() <= 1
    assert 1 - 1e-12 <= participation_ratio(x).item() <= min(n - 1, d) + 1e-9
    if n > 2:
        assert 0 <= shrinkage_intensity(x).item() <= 1


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=8), st.integers(0, 100))
def test_more_shrinkage_is_more_isotropic(spread, seed):
    x = normal(20, len(spread), seed=seed) * torch.tensor(spread, dtype=torch.float64)
    scores = [isoscore_star(x, zeta).item() for zeta in (0, 0.25, 0.5, 0.75, 1)]
    assert scores == sorted(scores)
    assert scores[-1] == pytest.approx(1)


@pytest.mark.parametrize("name", [n for n in STARS if n != "matrix"])
def test_dtypes(name):
    check_dtypes(STARS[name], uneven(30, 6))


def test_shrinkage_matrix_is_cast_and_constant():
    x, base = uneven(30, 6), wishart(6).requires_grad_()
    score = isoscore_star(x.float().requires_grad_(), 0.2, base)
    assert score.dtype == torch.float32
    assert score.item() == pytest.approx(isoscore_star(x, 0.2, base).item(), rel=1e-5)
    score.backward()
    assert base.grad is None


def test_full_shrinkage_is_constant():
    for base in (None, wishart(4)):
        assert not gradient(lambda z, base=base: isoscore_star(z, 1, base), uneven(9, 4)).abs().gt(1e-12).any()
    assert isoscore_star(uneven(9, 4), 1).item() == pytest.approx(1)


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


def test_limits_where_values_are_not_looked_at(monkeypatch):
    as_on_an_accelerator(monkeypatch)
    equal = torch.full((7, 3), 0.1) + 1e3
    assert isoscore(equal).item() == 0
    assert participation_ratio(equal).item() == 1
    assert isoscore(equal, unbiased=True).item() == pytest.approx(0, abs=1e-6)
    assert isoscore_from_cov(torch.zeros(3, 3)).item() == 0
    for function in STARS.values():
        check_finite_gradient(function, equal)
        assert not gradient(function, equal).any()
    huge = torch.full((7, 3), 1e30) * torch.arange(7.0).unsqueeze(1)
    for function in STARS.values():
        check_finite_gradient(function, huge)
    simplex = torch.eye(4)
    assert participation_ratio(simplex, unbiased=True).item() == 0
    check_finite_gradient(STARS["unbiased"], simplex)
    no_rows = torch.zeros(2, 5, dtype=torch.bool)
    for function in STARS.values():
        assert torch.isfinite(function(uneven(2, 5, 3), mask=no_rows)).all()


def test_orthogonal_points_have_no_unbiased_ratio():
    check_rejects(participation_ratio, DegenerateError, "unbiased", torch.eye(4).double(), unbiased=True)


@pytest.mark.parametrize("scale", [1e-15, 1e-9, 1e9, 1e15])
def test_scale_does_not_overflow_float32(scale):
    x = uneven(20, 6).float()
    base = wishart(6).float()
    assert isoscore(x * scale).item() == pytest.approx(isoscore(x).item(), rel=1e-5)
    got = isoscore_star(x * scale, 0.2, base * scale**2)
    assert got.item() == pytest.approx(isoscore_star(x, 0.2, base).item(), rel=1e-5)
    check_finite_gradient(isoscore, x * scale)


def test_rejected_input():
    x = uneven(6, 4)
    check_rejects(isoscore, ShapeError, "at least 2 dimensions", x[:, :1])
    check_rejects(isoscore, ShapeError, "at least 2 points", x[:1])
    check_rejects(isoscore, ShapeError, "at least 4 points", x[:3], unbiased=True)
    check_rejects(isoscore_star, InputError, r"zeta must be a number in \[0, 1\]", x, 1.5)
    check_rejects(isoscore_star, InputError, "zeta", x, float("nan"))
    check_rejects(isoscore_star, InputError, "zeta", x, "automatic")
    check_rejects(isoscore_star, InputError, "goes without shrinkage_cov", x, "auto", wishart(4))
    check_rejects(isoscore_star, ShapeError, r"must be \(4, 4\)", x, 0.2, wishart(3))
    check_rejects(isoscore_star, ShapeError, "shrinkage_cov", x, 0.2, torch.ones(4))
    check_rejects(isoscore_star, ShapeError, "shrinkage_cov", x, 0.2, wishart(4).expand(2, 4, 4))
    check_rejects(isoscore_star, DtypeError, "shrinkage_cov", x, 0.2, torch.eye(4).long())
    check_rejects(isoscore_star, DtypeError, "shrinkage_cov", x, 0.2, [[1.0]])
    check_rejects(isoscore_star, DegenerateError, "finite", x, 0.2, torch.full((4, 4), float("nan")))
    check_rejects(isoscore_from_cov, ShapeError, "square", x)
    check_rejects(isoscore_from_cov, ShapeError, "2 dimensions", torch.ones(1, 1))
    check_rejects(isoscore_from_cov, DegenerateError, "must not be zero", torch.zeros(3, 3))
    check_rejects(shrinkage_intensity, InputError, "method must be one of", x, "oracle")


def test_scores_from_a_covariance_are_differentiable():
    check_gradient(isoscore_from_cov, wishart(4))
    check_batch_equals_loop(isoscore_from_cov, torch.stack([wishart(4, seed) for seed in (1, 2, 3)]))
    check_dtypes(isoscore_from_cov, wishart(4))


def test_no_eigenvalues(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("an eigendecomposition on the hot path")

    for name in ("svd", "svdvals", "eigh", "eigvalsh"):
        monkeypatch.setattr(torch.linalg, name, forbidden)
    gradient(lambda z: isoscore_star(z, 0.2, wishart(8)), uneven(20, 8))


def test_purity_is_between_even_and_one_direction():
    assert purity(torch.cat([torch.eye(4), -torch.eye(4)])).item() == pytest.approx(0.25)
    assert purity(torch.arange(6.0).unsqueeze(1) * torch.ones(3)).item() == pytest.approx(1)


@pytest.mark.parametrize("name", STARS)
def test_nothing_is_read_back(name):
    x, mask = uneven(2, 8, 5), some_mask(2, 8)
    function = STARS[name] if name != "matrix" else lambda x, **k: isoscore_star(x, 0.3, x.new_ones(5, 5), **k)
    check_asynchronous(function, x)
    check_asynchronous(function, x, mask=mask)


@gpu
@pytest.mark.parametrize("name", STARS)
def test_cuda(name):
    check_cuda(STARS[name], uneven(2, 40, 12))
    check_cuda(STARS[name], uneven(2, 8, 30))
