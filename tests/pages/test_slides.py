"""Slides: what is on them, and that a deck works from the disk alone."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import sync_playwright
from reading import rewrite

from isonb_lab.pages.__main__ import main
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.notebooks.plain import CAPTION
from isonb_lab.pages.notebooks.slides import ASSETS, slides_of, write_slides
from isonb_lab.pages.run import Job
from isonb_lab.pages.vega import MIME
from tests.book.browser import launch, needs_chromium, open_page

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


def notebook():
    below = new_markdown_cell("*Fig. 1.1* Points.", metadata={"tags": [CAPTION]})
    cells = [
        new_markdown_cell("# A & B\n\nIt is 0.43\nof all [Other](other.ipynb).\n\n## A question\n\nWhy $x_1 < 2$?"),
        new_code_cell("draw()", outputs=[new_output("display_data", {MIME: SPEC, "text/plain": "Two points"})]),
        below,
        new_code_cell("print()", outputs=[new_output("stream", text="not shown")]),
        new_markdown_cell("Words below.\n\n## An answer\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
    ]
    return new_notebook(cells=cells)


def test_a_heading_begins_a_slide_with_its_words_and_pictures():
    title, question, answer = slides_of(notebook())
    assert title.startswith("<h1>A &amp; B</h1>")
    assert "It is 0.43\nof all <em>Other</em>." in title
    assert "\\(x_1 &lt; 2\\)" in question
    assert question.index("<figure>") < question.index("Words below.")
    assert "Two points \\u003c/script>" in question
    assert "Fig. 1.1" not in question
    assert "not shown" not in question
    assert "<td>2</td>" in answer


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    """A book of one lesson, as if it had run, and its slides."""
    root = tmp_path_factory.mktemp("book") / "sample"
    shutil.copytree(SAMPLE, root)
    rewrite(root / "book" / "sample.md", ("isonb:\n  smoke", "isonb:\n  slides: true\n  smoke"))
    book = Book(root)
    (chapter,) = book.chapters
    job, run = Job(book, chapter), chapter.fresh()
    drawn = [cell for cell in run.cells if "mystnb" in cell.metadata and cell.cell_type == "code"]
    drawn[0].outputs = [new_output("display_data", {MIME: SPEC, "text/plain": "Two points"})]
    run.metadata["isonb_run"] = {}
    job.cached.parent.mkdir(parents=True)
    nbformat.write(run, job.cached)
    return write_slides(book)


def test_slides_of_a_book(decks, capsys):
    folder = decks.parent
    assert 'href="sample.html">A sample chapter</a>' in decks.read_text(encoding="utf-8")
    assert {path.name for path in (folder / "static").iterdir()} == set(ASSETS)
    assert main(["--root", str(folder.parents[1]), "slides"]) == 0
    assert "Open _build/slides/index.html" in capsys.readouterr().out


def test_each_slide_of_a_lesson_has_one_picture():
    for lesson in (chapter for chapter in Book(ROOT).chapters if chapter.slides):
        between = "\n".join("picture" if "pages.show(" in cell.source else cell.source for cell in lesson.cells.cells)
        assert all(part.count("picture") <= 1 for part in re.split(r"^#+ ", between, flags=re.MULTILINE))


@needs_chromium
def test_a_deck_from_the_disk(decks):
    deck = decks.parent / "sample.html"
    with sync_playwright() as playwright, launch(playwright) as browser, open_page(browser, deck) as visit:
        page = visit.page
        page.wait_for_function("() => document.documentElement.dataset.fitted === ''")
        page.wait_for_function("() => document.querySelector('figure .isonb-vega').style.zoom > 1.5")
        assert (visit.outside, visit.failed, visit.errors) == ([], [], [])
        assert page.locator("figure svg.marks").count() == 1
        places = []
        for key in ("ArrowRight", "PageDown", "ArrowLeft"):
            page.keyboard.press(key)
            page.wait_for_timeout(500)
            places.append(round(page.evaluate("scrollY / innerHeight")))
        assert places == [1, 2, 1]
        page.locator("input[type=range]").first.focus()
        page.keyboard.press("ArrowRight")
        assert float(page.locator("input[type=range]").first.input_value()) > 3, "a slider keeps its arrows"
        heights = page.evaluate(
            "[...document.querySelectorAll('section:has(figure)')].map(s => s.getBoundingClientRect().height)"
        )
        assert max(heights) <= 901
