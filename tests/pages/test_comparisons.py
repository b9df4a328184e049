"""Pictures that several chapters draw: intervals against scipy, lines and panels in the order given."""

import math

import pandas as pd
import pytest
import torch
import vl_convert
from support import normal

from isonb_lab import pages
from isonb_lab.data.corpus import sentences
from isonb_lab.pages.charts.comparisons import crosses, gains, growing
from isonb_lab.pages.charts.sentences import plane, sentence_clouds
from isonb_lab.pages.evidence import ledger_rows
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


def rows(chart):
    return [row for table in chart.to_dict()["datasets"].values() for row in table]


@pytest.mark.parametrize("suites", [["CoLA", "MRPC"], ["MRPC", "CoLA"]])
def test_a_forest_names_its_rows_in_the_order_in_which_it_draws_them(suites):
    """Vega-Lite sorts the panels of a grid as told, and names its rows in the order of the data."""
    frame = pd.concat([FRAME.assign(what="score"), FRAME.assign(what="IsoScore")])
    chart = pages.forest(frame, arms=["a", "b"], suites=suites, title="change", column="what")
    picture = vl_convert.vegalite_to_svg(chart.resolve_scale(x="independent", y="independent").to_dict())
    assert sorted(suites, key=lambda name: picture.index(f">{name}<")) == suites


@pytest.mark.parametrize(("rows_of_the_second", "named"), [(FRAME, 1), (FRAME[:2], 2)], ids=["the same rows", "others"])
def test_a_side_of_a_forest_with_other_rows_names_its_suites(rows_of_the_second, named):
    frame = pd.concat([FRAME.assign(what="zeta"), rows_of_the_second.assign(what="layers")])
    chart = pages.forest(frame, arms=["a", "b"], suites=["CoLA", "MRPC"], title="change", column="what")
    assert vl_convert.vegalite_to_svg(chart.to_dict()).count(">CoLA<") == named


def test_crosses_have_students_intervals_both_ways_and_a_line_through_all_of_a_panel():
    frame = pd.DataFrame({"suite": ["s", "s", "t"], "arm": "p", "x": [1.0, 3.0, 5.0], "y": [0.2, 0.4, 9.0]})
    chart = crosses(frame, arms=["p"], suites=["s", "t"], x="here", y="there", equal=True)
    first, two = map(pd.Series, rows(chart))
    half = pages.half_width([1.0, 3.0])
    assert first[["x", "y", "n"]].tolist() == [2.0, 0.3, 2]
    assert first[["x_high", "least", "most"]].tolist() == pytest.approx([2 + half, 2 - half, 2 + half], abs=1e-4)
    assert two[["x_low", "x_high", "least", "most"]].tolist() == [5.0, 5.0, 5.0, 9.0], "one run has no interval"


@pytest.mark.parametrize("seeds", [2, 3])
def test_gains_grow_by_students_intervals_of_the_first_seeds(seeds):
    values = {"a": [0.01, 0.03, -0.02], "b": [0.2, 0.1]}
    runs = [("SST-2", arm, seed, v) for arm, part in values.items() for seed, v in enumerate(part, start=3)]
    frame = pd.DataFrame(runs, columns=["suite", "arm", "seed", "gain"]).sample(frac=1, random_state=0)
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
    runs = [("live", arm, seed, s) for arm, part in scores.items() for seed, s in enumerate(part)]
    frame = pd.DataFrame([*runs, ("alone", "CosReg", 0, 0.5)], columns=["suite", "arm", "seed", "value"])
    arms = ["IsoBN", "none", "CosReg", "unknown"]
    result = pages.evidence.change_rows({"accuracy": frame}, suites=["live", "elsewhere", "alone"], arms=arms)
    assert result == [
        {"task": "live", "arm": "IsoBN", "accuracy": "+0.400, n = 1"},
        {"task": "live", "arm": "none (value)", "accuracy": pages.spread([0.5, 0.6, 0.7])},
        {"task": "live", "arm": "CosReg", "accuracy": pages.spread([0.1, 0.2, 0.0], sign="+")},
        {"task": "alone", "arm": "CosReg", "accuracy": "–"},
    ]
    assert math.isnan(pages.half_width([1.0]))


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        ([float("nan"), 0.5], {}, "0.500, n = 1"),
        ([0.1, 0.1, 0.1], {}, "0.100 (0.100 to 0.100), n = 3"),
        ([-0.00001, 0.00001], {"count": False}, "0.00000 (-0.00013 to 0.00013)"),
        ([0.1, 0.1, 0.1 + 1e-8], {}, "0.100000 (0.100000 to 0.100000), n = 3"),
        ([0.1, 0.1001], {}, "0.10005 (0.09941 to 0.10069), n = 2"),
        ([1.0, 2.0, 3.0], {"digits": 1, "sign": "+"}, "+2.0 (-0.5 to +4.5), n = 3"),
    ],
)
def test_spread(values, options, text):
    assert pages.spread(values, **options) == text


def test_a_cell_of_the_ledger_is_text():
    row = {"claim": 3, "what": "score", "cell": "CoLA", "n": 5, "outcome": "inconclusive", "reason": "few seeds"}
    row |= {"mean": -0.0001, "low": -0.02, "high": 0.02, "mde": 0.03}
    (tested,) = ledger_rows([row])
    (untested,) = ledger_rows([row | dict.fromkeys(("cell", "n", "mean", "low", "high", "mde"))])
    assert list(tested.values())[4:] == ["5", "0.000 (-0.020 to +0.020)", "0.030", ""]
    assert list(untested.values()) == ["3", "score", "–", "inconclusive", "–", "–", "–", "few seeds"]


SOME = sentences()[:40]
X = normal(40, 6) @ torch.diag(torch.tensor([5.0, 3.0, 1.0, 1.0, 0.5, 0.1], dtype=torch.float64))


def test_a_plane_is_turned_onto_the_other_view():
    turn = torch.linalg.qr(normal(6, 6, seed=1)).Q
    assert torch.allclose(plane(X @ turn, onto=plane(X)), plane(X), atol=1e-9)
    assert plane(X).square().sum(0).argmax() == 0, "the widest direction first"


@pytest.mark.filterwarnings("ignore:Automatically deduplicated")  # as pages.setup does
def test_every_view_has_every_sentence_and_its_words():
    edges = torch.tensor([[0, 1], [2, 3]])
    chart = sentence_clouds({"as it is": X, "with noise": X + normal(40, 6, seed=2)}, SOME, edges={"with noise": edges})
    report = [row["sentence"] for row in rows(chart) if "sentence" in row]
    assert sorted(report) == sorted(2 * [s.text for s in SOME])
    assert sum("x2" in row for row in rows(chart)) == len(edges)
    assert max(abs(row["x"]) for row in rows(chart)) == pytest.approx(1)
