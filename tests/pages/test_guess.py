"""The clouds to guess: readings and spectra against isonb's functions on clouds made another way."""

import itertools
import json

import pytest
import torch

import isonb
from isonb.pages.errors import PageError
from isonb.pages.guess import bent, guess_chart, guess_frames

SHIFTS, STRETCHES, SIZES, DIMS = [0.0, 1.0, 2.0], [1.0, 3.0, 5.0], [20, 200], [2, 40]


@pytest.fixture(scope="module")
def frames():
    return guess_frames(SHIFTS, STRETCHES, SIZES, DIMS)


def cloud(n, d, shift, stretch):
    noise = torch.randn(200, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[:n, :d]
    scale, mean = torch.ones(d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    scale[0], mean[:2] = stretch, shift * (stretch**2 + d - 1) ** 0.5 / 2**0.5
    return noise * scale + mean


def test_every_reading_is_that_of_its_cloud(frames):
    readings = frames[0].set_index(["n", "d", "stretch", "shift", "score"])
    assert len(readings) == 2 * len(SHIFTS) * len(STRETCHES) * len(SIZES) * len(DIMS)
    assert readings.index.is_unique
    for n, d, stretch, shift in itertools.product(SIZES, DIMS, STRETCHES, SHIFTS):
        at, plain = cloud(n, d, shift, stretch), cloud(n, d, 0.0, 1.0)
        for name, score in (("IsoScore", isonb.isoscore), ("mean cosine", isonb.mean_cosine)):
            row = readings.loc[(n, d, stretch, shift, name)]
            assert row["truth"] == pytest.approx(float(score(at)), abs=6e-4)
            assert row["round"] == pytest.approx(float(score(plain)), abs=6e-4)


def test_shift_and_stretch_act_as_the_page_says(frames):
    readings = frames[0].pivot_table(index=["n", "d", "stretch"], columns=["score", "shift"], values="truth")
    score, cosine = readings["IsoScore"], readings["mean cosine"]
    assert (score.max(axis=1) - score.min(axis=1)).max() <= 1e-3, "a shift leaves IsoScore"
    assert cosine.diff(axis=1).iloc[:, 1:].min().min() > 0, "a shift raises the mean cosine"
    assert score[0.0].loc[200, 2].is_monotonic_decreasing, "a stretch lowers IsoScore"
    assert cosine.loc[(200, 40, 1.0), 2.0] == pytest.approx(4 / 5, abs=0.02)
    assert score.loc[(20, 40, 1.0), 0.0] < score.loc[(200, 40, 1.0), 0.0] - 0.3, "few points lower it"


def test_spectra_are_shares_of_the_centred_cloud(frames):
    spectra = frames[1].set_index(["n", "d", "stretch"])["shares"]
    for n, d, stretch in itertools.product(SIZES, DIMS, STRETCHES):
        wanted = torch.linalg.eigvalsh(torch.cov(cloud(n, d, 1.0, stretch).T)).flip(0)
        wanted = (wanted / wanted.sum())[:10]
        assert spectra[n, d, stretch] == pytest.approx(wanted.tolist(), abs=6e-4)


def test_bent_leaves_the_noise_alone():
    noise = torch.ones(3, 2, dtype=torch.float64)
    assert bent(noise, 0.0, 4.0).tolist() == [[4.0, 1.0]] * 3
    assert noise.tolist() == [[1.0, 1.0]] * 3


def test_a_cloud_needs_two_dimensions_and_three_points():
    assert len(guess_frames([0.0], [1.0], [3], [2])[0]) == 2
    for sizes, dims in (([2], [2]), ([3], [1])):
        with pytest.raises(PageError, match="at least 2 dimensions and 3 points"):
            guess_frames([0.0], [1.0], sizes, dims)


def test_the_chart_compiles_with_all_its_controls(frames):
    vl_convert = pytest.importorskip("vl_convert")
    chart = guess_chart(*frames)
    compiled = vl_convert.vegalite_to_vega(chart.to_json(), vl_version="6.4")
    compiled = compiled if isinstance(compiled, dict) else json.loads(compiled)
    bound = {signal["name"]: signal["bind"]["input"] for signal in compiled["signals"] if "bind" in signal}
    sliders = dict.fromkeys(("shift", "stretch", "guess0", "guess1"), "range")
    assert bound == {**sliders, "n": "select", "d": "select", "reveal": "checkbox"}
    assert chart.to_dict()["params"][0]["bind"] == {"input": "range", "min": 0, "max": 2, "step": 1, "name": "shift "}
