"""An audit finds what was planted in a cloud, names it, and finds nothing in a clean one; the command, too."""

import json
import math
import os
import re

import numpy as np
import pytest
import torch
from support import normal

import isonb
from isonb import cli
from isonb.auditing.defects import SEVERITIES
from isonb.auditing.measured import AUDITED, GROUPS, groups_of, jackknife, of_parts
from isonb.errors import ShapeError
from isonb.measures.registry import MEASURES
from isonb_lab.statistics.seeds import student

N, D = 600, 24
SEEDS = int(os.environ.get("ISONB_SEEDS", "2"))  # clouds a defect is planted in; 20 by hand


def cloud(seed, n=N, d=D):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def shifted(x):
    return x + 1.0


def squeezed(x):
    return x * torch.tensor([1.0, 1.0] + [0.02] * (x.shape[1] - 2))


def axis(i):
    return torch.nn.functional.one_hot(torch.tensor(i), D)


def hub(x):
    """Many directions, and rows between all of them."""
    x = torch.nn.functional.normalize(x, dim=-1) + 0.9 * axis(0)
    x[5] = x.mean(0)
    return x


def gaps(x):
    x[11, 2], x[12, 4] = math.nan, math.inf
    x[13] = 0
    return x


# How it is planted; the rows and the dimensions that are named.
PLANTED = {
    "shift": (shifted, None, None),
    "stretched": (squeezed, None, None),
    "outlier dimensions": (lambda x: x * (1 + 19 * axis(7)), None, (7,)),
    "dead dimensions": (lambda x: torch.where(axis(3) > 0, 0.25, x), None, (3,)),
    "duplicates": (lambda x: torch.cat([x[:100], x[:10], x[110:]]), tuple(range(100, 110)), None),
    "hubs": (hub, (5,), None),
    "not finite": (gaps, (11, 12), None),
    "zero rows": (gaps, (13,), None),
    "half precision": (lambda x: x.half().float(), None, None),
    "unit length": (lambda x: torch.nn.functional.normalize(x, dim=-1), None, None),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_was_planted_is_found_and_named(name):
    change, rows, dims = PLANTED[name]
    for seed in range(SEEDS):
        report = {finding.name: finding for finding in isonb.audit(change(cloud(seed))).findings}
        assert name in report, f"seed {seed}: {list(report)}"
        assert rows is None or report[name].rows[: len(rows)] == rows
        assert dims is None or report[name].dims == dims


def test_a_clean_cloud_has_no_findings():
    for seed in range(SEEDS):
        assert isonb.audit(cloud(seed)).findings == ()


def test_intervals_hold_the_value_of_the_population():
    """Mean cosine of shifted clouds: the 95% interval misses the value of a large sample in about one of twenty."""
    truth = isonb.mean_cosine(cloud(99, n=20_000) + 0.5).item()
    missed = sum(
        not next(r.low <= truth <= r.high for r in isonb.audit(cloud(seed) + 0.5).readings if r.name == "mean cosine")
        for seed in range(10)
    )
    assert missed <= 2


def test_the_jackknife_is_students_interval_of_pseudo_values():
    without = cloud(7, n=1, d=10)[0].double().tolist()
    interval = student([(len(without) - 1) * value for value in without])
    assert jackknife(without) == pytest.approx((interval.high - interval.low) / 2, rel=1e-9)


def test_the_threshold_keeps_its_rate_on_other_rows():
    x = shifted(cloud(0, n=4000))
    report = isonb.audit(x[:2000])
    unit = torch.nn.functional.normalize(x[2000:], dim=-1)
    for rate in (0.1, 0.05, 0.01):
        share = (((unit[:1000] @ unit[1000:].T) > report.threshold(rate)).double().mean()).item()
        assert abs(share - rate) < 0.02


def test_few_rows_withhold_the_verdict():
    report = isonb.audit(squeezed(cloud(0, n=40, d=64)))
    assert "few rows" in {finding.name for finding in report.findings}
    assert "stretched" not in {finding.name for finding in report.findings}
    assert "aren't" not in report.withheld
    assert "too few" in report.withheld


def test_a_sample_is_drawn_and_the_same_again(tmp_path):
    x = shifted(cloud(0, n=3000))
    np.save(tmp_path / "x.npy", x.numpy())
    a, b = isonb.audit(x, sample=500), isonb.audit(np.load(tmp_path / "x.npy", mmap_mode="r"), sample=500)
    assert a == b
    assert (a.n, a.measured) == (3000, 500)
    assert a != isonb.audit(x, sample=500, seed=1)


@pytest.mark.parametrize("bad", [torch.ones(10, 4), torch.full((50, 4), math.nan), [[1.0, 2.0]]])
def test_too_few_rows_that_count(bad):
    with pytest.raises(ShapeError, match=r"^audit: at least 20 rows must be finite and not zero; got .*\."):
        isonb.audit(bad)


def test_rows_that_are_all_the_same_are_a_fault():
    report = isonb.audit(torch.ones(100, 8))
    assert report.headline.startswith("Broken: Repeats of an earlier row: 99 rows (99.0%).")
    assert not report.next_steps
    assert "nan" not in report.html()


def test_reports_say_the_same():
    report = isonb.audit(gaps(shifted(cloud(0))))
    assert list(report.findings) == sorted(report.findings, key=lambda item: SEVERITIES.index(item.severity))
    page, text = report.html(), " ".join(repr(report).split())
    assert all(element.text in text and element.text.replace("'", "&#x27;") in page for element in report.findings)
    assert json.loads(report.to_json())["n"] == report.n == N - 3
    assert not report.ok
    assert not any(word in page for word in ("<script", "src=", "href=", "@import", "url(http"))
    assert page.count("<svg") == 1
    assert report.headline in text
    assert report.headline in page
    assert json.loads(report.to_json())["headline"] == report.headline
    assert {"What the words mean", *(reading.name for reading in report.readings)} <= set(re.split("<[^>]*>", page))


def test_the_command(tmp_path, capsys):
    path = tmp_path / "x.npy"
    np.save(path, shifted(cloud(0)).numpy())
    results = [str(tmp_path / "report.html"), str(tmp_path / "report.json")]
    assert cli.main(["audit", str(path), "--html", results[0], "--json", results[1]]) == 0
    assert "share a direction" in capsys.readouterr().out
    assert "share a direction" in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["d"] == D
    codes = {"mean cosine>0.9": 0, "fault": 0, "warning": 1, "IsoScore < 0.99": 1, "cosine": 2, "nothing>1": 2}
    assert {rule: cli.main(["audit", str(path), "--fail-on", rule]) for rule in codes} == codes
    assert "broken    IsoScore < 0.99" in capsys.readouterr().err
    html = tmp_path / "late.html"
    for rule in ("meancosine>0.5", "CKA<1"):
        assert cli.main(["audit", str(path), "--html", str(html), "--fail-on", rule]) == 2
        assert not html.exists()  # refused before anything is measured
    assert "must name one of what was measured; got 'CKA'" in capsys.readouterr().err
    assert cli.main(["audit", str(path), "--html", str(html), "--fail-on", "random cosine 0.99>1"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("audit minilm", "no file minilm. Check the path. A model is audited on texts: add --texts FILE"),
        ("compare v.npy v.npy", "isonb audit X --compare Y"),
        ("audit nan.npy", "0 of 200, since every row holds NaN or infinity alone. Look at what wrote"),
        ("audit zero.npy", "0 of 200, since the others are zero or hold a NaN or an infinity. Look at what wrote"),
        ("audit few.npy", "0 of 8. Rows are points; a transposed array has too few."),
    ],
)
def test_a_refusal_says_what_was_meant(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, rows in {"nan": np.full((200, 8), np.nan), "zero": np.zeros((200, 8)), "few": np.zeros((8, 200))}.items():
        np.save(f"{name}.npy", rows)
    assert cli.main(words.split()) == 2
    assert message in capsys.readouterr().err


def test_the_common_mean_half_the_rows_and_shuffled_pairs_are_told():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(400, 10, generator=draw, dtype=torch.float64)
    x[:, 0] += 10**0.5  # as long as the spread of all ten dimensions
    labels = torch.arange(200) % 2
    report = isonb.audit(x, pairs=(torch.arange(200), torch.arange(200, 400), labels), false_match_rate=0.05)
    read = {entry.name: entry for entry in report.readings}
    assert read["mean cosine"].value == pytest.approx(isonb.mean_cosine(x).item(), abs=1e-12)
    assert read["IsoScore-U"].value == pytest.approx(isonb.isoscore(x, unbiased=True).item(), abs=1e-12)
    assert read["common mean"].value == pytest.approx(0.5, abs=0.05)
    assert read["common mean"].gaussian < 0.02
    assert read["IsoScore"].fewer < read["IsoScore"].value  # fewer points look less round
    assert read["IsoScore-U"].fewer == pytest.approx(read["IsoScore-U"].value, abs=0.05)
    assert report.floor["pairs, shuffled"]["0.5"] == pytest.approx(report.floor["random cosine"]["0.5"], abs=0.15)
    assert max(map(len, repr(report).splitlines()[:-2])) <= 88


@pytest.mark.parametrize("d", [8, 12, 300])
def test_a_part_reads_what_its_rows_alone_read(d):
    x = normal(200, d).float() * torch.linspace(1, 3, d) + 2
    group = groups_of(200, torch.Generator().manual_seed(0))
    parts = [group >= 0, group != 3, group < GROUPS // 2, group == 1]
    values = of_parts(x, parts, AUDITED)
    assert list(values) == list(AUDITED)
    for name, read in values.items():
        assert read == pytest.approx([float(MEASURES[name](x[part])) for part in parts], rel=2e-5, abs=1e-6)


def test_equal_rows_have_neither_a_spread_nor_a_dimension_in_any_part():
    values = of_parts(torch.ones(30, 4), [torch.arange(30) < 20], AUDITED)
    assert values == {"mean_cosine": [1.0], "common_mean": [1.0]}
