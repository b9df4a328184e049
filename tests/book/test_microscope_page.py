"""The two pictures of the microscope's chapter, moved in a browser that can only read files: `make book` first."""

import re

import pytest
from browser import HTML, SET, open_page, opens

PAGE = HTML / "book" / "foundations" / "clouds_and_cones_more.html"

pytestmark = opens(PAGE)
LISTS = """() => [...document.querySelectorAll('.isonb-lists section')].map(
  (section) => [...section.querySelectorAll('li')].map((item) => item.innerText))"""


@pytest.fixture(scope="module", params=[1280, 390], ids=["wide", "phone"])
def visit(browser, request):
    """The page, opened once for its tests, which leave another cloud to the next."""
    with open_page(browser, PAGE, width=request.param) as visit:
        yield visit
    assert visit.outside == visit.failed == visit.errors == []


def report(visit):
    """The words that the second picture says."""
    return " | ".join(visit.page.locator(".isonb-vega svg .role-mark text").all_text_contents())


def control(visit, name):
    """A slider, menu or box of the second picture by its label."""
    return visit.page.locator(".isonb-vega .vega-bind", has_text=re.compile(rf"^\s*{name} ")).locator("input, select")


def test_the_page_holds_the_first_lists_before_its_script_runs(browser, visit):
    with browser.new_page(java_script_enabled=False) as page:
        page.goto(PAGE.resolve().as_uri())
        still, moved = (it.locator(".isonb-lists li span:not(.isonb-cosine)") for it in (page, visit.page))
        assert moved.all_inner_texts() == still.all_inner_texts()
        assert still.count() == 20


def test_the_menu_and_the_slider_change_the_lists(visit):
    lens = visit.page.locator(".isonb-microscope")
    first = visit.page.evaluate(LISTS)
    assert [len(rows) for rows in first] == [5] * 4
    assert lens.locator("option").count() == 24
    lens.locator("select").select_option(index=5)
    second = visit.page.evaluate(LISTS)
    assert all(a != b for a, b in zip(first, second, strict=True))
    lens.locator("input").evaluate(SET, "1")
    third = visit.page.evaluate(LISTS)
    assert all(a != b for a, b in zip(second, third, strict=True))
    assert lens.locator("output").inner_text() == "1"
    lens.locator("input").press("ArrowRight")
    assert lens.locator("output").inner_text() == "2", "the slider doesn't follow the keyboard"


def test_a_guess_is_shown_and_the_truth_only_when_revealed(visit):
    assert "it is" not in report(visit)
    control(visit, "guess IsoScore").evaluate(SET, "0.8")
    visit.page.wait_for_timeout(300)
    assert "IsoScore: you guess 0.80" in report(visit)
    control(visit, "reveal").check()
    visit.page.wait_for_timeout(300)
    assert re.search(r"IsoScore: you guess 0.80, it is 0\.\d\d; round: [01]\.\d\d", report(visit))


def truths(visit):
    """What is revealed; another cloud covers it again."""
    visit.page.wait_for_timeout(300)
    assert "it is" not in report(visit)
    control(visit, "reveal").check()
    visit.page.wait_for_timeout(300)
    return [float(number) for number in re.findall(r"it is (−?-?\d\.\d\d)", report(visit).replace("−", "-"))]


def test_shift_moves_the_mean_cosine_and_stretch_the_isoscore(visit):
    control(visit, "dimensions d").select_option("100")
    control(visit, "shift").evaluate(SET, "0")
    control(visit, "stretch").evaluate(SET, "1")
    score, cosine = truths(visit)
    assert score > 0.8
    assert abs(cosine) < 0.05
    control(visit, "shift").evaluate(SET, "2.5")
    assert truths(visit) == [score, pytest.approx(2.5**2 / (1 + 2.5**2), abs=0.03)]
    control(visit, "stretch").evaluate(SET, "6")
    assert truths(visit)[0] < score - 0.5
