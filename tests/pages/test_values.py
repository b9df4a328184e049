"""Tables and glued numbers: formats, accessibility, errors."""

import math
import re

import pandas as pd
import pytest
import torch
from IPython.utils.capture import capture_output

from isonb_lab import pages
from isonb_lab.pages.errors import PageError


def test_table_is_accessible():
    frame = pd.DataFrame({"cloud": ["a<b", "cone"], "score": [0.123456, math.nan], "n": [3, 4]})
    html = pages.table(frame, fmt={"score": ".2f"}, caption="Scores & sizes")._repr_html_()
    assert re.findall(r'scope="(\w+)"', html) == ["col", "col", "col", "row", "row"]
    assert "<caption>Scores &amp; sizes</caption>" in html
    assert all(f">{cell}<" in html for cell in ("a&lt;b", "0.12", "–", "3"))


ROWS = [{"x": 1, "y": 2.5}, {"x": 2, "y": 3.5}]


@pytest.mark.parametrize(
    "data", [ROWS, {"x": [1, 2], "y": [2.5, 3.5]}, pd.DataFrame(ROWS)], ids=["rows", "columns", "frame"]
)
def test_three_kinds_of_data_give_one_table(data):
    assert repr(pages.table(data)).split() == ["x", "y", "1", "2.5", "2", "3.5"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([], {}, "at least one row"),
        ({"x": [1], "y": [1, 2]}, {}, "one length"),
        ([1, 2], {}, "must be mappings"),
        ({"x": [1.0]}, {"fmt": {"z": ".2f"}}, "aren't there"),
        ({"x": [1.0]}, {"fmt": ".2q"}, "doesn't fit"),
        ({"x": [1.0]}, {"filters": ["z"]}, r"filters names columns that aren't there: \['z'\]"),
    ],
)
def test_bad_tables_are_refused(data, options, message):
    with pytest.raises(PageError, match=message):
        pages.table(data, **options)


@pytest.mark.parametrize(
    ("value", "fmt", "text"),
    [
        (1 / 3, ".2f", "0.33"),
        (0.123456, None, "0.1235"),
        (7, None, "7"),
        (torch.tensor(0.5), ".1%", "50.0%"),
        (float("nan"), ".2f", "–"),
        (float("-inf"), ".2f", "-inf"),
        (0.0, ".0e", "0"),
        (-0.0004, "+.2f", "0.00"),
        (-0.06, ".1f", "-0.1"),
        ("word", None, "word"),
    ],
)
def test_glue_keeps_formatted_text(shell, value, fmt, text):
    with capture_output() as shown:
        pages.glue("name", value, fmt)
    (output,) = shown.outputs
    assert output.data == {"application/papermill.record/text/plain": text}
    assert output.metadata["scrapbook"]["name"] == "name"
    assert shown.stdout == f"name: {text}\n", "who changes a parameter sees the new value in the cell that computes it"


def test_lines_above_rows_run_over_all_columns():
    result = pages.table([{"x": 1, "y": 2}, {"x": 3, "y": 4}], heads={1: ["A & B", "c"]})
    html = result._repr_html_()
    assert html.count('<tr class="head"><th scope="colgroup" colspan="2">') == 2
    assert html.index(">1<") < html.index("A &amp; B") < html.index(">c<") < html.index(">3<")
    assert repr(result).splitlines() == ["x  y", "1  2", "A & B", "c", "3  4"]


def test_the_comma_behind_an_interval_stays_with_it():
    """Where a row is short of room an interval has a line of its own, and no line begins with a comma."""
    html = pages.table([{"task": "CoLA", "score": "+0.1 (-0.2 to +0.4), n = 3"}])._repr_html_()
    assert '+0.1 <span class="interval">(-0.2 to +0.4),</span> n = 3' in html
