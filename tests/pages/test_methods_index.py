"""What runs say of each method, in words and as marks."""

import pandas as pd
import pytest

from isonb.lab.studies.comparing import against_plain
from isonb.lab.studies.files import study_file
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import NO_SETTING
from isonb.pages.methods_index import WORDS, evidence_map, side, told


def test_every_outcome_of_the_head_to_head_has_a_mark():
    outcomes = set(against_plain(Study.load("head_to_head"), study_file("head_to_head").METHODS)["outcome"])
    assert NO_SETTING in outcomes
    assert outcomes <= set(WORDS)
    assert told([NO_SETTING, "above"], "comparisons") == "above in 1, no working setting in 1 of 2 comparisons"


@pytest.mark.parametrize(("low", "high", "word"), [(1, 2, "above"), (-2, -1, "below"), (-1, 1, "not told apart")])
def test_an_interval_lies_on_one_side_or_on_both(low, high, word):
    assert side(low, high) == word


def test_an_interval_that_touches_zero_tells_nothing():
    assert side(0.0, 1.0) == side(-1.0, 0.0) == "not told apart"


def test_outcomes_are_counted_in_the_order_of_the_words():
    assert told(["not told apart", "above", "above"], "sets") == "above in 2, not told apart in 1 of 3 sets"
    assert told(iter(["below"]), "comparisons") == "below in 1 of 1 comparisons"
    assert told([], "sets") == "no runs"


def test_the_map_has_a_mark_a_row_and_keeps_the_order_given():
    cells = [("b", "x", "above"), ("a", "x", "below"), ("a", "y", "not told apart")]
    frame = pd.DataFrame(cells, columns=["arm", "cell", "outcome"]).assign(mean=0.123456, low=0, high=1, unit="points")
    chart = evidence_map(frame, arms=["b", "a"], cells=["y", "x"]).to_dict()
    assert chart["encoding"]["y"]["sort"] == ["b", "a"]
    assert chart["encoding"]["x"]["sort"] == ["y", "x"]
    assert chart["encoding"]["shape"]["scale"]["domain"] == list(WORDS)
    (rows,) = chart["datasets"].values()
    assert len(rows) == 3
    assert rows[0]["mean"] == 0.1235
