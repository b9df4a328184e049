"""Names with a hyphen, numbers with their interval, a formula with its comma stay on one line; the text is the same."""

import pytest
from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Parser
from docutils.utils import new_document

from isonb.pages.unbroken import Unbroken
from isonb.pages.values import table
from isonb.pages.whole_words import marked, split


@pytest.mark.parametrize(
    "whole", ["SST-2", "I-STAR", "STS-12", "IsoScore-U", "t-SNE", "4e-08", "-0.58 ± 0.01", "7e-06 ± 4e-07"]
)
def test_words_that_stay_whole(whole):
    assert split(f"in {whole}, then") == [("in ", False), (whole, True), (", then", False)]


@pytest.mark.parametrize("loose", ["fine-tuning", "BERT-base", "well-known", "a - b", "0.5 to 0.6", "-0.5"])
def test_words_that_may_break(loose):
    assert split(loose) == [(loose, False)]


def paragraph(*parts):
    document = new_document("page", get_default_settings(Parser))
    document += nodes.paragraph("", "", *parts)
    Unbroken(document).run()
    return document[0]


def kept(node):
    return [part.astext() for part in node.findall(nodes.inline) if "nobreak" in part["classes"]]


def test_a_page_has_the_same_text_and_its_words_are_marked():
    text = "On SST-2 it is 0.58 ± 0.01 for I-STAR."
    found = paragraph(nodes.Text(text))
    assert found.astext() == text
    assert kept(found) == ["SST-2", "0.58 ± 0.01", "I-STAR"]


def test_a_formula_keeps_its_comma():
    found = paragraph(
        nodes.Text("for "), nodes.math("", "n"), nodes.Text(", since"), nodes.math("", "d"), nodes.Text(" is")
    )
    assert found.astext() == "for n, sinced is"
    assert kept(found) == ["n,"]
    assert len(list(found.findall(nodes.math))) == 2


def test_a_formula_takes_the_full_stop_behind_it_and_no_other():
    """Two texts of a paragraph can read the same, as the full stops at the end of two lines do."""
    stop = [nodes.literal("", "x"), nodes.Text("."), nodes.literal("", "y")]
    found = paragraph(*stop, nodes.math("", "d"), nodes.Text("."))
    assert found.astext() == "x.yd."
    assert kept(found) == ["d."]


def test_code_and_formulas_are_left_alone():
    assert kept(paragraph(nodes.literal("", "SST-2"), nodes.math("", "I-STAR"))) == []


def test_cells_of_tables_keep_names_whole():
    assert marked("on SST-2 & all") == 'on <span class="nobreak">SST-2</span> &amp; all'
    assert (
        '<span class="nobreak">I-STAR</span> with both signs'
        in table([{"a": 1, "b": "I-STAR with both signs"}])._repr_html_()
    )
