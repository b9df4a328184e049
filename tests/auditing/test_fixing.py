"""What the report advises is done, written and judged on what wasn't fitted; all rows of findings are named."""

import csv
import errno
import io
import json
import os
import re
from contextlib import redirect_stdout

import numpy as np
import pytest
import torch

import isonb
from isonb import cli
from isonb.auditing.reading import matrix
from isonb.errors import InputError, ShapeError
from isonb.runtime.files import DiskError

N, D = 600, 24


def dirty():
    """Off the origin, with a row that isn't finite, one of zeros, copies, a long row and a dimension that is dead."""
    x = np.random.default_rng(0).normal(size=(N, D)).astype("f4") + 1
    x[100:130] = x[:30]
    x[400] *= 60
    x[:, 3] = 0.5
    x[5], x[7] = np.nan, 0
    return x


REPEATS = {*range(100, 130)} - {105, 107}  # these are what rows 5 and 7 were
OUT = {5, 7} | REPEATS


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    """The folder after one command."""
    folder = tmp_path_factory.mktemp("fix")
    np.save(folder / "x.npy", dirty())
    arguments = ["audit", str(folder / "x.npy"), "--fix", str(folder / "y.npy"), "--rows", str(folder / "rows.csv")]
    with redirect_stdout(io.StringIO()) as output:
        assert cli.main([*arguments, "--json", str(folder / "a.json"), "--html", str(folder / "a.html")]) == 0
    (folder / "said.txt").write_text(output.getvalue())
    return folder


def test_rows_and_dimensions_are_left_out_and_without_pairs_no_row_is_changed(fixed):
    y, book = np.load(fixed / "y.npy"), np.load(fixed / "y.map.npz")
    remaining = [row for row in range(N) if row not in OUT]
    assert book["rows"].tolist() == remaining
    assert book["dims"].tolist() == [dim for dim in range(D) if dim != 3]
    assert y.shape == (N - len(OUT), D - 1)
    np.testing.assert_array_equal(y, dirty()[remaining][:, book["dims"]])
    text = json.loads((fixed / "a.json").read_text())["fixed"]
    assert (text["effects"], text["steps"]) == ([], ["30 rows left out", "1 dimension left out"])
    assert "Nothing else is changed without labelled pairs." in (fixed / "said.txt").read_text()


def test_every_row_of_a_finding_is_exported(fixed):
    with (fixed / "rows.csv").open() as file:
        table = [*csv.DictReader(file)]
    named = {"not finite": {5}, "zero rows": {7}, "duplicates": REPEATS, "long rows": {400}}
    for finding, rows in named.items():
        assert {int(item["row"]) for item in table if item["finding"] == finding} == rows


def test_json_names_more_than_twenty_rows_and_text_the_first():
    x = np.random.default_rng(0).normal(size=(N, D))
    x[300:500] = x[:200]
    report = isonb.audit(x)
    (repeats,) = [item for item in report.findings if item.name == "duplicates"]
    assert repeats.rows == tuple(range(300, 500))
    assert "Rows 300, 301, 302, 303, 304 and 195 more." in " ".join(str(report).split())


def test_long_rows_are_a_warning_and_short_ones_a_note():
    x = torch.nn.functional.normalize(torch.randn(N, D, generator=torch.Generator().manual_seed(0)), dim=-1)
    x[:10] *= 60
    x[20] *= 1e-5
    report = {item.name: item for item in isonb.audit(x).findings}
    assert report["long rows"].severity == "warning"
    assert set(report["long rows"].rows) == set(range(10))
    assert "60 times the median length" in report["long rows"].text
    assert report["short rows"].rows == (20,)


