"""The built book in a browser that can only read files: `make book` first, then `make browser`.

ISONB_HTML names another folder of built pages.
"""

import functools
import re
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from browser import HTML, open_page, opens, pages_of, resize, use_theme

import isonb
from isonb_lab.pages import chapters
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.run import Job

PAGES = pages_of(HTML)
API = "book/reference/api.html"  # every docstring

pytestmark = opens(HTML / "index.html")

# What MyST, Sphinx, Jinja or Python leave in the text when something wasn't rendered, and folders of a machine.
RAW = re.compile(
    r"`{3}|:::|\$\$|\{[a-z:]+\}`|\{\{|\{%|\]\(|<[A-Za-z]+[. ]?object|object at 0x|/tmp/|/home/|/root/|site-packages"
    r"|Traceback \(most recent|\$\\[a-z]+"
)
TEXT = """() => {
  const article = document.querySelector('article').cloneNode(true);
  article.querySelectorAll('script, pre, code, mjx-container, .isonb-vega').forEach((node) => node.remove());
  return article.textContent;
}"""
WIDER = """selector => [...document.querySelectorAll(selector)]
  .filter(node => !node.closest('details:not([open]), .solution') && node.scrollWidth > node.clientWidth + 1)
  .map(node => `${node.className || node.tagName}: ${node.textContent.slice(0, 40)}`)"""
CUT = """() => [...document.querySelectorAll(
    '.isonb-table, .isonb-vega, article pre, .pst-scrollable-table-container, mjx-container[display="true"]')]
  .filter(node => node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).overflowX === 'visible')
  .map(node => node.textContent.slice(0, 40))"""
PALE = r"""() => [...document.querySelectorAll('article *')].filter(node => {
  const [red, green, blue, alpha = 1] = getComputedStyle(node).backgroundColor.match(/[\d.]+/g).map(Number);
  return node.offsetWidth > 60 && alpha > 0.5 && Math.min(red, green, blue) > 128;
}).map(node => node.outerHTML.slice(0, 100))"""
TICKS = "svg => [...svg.querySelectorAll('.role-axis-label text')].map(label => label.textContent)"
UNEVEN = """chart => {
  const titles = [...chart.querySelectorAll('svg .role-title-text text')].filter(title => title.textContent.trim());
  const boxes = titles.map(title => title.getBoundingClientRect());
  const lower = (a, b) => b.bottom - a.bottom > 0.6 && b.bottom - a.bottom < 12;
  return titles.filter((_, k) => boxes.some(box => lower(box, boxes[k]))).map(title => title.textContent);
}"""
MOVE = """slider => {
  slider.value = slider.value === slider.max ? slider.min : slider.max;
  slider.dispatchEvent(new Event('input'));
  return slider.value;
}"""


def name_of(page):
    return page.relative_to(HTML).as_posix()


@pytest.fixture(scope="module", params=PAGES, ids=name_of)
def visit(browser, request):
    """A page, opened once for its tests: by day, then by night, then on a phone."""
    with open_page(browser, request.param) as visit:
        yield visit


def test_page_reads_offline(visit):
    assert "application/vnd.jupyter.widget" not in visit.path.read_text(encoding="utf-8")
    assert visit.outside == []
    assert visit.failed == []
    assert visit.errors == []
    bare = visit.page.evaluate(
        "() => [...document.querySelectorAll('article img:not([alt]), article img[alt=\"\"]')].map(i => i.src)"
    )
    assert bare == [], "images without a text alternative"
    unset = "() => [...document.querySelectorAll('.math')].filter(m => !m.querySelector('mjx-container')).length"
    assert visit.page.evaluate(unset) == 0, "formulas that were not typeset"
    assert visit.page.locator("mjx-merror").count() == 0, "formulas with an error"
    narrow = name_of(visit.path) == API  # examples of the reference are as wide as the code that they come from
    assert narrow or visit.page.evaluate(WIDER, "article pre") == [], "lines of code wider than their column"
    assert visit.page.evaluate(CUT) == [], "cut, and nothing to scroll"
    leftover = RAW.findall(visit.page.evaluate(TEXT))
    assert leftover == [], "markup or machine paths left in the text"


