"""*Try yours* in a browser: the numbers of ``isonb audit`` for files of three kinds; words where it can't read."""

import re

import numpy as np
import pytest
from browser import needs_chromium, open_page

import isonb
from isonb_lab.figures.try_yours import TryYours

pytestmark = needs_chromium
READINGS = ("mean_cosine", "isoscore", "isoscore_unbiased", "participation_ratio_unbiased")


@pytest.fixture
def box(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><body>{TryYours()._repr_html_()}</body>', encoding="utf-8")
    with open_page(browser, page) as visit:
        yield visit.page.locator(".isonb-try")
    assert visit.errors == visit.outside == []


def read_in_page(box, file):
    box.locator("input").set_input_files(file)
    box.page.wait_for_function("() => document.querySelector('.isonb-try').found", timeout=300_000)
    return box.evaluate("(root) => ({...root.found, told: root.querySelector('table').innerText})")


def topics(draw):
    """Forty topics of twenty rows, away from the origin, two rows a hub and some rows twice."""
    x = np.repeat(draw.normal(size=(40, 48)), 20, axis=0) + 0.3 * draw.normal(size=(800, 48)) + 0.5
    x[700:712] = x[0:12]
    return x


def one_cloud(draw):
    return draw.normal(size=(300, 40)) * np.linspace(4, 0.5, 40) + 1


def few_directions(draw):
    return draw.normal(size=(300, 12)) + 1


def with_hubs(draw):
    x = draw.normal(size=(400, 300))
    x[::100] = 0.02 * x[::100] + 1.2
    return x + 1


FILES = {
    "topics, float64": (topics, "x.npy", "float64", {"duplicates"}),
    "one cloud, float32": (one_cloud, "x.npy", "float32", set()),
    "hubs, csv": (with_hubs, "x.csv", "float64", {"hubs"}),
    "few directions, float64": (few_directions, "x.npy", "float64", set()),
    "one cloud, float16": (one_cloud, "x.npy", "float16", set()),
}


@pytest.mark.parametrize("name", FILES)
def test_the_page_says_what_the_audit_says(box, tmp_path, name):
    make, file, kind, finds = FILES[name]
    x = make(np.random.default_rng(1)).astype(kind)
    path = tmp_path / file
    np.save(path, x) if file.endswith("npy") else np.savetxt(
        path, x, delimiter=",", header=",".join(map(str, range(x.shape[1]))), comments=""
    )
    read, audit = read_in_page(box, path), isonb.audit(path)
    reference = {reading.measure: reading for reading in audit.readings}
    for measure in READINGS:
        assert read[measure] == pytest.approx(reference[measure].value, rel=1e-6), measure
        if measure in read["gaussian"]:
            assert read["gaussian"][measure] == pytest.approx(reference[measure].gaussian, rel=1e-6, abs=1e-7), measure
    unrelated = audit.unrelated
    assert (read["unrelated"]["related"], read["unrelated"]["reason"]) == (unrelated.related, unrelated.reason)
    for end in ("low", "high"):
        assert read["unrelated"][end] == pytest.approx(getattr(unrelated, end), abs=1e-6)
    floor = audit.floor["unrelated cosine" if unrelated.certain else "random cosine"]
    assert read["quantiles"] == pytest.approx(floor, abs=1e-6)
    assert make is not topics or unrelated.related > 0
    findings = {finding.name: finding for finding in audit.findings}
    assert finds <= findings.keys()
    assert tuple(read["repeats"]) == (findings["duplicates"].rows if "duplicates" in findings else ())
    assert tuple(read["hubs"]["rows"]) == (findings["hubs"].rows if "hubs" in findings else ())
    if "hubs" in findings:
        assert f"{read['hubs']['share']:.0%}" in findings["hubs"].text


def test_pasted_lines_are_read_and_bad_ones_are_named(box):
    rows = np.random.default_rng(0).normal(size=(20, 3))
    lines = [", ".join(map(str, row)) for row in rows]
    for text, report in (
        (lines[:5], "at least 20 rows"),
        ([*lines, "1, 2"], "line 21 has 2"),
        ([*lines[:3], "a, b, c"], "line 4"),
        ([f"{k}, {line}" for k, line in enumerate(lines)], "column 1"),
    ):
        box.locator("textarea").fill("\n".join(text))
        box.locator("button").click()
        box.page.wait_for_function(
            "(told) => document.querySelector('.isonb-told').innerText.includes(told)", arg=report
        )
    box.locator("textarea").fill("\n".join(lines))
    box.locator("button").click()
    box.page.wait_for_function("() => document.querySelector('.isonb-try').found")
    assert re.search(r"20 × 3", box.inner_text())


def test_another_file_is_refused_in_words(box, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(60).reshape(20, 3))
    box.locator("input").set_input_files(path)
    box.page.wait_for_function(
        "() => document.querySelector('.isonb-told').innerText.includes('float16, float32 or float64')"
    )
