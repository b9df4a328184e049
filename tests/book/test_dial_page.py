"""The dial on its chapter, in a browser that can only read files: `make book` first."""

import pytest
from browser import HTML, SET, open_page, opens, use_theme

PAGE = HTML / "book" / "results" / "the_dial.html"

pytestmark = opens(PAGE)
STATE = """() => { const root = document.querySelector('.isonb-dial'); return {
  cloud: [...root.querySelectorAll('svg')[0].querySelectorAll('circle')].map((c) => c.getAttribute('cx')).join(),
  dots: [...root.querySelectorAll('.isonb-dot')].map((c) => c.getAttribute('cx') + ' ' + c.getAttribute('cy')).join(),
  near: [...root.querySelectorAll('li')].map((item) => item.innerText).join(),
  told: root.querySelector('.isonb-told').innerText + root.querySelector('output').innerText,
}; }"""


@pytest.fixture(params=[1280, 390])
def visit(browser, request):
    visit = open_page(browser, PAGE, width=request.param)
    yield visit
    assert visit.outside == visit.failed == visit.errors == []
    visit.page.close()


def test_the_slider_moves_cloud_dots_and_neighbours(visit):
    dial = visit.page.locator(".isonb-dial")
    before = visit.page.evaluate(STATE)
    assert "as it is" in before["told"]
    dial.locator("input").evaluate(SET, "7")
    after = visit.page.evaluate(STATE)
    assert all(after[key] != before[key] for key in before)
    dial.locator("select").first.select_option(index=1)
    other = visit.page.evaluate(STATE)
    assert all(other[key] != after[key] for key in ("cloud", "dots", "told"))


def test_a_sentence_is_chosen_from_the_menu_or_in_the_cloud(visit):
    dial = visit.page.locator(".isonb-dial")
    before = visit.page.evaluate(STATE)
    dial.locator("select").last.select_option(index=5)
    menu = visit.page.evaluate(STATE)
    assert menu["near"] != before["near"]
    dial.locator("circle.isonb-pickable").first.dispatch_event("click")
    assert dial.locator("select").last.input_value() == "0"
    assert dial.locator("circle title").first.text_content()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_its_page_and_its_words_are_seen(visit, theme):
    use_theme(visit.page, theme)
    box = visit.page.locator(".isonb-dial").bounding_box()
    width = visit.page.viewport_size["width"]
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    seen = visit.page.evaluate(
        "() => { const style = (node) => getComputedStyle(node); const root = document.querySelector('.isonb-dial');"
        " return [style(root.querySelector('svg text')).fill, style(document.body).backgroundColor]; }"
    )
    assert seen[0] != seen[1]
