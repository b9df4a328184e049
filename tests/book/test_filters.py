"""The menus and the search above a long table, in a browser."""

import pytest
from browser import needs_chromium

from isonb_lab.pages.values import table

ROWS = [
    {"paper": "One", "claim": "1", "outcome": "supported"},
    {"paper": "One", "claim": "2", "outcome": "contradicted"},
    {"paper": "Two", "claim": "3", "outcome": "supported"},
]
SHOWN = "() => [...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => row.cells[1].innerText)"


@pytest.mark.browser
@needs_chromium
def test_menus_and_search_leave_the_rows_that_fit_and_say_how_many(browser):
    page = browser.new_page()
    page.set_content(table(ROWS, filters=["paper", "outcome"])._repr_html_())
    assert page.evaluate(SHOWN) == ["1", "2", "3"]
    assert page.locator("option").all_inner_texts() == ["all", "One", "Two", "all", "supported", "contradicted"]
    page.locator("select").nth(1).select_option("supported")
    assert page.evaluate(SHOWN) == ["1", "3"]
    page.locator("input").fill("TWO")
    assert page.evaluate(SHOWN) == ["3"]
    assert page.locator("output").inner_text() == "1 of 3 rows"
    page.close()
