"""Pictures and tables as functions of data: what is drawn, in which order, and what they compute on the way."""

import math

import altair as alt
import pandas as pd
import pytest
import torch

from isonb.pages.change_rows import change_rows
from isonb.pages.cloud_scores import cloud_frames, cloud_scores
from isonb.pages.crosses import crosses
from isonb.pages.evidence import half_width, spread
from isonb.pages.sample_sizes import sample_sizes
from isonb.pages.spectra import divided_spectrum


@pytest.fixture(autouse=True)
def no_limit():
    with alt.data_transformers.enable("default", max_rows=None):
        yield


def data_of(chart):
    """All rows of a chart, one table after the other."""
    return [pd.DataFrame(rows) for rows in chart.to_dict()["datasets"].values()]


def test_a_cloud_moves_and_its_readings_with_it():
    cloud = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    changes = {"up": lambda x, t: x + t, "larger": lambda x, t: (1 + t) * x}
    spots, scores = cloud_frames(cloud, changes, lambda x: {"mean": float(x.mean())}, [0.0, 0.5])
    assert len(spots) == 8
    assert scores.values.tolist() == [
        ["up", 0.0, "mean", 1.5],
        ["up", 0.5, "mean", 2.0],
        ["larger", 0.0, "mean", 1.5],
        ["larger", 0.5, "mean", 2.25],
    ]
    chart = cloud_scores(spots, scores, names=["mean"], frame=(-1, 4), keep="datum.t == 0")
    text = chart.to_json()
    assert text.count('"filter": "datum.t == 0"') == 3, "cloud, bars and marks are filtered alike"
    assert {len(rows) for rows in data_of(chart)} == {8, 4, 1}


def test_sizes_draw_only_the_curves_asked_for():
    frame = pd.DataFrame(
        {"curve": ["a", "a", "b"], "points": [16, 64, 16], "samples": 5, "value": 0.5, "sd": [0.1, None, 0.2]}
    ).assign(theory=math.nan)
    chart = sample_sizes(frame, curves=["a"], truth=0.9, title="IsoScore", scheme="viridis")
    (rows,) = (rows for rows in data_of(chart) if "low" in rows)
    assert rows["curve"].tolist() == ["a", "a"]
    assert rows["low"].tolist() == [0.4, 0.5], "without a deviation the bar has no length"
    assert rows["high"].tolist() == [0.6, 0.5]
    assert '"datum": 0.9' in chart.to_json()


def test_crosses_have_students_intervals_both_ways():
    frame = pd.DataFrame({"suite": "s", "arm": ["p", "p", "q"], "x": [1.0, 3.0, 5.0], "y": [0.2, 0.4, 0.6]})
    chart = crosses(frame, arms=["q", "p"], suites=["s"], x="IsoScore*", y="score")
    (rows,) = data_of(chart)
    rows = rows.set_index("arm")
    assert rows.loc["p", ["x", "y", "n"]].tolist() == [2.0, 0.3, 2]
    assert rows.loc["p", "x_high"] == pytest.approx(2 + half_width([1.0, 3.0]), abs=1e-4)
    assert rows.loc["q", "x_low"] == rows.loc["q", "x_high"] == 5.0, "one run has no interval"
    marks = chart.to_dict()["spec"]["layer"][2]["encoding"]
    assert marks["color"]["scale"]["domain"] == marks["shape"]["scale"]["domain"] == ["q", "p"]


def test_the_line_of_equal_numbers_runs_through_all_crosses_of_its_panel():
    frame = pd.DataFrame({"suite": ["s", "s", "t"], "arm": "p", "x": [1.0, 3.0, 5.0], "y": [0.2, 0.4, 9.0]})
    chart = crosses(frame, arms=["p"], suites=["s", "t"], x="here", y="there", equal=True)
    (rows,) = data_of(chart)
    rows = rows.set_index("suite")
    assert rows.loc["t", ["least", "most"]].tolist() == [5.0, 9.0]
    half = half_width([1.0, 3.0])
    assert rows.loc["s", ["least", "most"]].tolist() == pytest.approx([2 - half, 2 + half], abs=1e-4)
    line = chart.to_dict()["spec"]["layer"][0]["encoding"]
    assert [line[axis]["field"] for axis in ("x", "y", "x2", "y2")] == ["least", "least", "most", "most"]


def test_a_spectrum_is_divided_at_its_limit():
    rows = pd.DataFrame({"direction": [1, 2], "variance": [3.0, 1.0], "side": ["above", "below"]})
    facts = pd.DataFrame({"limit": [2.5], "told": ["IsoScore 0.6"]})
    text = divided_spectrum(rows, facts, top=9).to_json()
    assert '"IsoScore 0.6"' in text
    assert all(f'"field": "{name}"' in text for name in ("direction", "variance", "side", "limit", "told"))


def test_rows_of_changes():
    scores = {"none": (0.5, 0.6, 0.7), "CosReg": (0.6, 0.8, 0.7), "IsoBN": (0.9,), "λ = -1": (0.8,)}
    rows = [("live", arm, seed, s) for arm, part in scores.items() for seed, s in enumerate(part)]
    frame = pd.DataFrame([*rows, ("alone", "CosReg", 0, 0.5)], columns=["suite", "arm", "seed", "value"])
    arms = ["IsoBN", "none", "CosReg", "unknown"]
    assert change_rows({"accuracy": frame}, suites=["live", "elsewhere", "alone"], arms=arms) == [
        {"task": "live", "arm": "IsoBN", "accuracy": "+0.400 (1)"},
        {"task": "live", "arm": "none (value)", "accuracy": spread([0.5, 0.6, 0.7])},
        {"task": "live", "arm": "CosReg", "accuracy": spread([0.1, 0.2, 0.0], sign="+")},
        {"task": "alone", "arm": "CosReg", "accuracy": "–"},
    ]