def noisy(seed):
    """Pairs of rows of a topic and of two, with one loud dimension that says nothing of topics."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(200, D, generator=draw).repeat_interleave(10, 0) + 0.7 * torch.randn(2000, D, generator=draw)
    x[:, 0] = 30 + 20 * torch.randn(2000, generator=draw)
    first = torch.randint(2000, (800,), generator=draw)
    match = torch.arange(800) % 2
    second = torch.where(match == 1, first - first % 10 + (first + 1) % 10, (first + 500) % 2000)
    return x, (first.tolist(), second.tolist(), match.tolist())


def test_pairs_choose_the_remedy_and_other_pairs_judge_it(tmp_path):
    x, pairs = noisy(0)
    report = isonb.audit(x, pairs=pairs, sample=1000, fix=tmp_path / "y.npy")
    fixed = report.fixed
    effects = {effect.name: effect for effect in fixed.effects}
    score, cosine = effects["AUC"], effects["mean cosine"]
    assert score.after > score.before + 0.1
    assert cosine.before > 0.4
    assert 0 < abs(cosine.after) < 0.02  # 0 or less would be the rows that the mean was taken of
    assert 350 < int(re.search(r"and (\d+) pairs", fixed.judged)[1]) < 450  # half of the first texts
    assert fixed.judged in " ".join(str(report).split())
    space = {"queries": x.numpy()}
    exec("\n".join(fixed.code), space)  # the printed lines do the same to queries
    np.testing.assert_allclose(space["q"], np.load(tmp_path / "y.npy"), atol=1e-4)
    y = torch.from_numpy(np.load(tmp_path / "y.npy"))
    whole = isonb.audit(y, pairs=pairs, sample=1000)
    assert float(re.search(r"pairs: (0\.\d+)", whole.score)[1]) == pytest.approx(score.after, abs=0.02)


def test_rows_that_are_left_out_are_not_fitted_on(tmp_path):
    """Half of all rows are copies of one that is far away: their mean is that of no row that stays."""
    x, pairs = noisy(0)
    x = torch.cat([x, 50 * torch.eye(D)[1].repeat(2000, 1)])
    fixed = isonb.audit(x, pairs=pairs, fix=tmp_path / "y.npy").fixed
    assert fixed.steps[0] == "1,999 rows left out"
    assert fixed.steps[1].endswith(", fitted on 2,001 rows")
    assert np.abs(np.load(tmp_path / "y.npy").mean(0)).max() < 1e-4


def test_nothing_is_changed_where_nothing_is_known_to_help(tmp_path):
    x = np.random.default_rng(0).normal(size=(N, D)).astype("f4")
    fixed = isonb.audit(x, fix=tmp_path / "y.npy").fixed
    assert fixed.steps == ()
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), x)


@pytest.mark.parametrize("name", ["y.csv", "nowhere/y.npy", "x.npy"])
def test_a_bad_place_is_refused_before_anything_is_read(tmp_path, name):
    np.save(tmp_path / "x.npy", np.full((3, 2), np.nan))
    with pytest.raises(InputError, match=r"^audit: (fix|the folder) .*must"):
        isonb.audit(tmp_path / "x.npy", fix=tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_no_input_is_overwritten_by_the_vectors_nor_by_their_map(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    (tmp_path / "shards").mkdir()
    for name in ("v", "q", "shards/a", "shards/b"):
        np.save(f"{name}.npy", draw.normal(size=(100, 8)).astype("f4"))
    np.savez("v.map.npz", draw.normal(size=(100, 8)))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.np?")}
    mapped = np.load("v.npy", mmap_mode="r")
    for vectors, queries, fix in [
        ("v.npy", "q.npy", "q.npy"),
        ("v.npy", matrix("q.npy"), "q.npy"),
        (mapped[:50], None, "v.npy"),
        ("shards", None, "shards/a.npy"),
        ("shards", None, "shards/new.npy"),
        ("shards/?.npy", None, "shards/b.npy"),
        ("v.map.npz", None, "v.npy"),
    ]:
        with pytest.raises(InputError, match=r"^audit: fix must lie outside of what is audited; got .*\.npy"):
            isonb.audit(vectors, queries=queries, fix=fix)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.np?")} == before
    assert isonb.audit("shards/?.npy", queries="q.npy", fix="new.npy").fixed.n == 200


def test_what_cannot_be_fixed_is_refused_and_few_rows_are_fixed_without_a_warning(tmp_path):
    draw, path = np.random.default_rng(0), tmp_path / "y.npy"
    with pytest.raises(ShapeError, match=r"^audit: fix takes at most 4,096 dimensions; got 4,097"):
        isonb.audit(np.ones((30, 4097)), fix=path)
    dead = np.concatenate([draw.normal(size=(200, 1)), np.full((200, 2), 0.5)], 1)
    with pytest.raises(ShapeError, match="2 dimensions or more must remain in a fix; got 1 beside the dead ones"):
        isonb.audit(dead, fix=path)
    with pytest.raises(ShapeError, match="20 rows or more must remain in a fix; got 2 beside the repeats"):
        isonb.audit(np.tile(draw.normal(size=(2, 8)), (50, 1)), fix=path)
    assert not path.exists()
    pairs = range(40), range(40, 80), [0, 1] * 20
    isonb.audit(draw.normal(size=(100, 80)) + 1, pairs=pairs, false_match_rate=0.2, fix=path)


@pytest.mark.parametrize("when", ["the rows", "the map"])
def test_what_the_disk_refuses_leaves_the_old_vectors_and_their_map(when, tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(N, D))
    isonb.audit(x, fix=tmp_path / "y.npy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    full, done = OSError(errno.ENOSPC, "No space left on device"), []

    def write(descriptor):
        done.append(descriptor)
        if len(done) == 1 + (when == "the map"):
            raise full

    monkeypatch.setattr(os, "fsync", write)
    with pytest.raises(DiskError, match=r"the disk must take y\..*; got No space left .* Free some space"):
        isonb.audit(x + 1, fix=tmp_path / "y.npy")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
