"""The pictures of the dial are drawn from what was recorded."""

import pytest

from isonb_lab import pages
from isonb_lab.figures import the_dial


@pytest.fixture(scope="module")
def figures():
    pages.setup()
    return the_dial


@pytest.fixture(scope="module")
def tables(figures):
    return figures.tables()


def test_each_picture_of_the_chapter_has_its_rows(figures, tables):
    assert figures.curves(tables, ["similarity", "linear head"]).to_dict()["facet"]["field"] == "reader"
    assert len(figures.parts(tables, "similarity").data) == 2 * 6 * 5
    assert len(figures.first_token(tables).to_dict()["vconcat"]) == 2
