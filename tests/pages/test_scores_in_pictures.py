"""Scores over layers and on the line of the truth, and what tables of them say."""

import math

import pandas as pd
import pytest
from scipy import stats

from isonb.pages.against_truth import against_truth
from isonb.pages.evidence import estimate, intervals
from isonb.pages.layer_panels import layer_panels


@pytest.mark.parametrize(
    ("value", "error", "digits", "told"),
    [
        (0.56, 0.0066, 3, "0.560 ± 0.013"),
        (0.56, 0.0001, 3, "0.5600 ± 0.0002"),
        (15.3, 4.6, 2, "15.30 ± 9.02"),
        (5.0, 0.0, 1, "5.0"),
        (-1.2e-5, 3e-4, 2, "0.000 ± 0.001"),
        (7.2e-6, 2e-7, 2, "7.2e-06 ± 4e-07"),
        (1.0, 1e-7, 3, "1.0000 (± less than 0.0001)"),
    ],
)
def test_an_estimate_is_cut_where_its_interval_begins(value, error, digits, told):
    assert estimate(value, error, digits) == told


def test_intervals_are_students():
    frame = pd.DataFrame({"arm": ["a"] * 4 + ["b"], "value": [1.0, 2.0, 4.0, 5.0, 7.0]})
    found = intervals(frame, ["arm"]).set_index("arm")
    part = [1.0, 2.0, 4.0, 5.0]
    low, high = stats.t.interval(0.95, 3, 3.0, stats.sem(part))
    assert found.loc["a"].tolist() == pytest.approx([3.0, low, high, 4], abs=1e-4)
    assert found.loc["b"].tolist() == [7.0, 7.0, 7.0, 1], "one value has no interval"


def test_layers_have_a_panel_a_score_and_the_isotropic_value():
    frame = pd.DataFrame({"score": ["IsoScore"] * 2, "cloud": "[CLS]", "layer": [0, 1], "value": [0.1, 0.2]})
    frame = frame.assign(low=frame.value - 0.05, high=frame.value + 0.05, isotropic=0.9)
    spec = layer_panels(frame, scores=["IsoScore", "TwoNN"], clouds=["mean", "[CLS]"]).to_dict()
    assert spec["facet"]["sort"] == ["IsoScore", "TwoNN"]
    band, line, flat = spec["spec"]["layer"]
    assert (band["encoding"]["y"]["field"], band["encoding"]["y2"]["field"]) == ("low", "high")
    assert line["encoding"]["color"]["scale"]["domain"] == ["mean", "[CLS]"]
    assert (flat["encoding"]["y"]["aggregate"], flat["encoding"]["y"]["field"]) == ("mean", "isotropic")


def test_marks_and_truth_share_their_axes():
    marks = pd.DataFrame([("IsoScore", 2.0, 0.4, 0.3, 0.5, 4)], columns=["arm", "x", "mean", "low", "high", "n"])
    truth = pd.DataFrame({"x": [1.0, 3.0], "y": [0.0, math.pi]})
    spec = against_truth(marks, truth, arms=["IsoScore"], x="directions", y="score").to_dict()
    line, bars, dots = spec["layer"]
    assert [part["encoding"]["x"]["title"] for part in (line, bars, dots)] == ["directions"] * 3
    assert [part["encoding"]["y"]["field"] for part in (line, bars, dots)] == ["y", "low", "mean"]
    assert [row["y"] for row in spec["datasets"][line["data"]["name"]]] == [0.0, 3.1416]
