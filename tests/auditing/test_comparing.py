"""Two clouds of the same rows: what moved is found and named, rounding is not."""

import json
import re

import numpy as np
import pytest
import torch

import isonb
from isonb import cli
from isonb.errors import InputError

N, D = 800, 24


@pytest.fixture(scope="module")
def x():
    return torch.randn(N, D, generator=torch.Generator().manual_seed(0)) + 0.5


def names(result):
    return {item.name: item for item in result.findings}


def test_half_precision_is_the_same_cloud(x):
    result = isonb.compare(x, x.half().float())
    assert result.ok
    assert "same rows" in names(result)
    assert result.cka == pytest.approx(1, abs=1e-6)
    assert result.overlap[0] > 0.99


def test_rows_that_moved_are_named(x):
    y = x.clone()
    y[[7, 300]] = -y[[7, 300]]
    result = isonb.compare(x, y)
    assert {row for row, _ in result.moved[:2]} == {7, 300}
    assert set(names(result)["moved rows"].rows) == {7, 300}
    assert result.cosines["0"] == pytest.approx(-1, abs=1e-5)
    assert result.cosines["0.5"] == pytest.approx(1, abs=1e-5)


def test_the_interval_of_a_difference_holds_it(x):
    """Half the offset: the mean cosine falls, surely, from what it is to what it becomes."""
    result = isonb.compare(x, x - 0.25)
    rise = next(entry for entry in result.differences if entry.name == "mean cosine")
    assert rise.high < 0
    assert rise.rise == pytest.approx((isonb.mean_cosine(x - 0.25) - isonb.mean_cosine(x)).item(), abs=1e-6)


@pytest.mark.parametrize(("second", "moved"), [(0.0, True), (1.51, False)])
def test_a_scale_that_starts_elsewhere_is_a_warning(x, second, moved):
    """A threshold doesn't carry over; how high either starts is no matter."""
    report = names(isonb.compare(x + 1, x - 0.5 + second))
    assert ("other scale" in report) == moved
    assert not moved or report["other scale"].severity == "warning"


def test_measures_of_the_spread_of_few_rows_are_withheld():
    cloud = torch.randn(100, 384, generator=torch.Generator().manual_seed(0))
    result = isonb.compare(cloud, 2 * cloud)
    assert result.values()["rise of IsoScore"] is None
    assert result.values()["rise of mean cosine"] == pytest.approx(0, abs=1e-6)


def test_rows_that_break_in_one_alone_are_a_fault(x):
    y = x.clone()
    y[4, 2] = torch.nan
    y[9] = 0
    result = isonb.compare(x, y)
    assert names(result)["odd rows"].rows == (4, 9)
    assert result.findings[0].severity == "fault"
    assert result.n == N - 2


def test_other_bad_input(x):
    with pytest.raises(InputError, match="20 rows"):
        isonb.compare(x, torch.full_like(x, torch.nan))
    with pytest.raises(InputError, match="must hold vectors, one a row; got numbers"):
        isonb.compare(x, [1.0])
    with pytest.raises(InputError, match=r"^compare: max_length must be left out of vectors; got 9"):
        isonb.compare(x, x, max_length=9)
    with pytest.raises(InputError, match=r"^compare: seed must be an integer of 64 bits"):
        isonb.compare(x, x, seed=2**64)
    with pytest.raises(InputError, match=r"^compare: names must be left out of models"):
        isonb.compare("tiny", "tiny", ["one text"] * 20, names=("a", None))
    with pytest.raises(InputError, match="texts must be a list of strings; got one int"):
        isonb.compare("tiny", "minilm", texts=5)


def test_functions_are_named_and_texts_may_be_drawn_once(x):
    def lengths(texts):
        return x[: len(texts)]

    result = isonb.compare(lengths, lengths, texts=(f"text {i}" for i in range(N)))
    first, second = result.read
    assert first == second
    assert first.startswith(f"{N} texts through the function test_functions_are_named")
    assert f"second: {second}" in " ".join(repr(result).split())
    assert result.cka == pytest.approx(1)


def test_the_command(x, tmp_path, capsys):
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", (x - 0.25).numpy())
    np.save(tmp_path / "long.npy", torch.ones(N + 1, D).numpy())
    arguments = ["audit", str(tmp_path / "x.npy"), "--compare"]
    assert cli.main([*arguments, str(tmp_path / "y.npy"), "--fail-on", "CKA<0.5"]) == 0
    more = ["--sample", "500", "--html", str(tmp_path / "y.html"), "--fail-on", "row cosine 0.5<1"]
    assert cli.main([*arguments, str(tmp_path / "y.npy"), *more]) == 1
    assert "moved most" in capsys.readouterr().out
    assert "(500 measured)" in (tmp_path / "y.html").read_text()
    assert cli.main([*arguments, str(tmp_path / "long.npy")]) == 2
    assert "both must have the same rows; got 800 and 801 rows" in capsys.readouterr().err
    assert cli.main([*arguments, str(tmp_path / "y.npy"), "--queries", "t.npy"]) == 2
    assert "--compare must stand without" in capsys.readouterr().err


def overlap_at_10(x, y):
    """By numpy, row by row."""

    def near(z):
        unit = z / np.linalg.norm(z, axis=1, keepdims=True)
        cosines = unit @ unit.T
        np.fill_diagonal(cosines, -2)
        return np.argsort(-cosines, 1)[:, :10]

    return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(near(x), near(y), strict=True)])


