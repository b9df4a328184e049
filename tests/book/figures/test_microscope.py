"""Neighbours by an independent search, data that can't break out of the page, and clouds whose scores are guessed."""

import json
import re

import pytest
import torch

import isonb
from isonb_lab.figures import microscope as figures

N, D = 30, 12
SPREAD = torch.arange(D, 0, -1, dtype=torch.float64)
NOISE = [torch.randn(N, D, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1)]
LAYERS = [noise * SPREAD + 4 for noise in NOISE]
TEXTS = [f"Sentence {i}" for i in range(N)]
KIN = {(3, 4): "paraphrase", (3, 5): "near miss"}


@pytest.fixture(scope="module")
def lens():
    return figures.Microscope(LAYERS, TEXTS, [3, 0, 7], KIN)


def by_hand(x, row, k):
    """The neighbours of one row, pair by pair."""
    cosine = {j: float(torch.cosine_similarity(x[row], x[j], dim=0)) for j in range(len(x)) if j != row}
    best = sorted(cosine, key=lambda j: -cosine[j])[:k]
    return best, [cosine[j] for j in best]


def test_entries_are_right_in_every_view_and_layer(lens):
    for layer, cloud in enumerate(LAYERS):
        for pick in (3, 0, 7):
            plain = by_hand(cloud, pick, 5)[0]
            for name, x in figures.views(cloud).items():
                result = lens.entries(layer, pick, name)
                best, value = by_hand(x, pick, 5)
                assert [entry.text for entry in result] == best
                assert [entry.cosine for entry in result] == pytest.approx(value)
                assert [entry.new for entry in result] == [j not in plain for j in best]
                assert [entry.kin for entry in result] == [KIN.get((pick, j), "") for j in best]


def test_texts_cannot_break_out_of_the_page():
    evil = ['</script><script>alert("x")</script>', "a & b < c", 'He said "no".', "Four", "Five", "Six"]
    cloud = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    html = figures.Microscope([cloud], evil, [0, 1, 2], k=5)._repr_html_()
    assert html.count("<script") == html.count("</script>") == 2
    assert 'alert("x")' not in html
    data = re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1]
    assert sorted(json.loads(data)["texts"]) == sorted(evil)
    assert "a &amp; b &lt; c</option>" in html


def guessed(n, d, shift, stretch):
    noise = torch.randn(200, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[:n, :d]
    scale, mean = torch.ones(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    scale[0], mean[:2] = stretch, shift * (stretch**2 + d - 1) ** 0.5 / 2**0.5
    return noise * scale + mean


def test_every_reading_and_spectrum_is_that_of_its_cloud():
    sizes = {"sizes": [20, 200], "dims": [2, 40]}
    readings, spectra, _ = figures.guess_frames([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], **sizes)
    readings = readings.set_index(["n", "d", "stretch", "shift", "score"])
    assert readings.index.is_unique
    for (n, d, stretch, shift, name), row in readings.iterrows():
        score = isonb.isoscore if name == "IsoScore" else isonb.mean_cosine
        assert row["truth"] == pytest.approx(float(score(guessed(n, d, shift, stretch))), abs=6e-4)
        assert row["round"] == pytest.approx(float(score(guessed(n, d, 0.0, 1.0))), abs=6e-4)
    for row in spectra.to_dict("records"):
        want = torch.linalg.eigvalsh(torch.cov(guessed(row["n"], row["d"], 1.0, row["stretch"]).T)).flip(0)
        assert row["shares"] == pytest.approx((want / want.sum())[:10].tolist(), abs=6e-4)
    score = readings["truth"].xs("IsoScore", level="score").unstack("shift")
    assert (score.max(axis=1) - score.min(axis=1)).max() <= 1e-3, "a shift leaves IsoScore"