def test_charts_are_drawn_and_described(visit):
    charts = visit.page.locator(".isonb-vega").all()
    assert len(charts) == visit.path.read_text(encoding="utf-8").count('class="isonb-vega"')
    for number, chart in enumerate(charts):
        marks = chart.locator("svg g[class*='mark-'][class*='role-mark'] > *").count()
        marks += chart.locator("svg .role-scope, svg .mark-group.role-mark").count()
        assert marks > 0, f"chart {number} drew nothing"
        label = chart.locator("[role='graphics-document']").first.get_attribute("aria-label")
        assert chart.evaluate(UNEVEN) == [], f"chart {number} has titles at unequal heights"
        assert len(label or "") > 20, f"chart {number} has no text alternative"


def test_sliders_change_the_picture_and_survive_the_dark(visit):
    sliders = visit.page.locator(".isonb-vega input[type='range']").all()
    assert bool(sliders) == ('"input":"range"' in visit.path.read_text(encoding="utf-8"))
    values = []
    for number, slider in enumerate(sliders):
        picture = slider.locator("xpath=ancestor::div[@class='isonb-vega']").locator("svg")
        before, ticks = picture.evaluate("svg => svg.outerHTML"), picture.evaluate(TICKS)
        values.append(slider.evaluate(MOVE))
        visit.page.wait_for_timeout(400)
        assert picture.evaluate("svg => svg.outerHTML") != before, f"slider {number} changes nothing"
        assert picture.evaluate(TICKS) == ticks, f"slider {number} moves the axes"
    use_theme(visit.page, "dark")
    assert [slider.input_value() for slider in sliders] == values, "the redraw for dark mode forgot a slider"
    assert visit.page.evaluate(PALE) == [], "painted light on a dark page"
    assert visit.errors == []


def test_page_fits_a_phone(visit):
    resize(visit.page, 400)
    assert visit.page.evaluate("() => document.documentElement.scrollWidth") <= 401
    assert visit.page.evaluate(CUT) == [], "cut, and nothing to scroll"
    formulas = visit.page.evaluate(WIDER, "article mjx-container[display='true']")
    assert name_of(visit.path) == API or formulas == [], "formulas wider than a phone"


def test_no_chapter_of_the_built_book_warns(monkeypatch):
    monkeypatch.setattr(chapters, "PACKAGE", Path(isonb.__file__).parent)  # not the stand-in of the sample book
    book = Book(Path(__file__).resolve().parents[2])
    jobs = [Job(book, chapter, chapter.validate({})) for chapter in book.chapters]
    assert any(job.cached.exists() for job in jobs)
    assert [job.warned.read_text(encoding="utf-8") for job in jobs if job.warned.exists()] == []


@functools.cache
def anchors(page):
    return set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_inside_the_book_lead_somewhere(path):
    for link in re.findall(r"<a[^>]+href=\"([^\"]+)\"", path.read_text(encoding="utf-8")):
        parts = urlparse(link)
        if parts.scheme or link.startswith(("#", "mailto:")) or not parts.path:
            continue
        target = (path.parent / unquote(parts.path)).resolve()
        assert target.exists(), f"{link} leads nowhere"
        if parts.fragment and target.suffix == ".html":
            assert unquote(parts.fragment) in anchors(target), f"{link}: no such anchor"


def test_index_leads_to_the_first_page(browser):
    with open_page(browser, HTML / "index.html") as visit:
        visit.page.wait_for_selector("article h1")
        assert visit.outside == visit.failed == visit.errors == []


@pytest.mark.parametrize(
    ("query", "first", "message"),
    [
        ("all scores above 0.6", "book/practice/scores_above.html", "0.6"),
        ("similarity too high", "book/practice/scores_above.html", "similarity"),
        ("lambda", "book/papers/istar.html", "lambda"),
    ],
)
def test_search_offline_has_the_right_page_first_with_an_excerpt(browser, query, first, message):
    with open_page(browser, HTML / "search.html", query="?q=" + query.replace(" ", "+")) as visit:
        visit.page.wait_for_selector("#search-results li p.context", timeout=20_000)
        best = visit.page.locator("#search-results li").first
        assert best.locator("a").get_attribute("href").partition("#")[0] == first
        assert message in best.locator("p.context").text_content().lower()
        assert visit.outside == visit.failed == visit.errors == []
