"""The synthetic experiment finds the numbers that theory and the paper's figure expect."""

import pytest
import torch

from isonb.errors import OptionError
from isonb_lab.data.populations import Points, expected_score, true_score, variances
from isonb_lab.engines.synthetic import run

SMOKE = {"experiment": "synthetic", "protocol": "smoke"}
ZETAS = (0, 0.2, 0.4, 0.6, 0.8)
FIGURE = {"experiment": "synthetic", "sample_rows": 40_000, "shrinkage_rows": 20_000, "sizes": "16 700"}
FIGURE |= {"zetas": "0 0.2 0.4 0.6 0.8 1"}


def at(record, name, size):
    return float(dict(record.series[f"size.{name}"])[size])  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def figure():
    return run(FIGURE, progress=False)


@pytest.fixture(scope="module")
def smoke():
    return run(SMOKE, progress=False)


def test_figure_2(figure):
    got = [at(figure, f"zeta{zeta}.isoscore_star", 700) for zeta in ZETAS]
    assert got == pytest.approx([0.444, 0.538, 0.643, 0.745, 0.818], abs=0.005)
    assert got == pytest.approx([at(figure, f"zeta{zeta}.expected", 700) for zeta in ZETAS], abs=0.006)
    assert figure.metrics["true.isoscore"] == pytest.approx(0.8673, abs=5e-5)
    assert at(figure, "zeta0.isoscore_star", 16) == pytest.approx(0.018, abs=0.001)
    # the unbiased estimate needs no shrinkage
    assert at(figure, "unbiased.isoscore", 700) == pytest.approx(0.8673, abs=0.02)
    assert at(figure, "pooled.isoscore", 16) == pytest.approx(0.8673, abs=0.02)
    assert at(figure, "auto.isoscore_star", 700) == pytest.approx(0.866, abs=0.02)
    assert at(figure, "auto.zeta", 700) == pytest.approx(0.651, abs=0.02)


def test_the_same_seed_gives_the_same_record(smoke):
    again, other = run(SMOKE, progress=False), run(SMOKE | {"seed": 1}, progress=False)
    assert (again.metrics, again.series) == (smoke.metrics, smoke.series)
    assert dict(smoke.series["size.samples"]) == {8: 25, 16: 12, 64: 3, 128: 2}
    assert other.metrics["all.isoscore"] != smoke.metrics["all.isoscore"]


def test_both_ways_to_the_score_agree(smoke):
    """Samples of at least as many points as dimensions take another way than smaller ones; here by hand."""
    points = Points("figure2", "gaussian", 32, 0)
    shrinkage = torch.cat(list(points.blocks(500))).double().T.cov()
    points.draw(25 * 8)
    small = points.draw(12 * 16).view(12, 16, 32).double()
    points.draw(0)
    large = points.draw(3 * 64).view(3, 64, 32).double()
    for x in (small, large):
        scores = []
        for sample in x:
            values = torch.linalg.eigvalsh(0.8 * sample.T.cov() + 0.2 * shrinkage)
            scores.append((values.sum() ** 2 / values.square().sum() - 1) / 31)
        got = at(smoke, "zeta0.2.isoscore_star", x.shape[1])
        assert got == pytest.approx(float(torch.stack(scores).mean()), rel=1e-5)


def test_points_have_the_covariance():
    for tail, factor in (("gaussian", 1.0), ("student5", 5 / 3)):
        x = Points("figure2", tail, 6, 3).draw(200_000)
        torch.testing.assert_close(x.var(0), factor * variances("figure2", 6), rtol=0.05, atol=0)
    assert true_score("isotropic", 9) == pytest.approx(1)
    assert expected_score("isotropic", 9, 10**9, 10**9, 0.3) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": "64 8"}, "sizes of a synthetic run must be numbers in 4"),
        ({"sizes": "8, 16"}, "sizes of a synthetic run"),
        ({"sizes": "8.5 16"}, "whole numbers"),
        ({"zetas": "0 2"}, "zetas of a synthetic run must be numbers in 0"),
        ({"sizes": "8 5000"}, r"sample_rows must hold S and all samples, \d+ points; got 2000"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(OptionError, match=message):
        run(SMOKE | changes, progress=False)
