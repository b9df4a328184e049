"""Spreads, words and pictures of evidence, against values worked out another way."""

import pytest

from isonb_lab import pages


@pytest.mark.parametrize(
    ("values", "options", "text"),
    [
        ([], {}, "–"),
        ([float("nan")], {}, "–"),
        ([0.5], {}, "0.500, n = 1"),
        ([-0.00001, 0.00001], {"count": False}, "0.00000 (-0.00013 to 0.00013)"),
        ([0.00002, 0.00003, 0.00004], {"sign": "+"}, "+0.000030 (+0.000005 to +0.000055), n = 3"),
        ([0.0, 0.0], {"sign": "+"}, "0.000 (0.000 to 0.000), n = 2"),
        ([0.1, 0.1, 0.1], {}, "0.100 (0.100 to 0.100), n = 3"),
        ([0.1, 0.1, 0.1 + 1e-8], {}, "0.100000 (0.100000 to 0.100000), n = 3"),
        ([0.1, 0.1001], {}, "0.10005 (0.09941 to 0.10069), n = 2"),
        ([1.0, 2.0, 3.0], {"digits": 1, "sign": "+"}, "+2.0 (-0.5 to +4.5), n = 3"),
    ],
)
def test_spread(values, options, text):
    assert pages.spread(values, **options) == text


def test_cells_stand_under_what_is_claimed_and_measured():
    row = {"claim": 3, "statement": "It helps", "what": "score", "cell": "CoLA", "n": 5}
    row |= {"mean": -0.0001, "low": -0.02, "high": 0.02, "mde": 0.03, "outcome": "inconclusive"}
    rows = [row, row | {"cell": "MRPC"}, row | {"what": "IsoScore"}, row | {"claim": 4, "statement": "It harms"}]
    shown = pages.cells_table(rows, caption="Cells.")
    assert shown.rows[0] == ("CoLA", "inconclusive", "5", "0.000 (-0.020 to +0.020)", "0.030")
    assert shown.heads == {0: ["Claim 3: It helps", "score"], 2: ["IsoScore"], 3: ["Claim 4: It harms", "score"]}
    none = row | {"mean": None, "low": None, "high": None, "mde": None, "outcome": "not testable"}
    assert pages.cells_table([none], caption="").rows[0][3:] == ("–", "–")
