"""Two clouds of the same rows: what moved is found and named, rounding is not."""

import json

import numpy as np
import pytest
import torch

import isonb
from isonb import cli
from isonb.errors import InputError, ShapeError

N, D = 800, 24


@pytest.fixture(scope="module")
def x():
    return torch.randn(N, D, generator=torch.Generator().manual_seed(0)) + 0.5


def names(found):
    return {one.name: one for one in found.findings}


def test_half_precision_is_the_same_cloud(x):
    found = isonb.compare(x, x.half().float())
    assert found.ok
    assert "same rows" in names(found)
    assert found.cka == pytest.approx(1, abs=1e-6)
    assert found.overlap[0] > 0.99


def test_rows_that_moved_are_named(x):
    y = x.clone()
    y[[7, 300]] = -y[[7, 300]]
    found = isonb.compare(x, y)
    assert {row for row, _ in found.moved[:2]} == {7, 300}
    assert set(names(found)["moved rows"].rows) == {7, 300}
    assert found.cosines["0"] == pytest.approx(-1, abs=1e-5)
    assert found.cosines["0.5"] == pytest.approx(1, abs=1e-5)


def test_rows_in_another_order(x):
    found = isonb.compare(x, x[torch.randperm(N, generator=torch.Generator().manual_seed(1))])
    assert "other neighbours" in names(found)
    assert found.overlap[0] < 0.1
    assert found.cka < 0.5
    rise = next(one for one in found.differences if one.name == "mean cosine")
    assert rise.low <= rise.rise <= rise.high
    assert abs(rise.rise) < 1e-5


def test_cka_against_the_gram_matrices(x):
    y = torch.tanh(x @ torch.randn(D, D, generator=torch.Generator().manual_seed(2)))
    middle = torch.eye(N, dtype=torch.float64) - 1 / N
    k, m = (middle @ (z.double() @ z.double().T) @ middle for z in (x, y))
    assert isonb.compare(x, y).cka == pytest.approx(((k * m).sum() / (k.norm() * m.norm())).item(), rel=1e-9)


def test_a_rotation_changes_no_reading(x):
    q, _ = torch.linalg.qr(torch.randn(D, D, generator=torch.Generator().manual_seed(3)))
    found = isonb.compare(x, x @ q)
    assert found.cka == pytest.approx(1, abs=1e-5)
    assert found.overlap[0] > 0.99
    assert "moved rows" in names(found)


def test_the_interval_of_a_difference_holds_it(x):
    """Half the offset: the mean cosine falls, surely, from what it is to what it becomes."""
    found = isonb.compare(x, x - 0.25)
    rise = next(one for one in found.differences if one.name == "mean cosine")
    assert rise.high < 0
    assert rise.rise == pytest.approx((isonb.mean_cosine(x - 0.25) - isonb.mean_cosine(x)).item(), abs=1e-6)


def test_rows_that_break_in_one_alone_are_a_fault(x):
    y = x.clone()
    y[4, 2] = torch.nan
    y[9] = 0
    found = isonb.compare(x, y)
    assert names(found)["odd rows"].rows == (4, 9)
    assert found.findings[0].severity == "fault"
    assert found.n == N - 2


def test_other_rows_are_one_error(x):
    with pytest.raises(ShapeError, match=r"^compare: both must have the same rows; got 800 and 799 rows\..*\.$"):
        isonb.compare(x, torch.ones(N - 1, D))


def test_other_bad_input(x):
    with pytest.raises(InputError, match="20 rows"):
        isonb.compare(x, torch.full_like(x, torch.nan))
    with pytest.raises(InputError, match="second must be an array"):
        isonb.compare(x, [1.0])


def test_reports_of_a_comparison(x):
    found = isonb.compare(x, x - 0.25, sample=500)
    assert found.measured == 500
    assert json.loads(found.to_json())["n"] == N
    assert len(repr(found).splitlines()) < 30
    assert "<script" not in found.html()
    assert found.to_frame()["name"][0] == "mean cosine"
    assert found.plot().to_dict()["mark"]


def test_the_command(x, tmp_path, capsys):
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", (x - 0.25).numpy())
    np.save(tmp_path / "long.npy", torch.ones(N + 1, D).numpy())
    words = ["audit", str(tmp_path / "x.npy"), "--compare"]
    assert cli.main([*words, str(tmp_path / "y.npy"), "--fail-on", "CKA<0.5"]) == 0
    assert cli.main([*words, str(tmp_path / "y.npy"), "--fail-on", "row cosine 0.5<1"]) == 1
    assert "moved most" in capsys.readouterr().out
    assert cli.main([*words, str(tmp_path / "long.npy")]) == 2
    assert "both must have the same rows; got 800 and 801 rows" in capsys.readouterr().err
    assert cli.main([*words, str(tmp_path / "y.npy"), "--queries", "t.npy"]) == 2
    assert "--compare must stand without" in capsys.readouterr().err
