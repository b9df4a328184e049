"""What a sample does to IsoScore, and the two remedies: PR-U and automatic shrinkage."""

import pytest
import torch
from sklearn.covariance import ledoit_wolf, oas
from support import check_rejects, normal, uneven

from isonb.errors import DegenerateError
from isonb.measures.isoscore import isoscore, isoscore_from_cov, isoscore_star, participation_ratio, shrinkage_intensity

Q8 = [[3, 0, 0], [-3, 0, 1], [0, 2, 0], [0, -2, -1], [1, 1, 1], [-1, -1, -1], [2, 1, 0], [-2, -1, 0]]
Q8 = torch.tensor(Q8, dtype=torch.float64)
P4 = torch.tensor([[2, 0], [0, 1], [1, 3], [4, 4]], dtype=torch.float64)
VARIANCES = torch.cat([torch.tensor([10.0, 6, 4, 4]), torch.ones(764)]).double()


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


def test_orthogonal_points_have_no_unbiased_ratio():
    check_rejects(participation_ratio, DegenerateError, "unbiased", torch.eye(4).double(), unbiased=True)


def test_known_ratios():
    assert participation_ratio(Q8).item() == pytest.approx(1.843810, abs=5e-7)
    assert participation_ratio(Q8, unbiased=True).item() == pytest.approx(2.189421, abs=5e-7)
    assert isoscore(Q8).item() == pytest.approx(0.421905, abs=5e-7)
    assert isoscore(Q8, unbiased=True).item() == pytest.approx(0.594711, abs=5e-7)
    assert participation_ratio(P4, unbiased=True).item() == pytest.approx(8 / 3)
