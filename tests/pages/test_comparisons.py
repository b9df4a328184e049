"""Pictures that several chapters draw: intervals against scipy, lines and panels in the order given."""

import math

import pandas as pd
import pytest
import vl_convert

from isonb_lab import pages
from isonb_lab.pages.charts.comparisons import crosses, gains, growing
from isonb_lab.statistics.seeds import student

FRAME = pd.DataFrame(
    {
        "suite": ["CoLA", "CoLA", "MRPC", "MRPC"],
        "arm": ["a", "b", "a", "b"],
        "mean": [0.1, -0.1, 0.2, 0.0],
        "low": [0.0, -0.2, 0.1, -0.1],
        "high": [0.2, 0.0, 0.3, 0.1],
        "n": [5, 5, 5, 5],
    }
)


@pytest.mark.parametrize("suites", [["CoLA", "MRPC"], ["MRPC", "CoLA"]])
def test_a_forest_names_its_rows_in_the_order_in_which_it_draws_them(suites):
    """Vega-Lite sorts the panels of a grid as told, and names its rows in the order of the data."""
    frame = pd.concat([FRAME.assign(what="score"), FRAME.assign(what="IsoScore")])
    chart = pages.forest(frame, arms=["a", "b"], suites=suites, title="change", column="what")
    picture = vl_convert.vegalite_to_svg(chart.resolve_scale(x="independent", y="independent").to_dict())
    assert sorted(suites, key=lambda name: picture.index(f">{name}<")) == suites


def test_crosses_have_students_intervals_both_ways_and_a_line_through_all_of_a_panel():
    frame = pd.DataFrame({"suite": ["s", "s", "t"], "arm": "p", "x": [1.0, 3.0, 5.0], "y": [0.2, 0.4, 9.0]})
    (rows,) = (
        crosses(frame, arms=["p"], suites=["s", "t"], x="here", y="there", equal=True).to_dict()["datasets"].values()
    )
    first, two = (pd.Series(row) for row in rows)
    half = pages.half_width([1.0, 3.0])
    assert first[["x", "y", "n"]].tolist() == [2.0, 0.3, 2]
    assert first[["x_high", "least", "most"]].tolist() == pytest.approx([2 + half, 2 - half, 2 + half], abs=1e-4)
    assert two[["x_low", "x_high", "least", "most"]].tolist() == [5.0, 5.0, 5.0, 9.0], "one run has no interval"


@pytest.mark.parametrize("seeds", [2, 3])
def test_gains_grow_by_students_intervals_of_the_first_seeds(seeds):
    values = {"a": [0.01, 0.03, -0.02], "b": [0.2, 0.1]}
    rows = [("SST-2", arm, seed, v) for arm, part in values.items() for seed, v in enumerate(part, start=3)]
    frame = pd.DataFrame(rows, columns=["suite", "arm", "seed", "gain"]).sample(frac=1, random_state=0)
    result = growing(frame).query("kind == 'mean' and seeds == @seeds").set_index("arm")
    reference = student(values["a"][:seeds])
    assert result.loc["a", ["mean", "low", "high"]].tolist() == pytest.approx(
        [reference.estimate, reference.low, reference.high], abs=1e-4
    )
    assert result.loc["b", "n"] == 2, "an arm with fewer seeds keeps its last interval"
    text = gains(frame, arms=["a", "b"], suites=["SST-2"], title="gain").to_json()
    assert text.count("datum.seeds == seeds") == 2


def test_rows_of_changes():
    scores = {"none": (0.5, 0.6, 0.7), "CosReg": (0.6, 0.8, 0.7), "IsoBN": (0.9,), "λ = -1": (0.8,)}
    rows = [("live", arm, seed, s) for arm, part in scores.items() for seed, s in enumerate(part)]
    frame = pd.DataFrame([*rows, ("alone", "CosReg", 0, 0.5)], columns=["suite", "arm", "seed", "value"])
    arms = ["IsoBN", "none", "CosReg", "unknown"]
    result = pages.evidence.change_rows({"accuracy": frame}, suites=["live", "elsewhere", "alone"], arms=arms)
    assert result == [
        {"task": "live", "arm": "IsoBN", "accuracy": "+0.400, n = 1"},
        {"task": "live", "arm": "none (value)", "accuracy": pages.spread([0.5, 0.6, 0.7])},
        {"task": "live", "arm": "CosReg", "accuracy": pages.spread([0.1, 0.2, 0.0], sign="+")},
        {"task": "alone", "arm": "CosReg", "accuracy": "–"},
    ]
    assert math.isnan(pages.half_width([1.0]))