def narrower(x):
    """A Matryoshka cut, a PCA, another model, and one with more dimensions."""
    axes = np.linalg.svd(x - x.mean(0), full_matrices=False)[2]
    draw = np.random.default_rng(1)
    return {
        "cut": x[:, :8],
        "PCA": (x - x.mean(0)) @ axes[:10].T,
        "another model": np.tanh(x @ draw.normal(size=(D, 16))),
        "wider": np.concatenate([x, 0.2 * draw.normal(size=(N, 8))], 1),
    }


@pytest.mark.parametrize("kind", ["cut", "PCA", "another model", "wider"])
def test_clouds_of_other_dimensions_are_compared(x, kind):
    first = x.double().numpy() * np.linspace(3, 0.2, D)
    other = narrower(first)[kind]
    result = isonb.compare(first, other)
    assert result.overlap[0] == pytest.approx(overlap_at_10(first, other), abs=1e-6)
    both = torch.from_numpy(first), torch.from_numpy(other)
    assert result.cka == pytest.approx(isonb.cka(*both).item(), abs=1e-6)
    assert result.cka_debiased == pytest.approx(isonb.cka(*both, debiased=True).item(), abs=1e-6)
    assert (result.d, result.d_second) == (D, other.shape[1])
    assert result.cosines == {}
    assert result.moved == ()
    assert ("some dimensions" in names(result)) == (kind in ("cut", "wider"))
    assert "itself" not in repr(result)
    assert "itself" not in result.html()
    assert "overlap@10" in result.values()


ORDER = torch.randperm(N, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("change", [lambda y: y.half().float()[ORDER, :16], lambda y: y.roll(-1, 0)])
def test_rows_in_another_order_are_recognised(x, change):
    y = change(x)
    result = isonb.compare(x, y)
    report = result.findings[0]
    assert (report.name, report.severity) == ("other order", "fault")
    first, second = map(int, re.search(r"row (\d+) is row (\d+)", report.text).groups())
    assert torch.allclose(x[first, : y.shape[1]], y[second], atol=1e-2)


def test_rows_that_have_nothing_in_common_are_a_fault(x):
    other = torch.randn(N, 12, generator=torch.Generator().manual_seed(9))
    assert names(isonb.compare(x, other))["unrelated rows"].severity == "fault"


def test_a_rotation_is_named(x):
    turn, _ = torch.linalg.qr(torch.randn(D, D, generator=torch.Generator().manual_seed(3)))
    result = isonb.compare(x, 3 * x @ turn)
    assert "a rotation of the first" in names(result)["rotation"].text
    assert result.overlap[0] == pytest.approx(1, abs=1e-3)
    assert result.cka == pytest.approx(1, abs=1e-5)
    noisy = x @ turn + 0.1 * torch.randn(N, D, generator=torch.Generator().manual_seed(6))
    assert "rotation" not in names(isonb.compare(x, noisy))


def test_two_encoders_on_the_same_texts(tmp_path, capsys):
    from isonb_lab.data.corpus import sentences

    texts = [sentence.text for sentence in sentences()][:60]
    (tmp_path / "t.txt").write_text("\n".join(texts))
    arguments = ["audit", "tiny", "--compare", "minilm", "--texts", str(tmp_path / "t.txt")]
    assert cli.main([*arguments, "--json", str(tmp_path / "a.json")]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "first: 60 texts of t.txt through tiny, mean pooling, 128 dimensions" in output
    assert "second: 60 texts of t.txt through minilm, as sentence-transformers encodes, 384 dimensions" in output
    result = json.loads((tmp_path / "a.json").read_text())
    assert (result["n"], result["d"], result["d_second"]) == (60, 128, 384)
    assert 0.1 < result["cka"] < 1
    first_tokens = isonb.compare("tiny", "tiny", texts, pool="cls", max_length=4)
    assert first_tokens.differences != isonb.compare("tiny", "tiny", texts).differences
    assert cli.main([*arguments, "--work", str(tmp_path)]) == 2
    assert "--compare must stand without" in capsys.readouterr().err


def test_cka_of_unrelated_rows_is_beside_it_and_about_zero():
    """The plug-in value of 100 unrelated rows of 768 dimensions is 0.88."""
    draw = torch.Generator().manual_seed(82)
    first, second = (torch.randn(100, 768, generator=draw) for _ in range(2))
    result = isonb.compare(first, second)
    assert result.cka == pytest.approx(0.88, abs=0.02)
    assert abs(result.cka_debiased) < 0.05
    assert -0.1 < result.cka_floor[0] < 0 < result.cka_floor[1] < 0.1
    assert f"unrelated rows have {result.cka_floor[0]:.4f} to {result.cka_floor[1]:.4f}" in " ".join(
        str(result).split()
    )


@pytest.mark.parametrize(("noise", "steady"), [(0.3, False), (3.0, True)])
def test_a_dimension_that_an_audit_withholds_is_withheld_here(noise, steady):
    """Half of the rows have half of their near twins, so they read another TwoNN."""
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(400, 8, generator=draw)
    cloud = torch.cat([rows, rows + noise * torch.randn(400, 8, generator=draw)])
    (audited,) = (item for item in isonb.audit(cloud).readings if item.measure == "two_nn")
    result = isonb.compare(cloud, 2 * cloud)
    (difference,) = (item for item in result.differences if item.measure == "two_nn")
    assert audited.steady == difference.steady == steady
    assert (result.values()["rise of two_nn"] is None) is not steady
    assert bool(re.search(r"TwoNN dimension +unsure +unsure +unsure", str(result))) is not steady
