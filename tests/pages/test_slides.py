"""Slides: what is on them, and that a deck works from the disk alone."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import sync_playwright

from isonb.pages import slides
from isonb.pages.__main__ import main
from isonb.pages.chapters import Book
from isonb.pages.plain_text import as_html, glued, in_words, short_citations
from isonb.pages.run import Job
from isonb.pages.slides import deck, slides_of, write_slides
from isonb.pages.values import GLUE_PREFIX
from isonb.pages.vega import MIME
from tests.book.browser import chromium, launch, open_page

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests" / "book" / "sample"
SPEC = {
    "description": "Two points </script>",
    "data": {"values": [{"x": 1, "y": 2}, {"x": 2, "y": 1}]},
    "mark": "point",
    "width": 300,
    "height": 200,
    "params": [{"name": "cut", "value": 3, "bind": {"input": "range", "min": 0, "max": 9}}],
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
}


def figure(caption, name):
    out = new_output("display_data", {MIME: SPEC, "text/plain": "Two points"})
    return new_code_cell("draw()", metadata={"mystnb": {"figure": {"caption": caption, "name": name}}}, outputs=[out])


def notebook(closing="## Summary\n\n- One thing.\n- Another, $x_1 < 2$.\n\nNext: more."):
    scrap = {"scrapbook": {"name": "share", "mime_prefix": GLUE_PREFIX}}
    value = new_output("display_data", {GLUE_PREFIX + "text/plain": "0.43"}, metadata=scrap)
    opening = "# A & B\n\n**The answer.** It is {glue}`share`\nof all {cite}`doe2020`.\n\nMore text."
    cells = [
        new_markdown_cell(opening),
        new_code_cell("glue()", outputs=[value]),
        new_markdown_cell("## The idea\n\nWords.\n\n### A closer look"),
        figure("Points of {glue}`share`,\n\n  at scale $r$.", "fig-a"),
        figure("More.", "fig-b"),
        new_code_cell("print()", outputs=[new_output("stream", text="no slide")]),
        new_markdown_cell(f"## The experiment\n\nWords.\n\n{closing}\n\n## References\n\n- A book."),
    ]
    return new_notebook(cells=cells)


def test_title_answer_figures_and_summary():
    made = slides_of(notebook(), {"doe2020": "Doe 2020"})
    assert [(slide.title, slide.level) for slide in made] == [
        ("A & B", 1),
        ("A closer look", 2),
        ("A closer look", 2),
        ("Summary", 2),
    ]
    assert "It is 0.43\nof all (Doe 2020)." in made[0].body
    assert "More text" not in made[0].body
    assert "<figcaption><p>Points of 0.43, at scale \\(r\\).</p>" in made[1].body
    assert "Two points \\u003c/script>" in made[1].body
    assert made[3].body.count("<li>") == 2
    assert "\\(x_1 &lt; 2\\)" in made[3].body
    assert "A book" not in made[3].body


def test_a_page_without_a_summary_ends_with_what_it_does_not_show():
    made = slides_of(notebook("## What this does not show\n\n- **Much.** And more."), {})
    assert made[-1].title == "What this does not show"
    assert "<strong>Much.</strong>" in made[-1].body
    assert [slide.title for slide in slides_of(notebook("## Other\n\n- x"), {})][-1] == "A closer look"


def test_a_deck_is_one_page():
    page = deck(slides_of(notebook(), {}))
    assert page.count("<section ") == page.count("</section>") == 4
    assert "<title>A &amp; B</title>" in page
    assert "<h1>A &amp; B</h1>" in page
    assert "4 / 4" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("{glue:text}`a:.2f` and {glue}`b`", "7 and –"),
        ("{cite:t}`k` {cite}`k,other`", "Doe 2020 (Doe 2020; other)"),
        ("{doc}`the title <../a/b>`, {doc}`../a/b_c`", "the title, *b c*"),
        ("see {numref}`fig-x`, {ref}`claims <label>`", "see the figure, claims"),
        ("{py:func}`~isonb.a.b`, {term}`cones`, {math}`x^2`", "`b`, `cones`, $x^2$"),
    ],
)
def test_roles_become_words(text, want):
    assert in_words(text, {"a": "7"}, {"k": "Doe 2020"}) == want


def test_every_entry_of_the_bibliography_has_author_and_year():
    found = short_citations((ROOT / "book" / "references.bib").read_text(encoding="utf-8"))
    assert len(found) > 30
    assert found["rudman2024istar"] == "Rudman and Eickhoff 2024"
    assert found["yan2022softdecay"] == "Yan et al. 2022"
    assert all(text[0].isalpha() and text[-4:].isdigit() for text in found.values())


def test_glued_values_and_formulas():
    assert glued(notebook()) == {"share": "0.43"}
    assert "\\[a &lt; b\\]" in as_html("$$a < b$$")


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    """The sample book with an executed notebook, and its slides."""
    root = tmp_path_factory.mktemp("book") / "sample"
    shutil.copytree(SAMPLE, root)
    book = Book(root)
    (chapter,) = book.chapters
    job = Job(book, chapter)
    job.cached.parent.mkdir(parents=True)
    nbformat.write(notebook(), job.cached)
    return write_slides(book, [chapter])


def test_slides_of_a_book(decks, capsys):
    folder = decks.parent
    assert 'href="sample.html">A &amp; B</a> (4 slides)' in decks.read_text(encoding="utf-8")
    assert {path.name for path in (folder / "static").iterdir()} == set(slides.ASSETS)
    assert main(["--root", str(folder.parents[1]), "slides"]) == 0
    assert "Open _build/slides/index.html" in capsys.readouterr().out
    assert main(["--root", str(folder.parents[1]), "slides", "--smoke"]) == 1
    assert "must have run before its slides are made" in capsys.readouterr().err


@pytest.mark.skipif(chromium() is None, reason="no chromium on the PATH")
def test_a_deck_from_the_disk(decks):
    with sync_playwright() as playwright, launch(playwright) as browser:
        visit = open_page(browser, decks.parent / "sample.html")
        page = visit.page
        page.wait_for_function("() => document.querySelector('figure .isonb-vega').style.zoom > 1")
        assert (visit.outside, visit.failed, visit.errors) == ([], [], [])
        assert page.locator("figure svg.marks").count() == 2
        assert page.locator("mjx-container").count() == 2
        places = []
        for key in ("ArrowRight", "ArrowDown", "PageDown", "ArrowLeft"):
            page.keyboard.press(key)
            page.wait_for_timeout(500)
            places.append(round(page.evaluate("scrollY / innerHeight")))
        assert places == [1, 2, 3, 2]
        page.locator("input[type=range]").nth(1).focus()
        page.keyboard.press("ArrowRight")
        assert float(page.locator("input[type=range]").nth(1).input_value()) > 3, "a slider keeps its arrows"
        boxes = page.evaluate("[...document.querySelectorAll('section')].map(s => s.getBoundingClientRect().height)")
        assert max(boxes) <= 901
