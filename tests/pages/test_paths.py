"""Paths of runs: moments are counted, every row is drawn faint and the chosen moment in full."""

import pandas as pd

from isonb.pages.paths import numbered, paths


def frame():
    rows = [("RTE", 0, 10, 0.2, 0.0), ("RTE", 0, 30, 0.1, 0.05), ("CoLA", 0, 30, 0.15, -0.01)]
    return pd.DataFrame(rows, columns=["suite", "seed", "update", "x", "y"])


def test_moments_are_counted_over_all_runs():
    assert numbered(frame()).moment.tolist() == [1, 2, 2]


def test_one_moment_is_drawn_in_full():
    keep = "datum.moment == 2"
    chart = paths(numbered(frame()), suites=["RTE", "CoLA"], x="IsoScore", y="gain", keep=keep, ticks=[0.1, 0.2])
    made = chart.to_dict()
    (rows,) = made["datasets"].values()
    assert [row["moment"] for row in rows] == [1, 2, 2]
    zero, trail, now, words = made["spec"]["layer"]
    assert "transform" not in zero
    assert "transform" not in trail
    assert now["transform"] == [{"filter": keep}]
    assert words["transform"][0] == {"filter": keep}
    color = trail["encoding"]["color"]
    assert color["scale"]["domain"] == color["sort"] == ["RTE", "CoLA"]
    assert trail["encoding"]["x"]["axis"]["values"] == [0.1, 0.2]
