"""Tables and glued numbers: formats, accessibility, errors."""

import math
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from isonb import pages
from isonb.pages.errors import PageError


@pytest.fixture
def shell():
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


class Cells(HTMLParser):
    """The header cells of a table with their scope, and its caption."""

    def __init__(self, html):
        super().__init__()
        self.scopes, self.caption, self.tag = [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tag = tag
        if tag == "th":
            self.scopes.append(dict(attributes)["scope"])

    def handle_data(self, data):
        if self.tag == "caption":
            self.caption += data


def test_table_is_accessible():
    frame = pd.DataFrame({"cloud": ["a<b", "cone"], "score": [0.123456, math.nan], "n": [3, 4]})
    html = pages.table(frame, fmt={"score": ".2f"}, caption="Scores & sizes")._repr_html_()
    cells = Cells(html)
    assert cells.scopes == ["col", "col", "col", "row", "row"]
    assert cells.caption == "Scores & sizes"
    assert "a&lt;b" in html
    assert ">0.12<" in html
    assert ">–<" in html
    assert ">3<" in html


@pytest.mark.parametrize(
    "data",
    [
        [{"x": 1, "y": 2.5}, {"x": 2, "y": 3.5}],
        {"x": [1, 2], "y": [2.5, 3.5]},
        pd.DataFrame({"x": [1, 2], "y": [2.5, 3.5]}),
    ],
    ids=["rows", "columns", "frame"],
)
def test_three_kinds_of_data_give_one_table(data):
    assert repr(pages.table(data)).split() == ["x", "y", "1", "2.5", "2", "3.5"]


def test_index_becomes_the_first_column():
    frame = pd.DataFrame({"v": [1.0]}, index=pd.Index(["row"], name="name"))
    assert repr(pages.table(frame, index=True)).split() == ["name", "v", "row", "1"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ([], {}, "at least one row"),
        ({"x": [1], "y": [1, 2]}, {}, "one length"),
        ([1, 2], {}, "must be mappings"),
        ({"x": [1.0]}, {"fmt": {"z": ".2f"}}, "aren't there"),
        ({"x": [1.0]}, {"fmt": ".2q"}, "doesn't fit"),
    ],
)
def test_bad_tables_are_refused(data, options, message):
    with pytest.raises(PageError, match=message):
        pages.table(data, **options)


def test_table_is_displayed_once(shell):
    with capture_output() as shown:
        made = pages.table([{"x": 1}])
        shell.display_formatter.format(made)
    assert len(shown.outputs) == 1
    assert "isonb-table" in shown.outputs[0].data["text/html"]


@pytest.mark.parametrize(
    ("value", "fmt", "text"),
    [
        (1 / 3, ".2f", "0.33"),
        (0.123456, None, "0.1235"),
        (7, None, "7"),
        (torch.tensor(0.5), ".1%", "50.0%"),
        (np.float64(2.0), ".1f", "2.0"),
        (float("nan"), ".2f", "–"),
        (float("-inf"), ".2f", "-inf"),
        (0.0, ".0e", "0"),
        (-0.0004, ".2f", "0.00"),
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


def test_glue_refuses_a_blank_name_and_a_wrong_format():
    with pytest.raises(PageError, match="needs a name"):
        pages.glue(" ", 1)
    with pytest.raises(PageError, match="doesn't fit"):
        pages.glue("x", "word", ".2f")


def test_lines_above_rows_run_over_all_columns():
    made = pages.table([{"x": 1, "y": 2}, {"x": 3, "y": 4}], heads={1: ["A & B", "c"]})
    html = made._repr_html_()
    assert html.count('<tr class="head"><th scope="colgroup" colspan="2">') == 2
    assert html.index(">1<") < html.index("A &amp; B") < html.index(">c<") < html.index(">3<")
    assert repr(made).splitlines() == ["x  y", "1  2", "A & B", "c", "3  4"]


def test_a_count_that_is_always_the_same_is_said_once():
    rows = [{"arm": arm, "score": "0.51 (0.49 to 0.53), n = 5", "IsoScore": "-0.1, n = 5"} for arm in "ab"]
    made = pages.table(rows, caption="Scores.")
    assert made.rows == [("a", "0.51 (0.49 to 0.53)", "-0.1"), ("b", "0.51 (0.49 to 0.53)", "-0.1")]
    assert made.caption == "Scores. n = 5."
    other = pages.table(
        [*rows, {"arm": "c", "score": "0.51 (0.49 to 0.53), n = 4", "IsoScore": "theirs (2023)"}], caption="Scores."
    )
    assert other.rows[0][1] == "0.51 (0.49 to 0.53), n = 5"
    assert other.caption == "Scores."


def test_a_sentence_has_room_and_the_text_is_unchanged():
    row = {"SST-2": 1, "why": "no clear change: small & short", "gain": "0.58 (0.57 to 0.59)"}
    html = pages.table([row], caption="Runs on STS-B.")._repr_html_()
    assert (
        '<td class="long">no clear change: small &amp; short</td><td>0.58 <span class="interval">(0.57 to 0.59)</span></td>'
        in html
    )
    assert "<caption>Runs on STS-B.</caption>" in html
