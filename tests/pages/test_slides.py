"""Slides: what is on them, and that a deck works from the disk alone."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import sync_playwright

from isonb.pages.__main__ import main
from isonb.pages.chapters import Book
from isonb.pages.notebooks.plain import CAPTION
from isonb.pages.notebooks.slides import ASSETS, deck, slides_of, write_slides
from isonb.pages.notebooks.words import short_citations
from isonb.pages.run import Job
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


def figure(caption):
    out = new_output("display_data", {MIME: SPEC, "text/plain": "Two points"})
    below = new_markdown_cell(f"*Fig. 1.1* {caption}", metadata={"tags": [CAPTION]})
    return [new_code_cell("draw()", outputs=[out]), below]


def notebook(closing="## Summary\n\n- One thing.\n- Another, $x_1 < 2$.\n\nNext: more."):
    opening = "# A & B\n\n**The answer.** It is 0.43\nof all [Other](other.ipynb).\n\nMore text."
    cells = [
        new_markdown_cell(opening),
        new_markdown_cell("## The idea\n\nWords.\n\n### A closer look"),
        *figure("Points of 0.43, at scale $r$."),
        *figure("More."),
        new_code_cell("print()", outputs=[new_output("stream", text="no slide")]),
        new_markdown_cell(f"## The experiment\n\nWords.\n\n{closing}\n\n## References\n\n- A book."),
    ]
    return new_notebook(cells=cells)


def test_title_answer_figures_and_summary():
    made = slides_of(notebook())
    assert [(slide.title, slide.level) for slide in made] == [
        ("A & B", 1),
        ("A closer look", 2),
        ("A closer look", 2),
        ("Summary", 2),
    ]
    assert "It is 0.43\nof all <em>Other</em>." in made[0].body
    assert "More text" not in made[0].body
    assert "<figcaption><p><em>Fig. 1.1</em> Points of 0.43, at scale \\(r\\).</p>" in made[1].body
    assert "Two points \\u003c/script>" in made[1].body
    assert made[3].body.count("<li>") == 2
    assert "\\(x_1 &lt; 2\\)" in made[3].body
    assert "A book" not in made[3].body


def test_a_deck_is_one_page():
    page = deck(slides_of(notebook()))
    assert page.count("<section ") == page.count("</section>") == 4
    assert "<title>A &amp; B</title>" in page
    assert "<h1>A &amp; B</h1>" in page
    assert "4 / 4" in page
    assert "http" not in page.replace("http-equiv", "")


def test_every_entry_of_the_bibliography_has_author_and_year():
    found = short_citations((ROOT / "book" / "references.bib").read_text(encoding="utf-8"))
    assert len(found) > 30
    assert found["rudman2024istar"] == "Rudman and Eickhoff 2024"
    assert found["yan2022softdecay"] == "Yan et al. 2022"
    assert all(text[0].isalpha() and text[-4:].isdigit() for text in found.values())


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    """The sample book with an executed notebook, and its slides."""
    root = tmp_path_factory.mktemp("book") / "sample"
    shutil.copytree(SAMPLE, root)
    book = Book(root)
    (chapter,) = book.chapters
    job, run = Job(book, chapter), chapter.fresh()
    drawn = [cell for cell in run.cells if "mystnb" in cell.metadata and cell.cell_type == "code"]
    drawn[0].outputs = [new_output("display_data", {MIME: SPEC, "text/plain": "Two points"})]
    run.metadata["isonb_run"] = {}
    job.cached.parent.mkdir(parents=True)
    nbformat.write(run, job.cached)
    return write_slides(book, [chapter])


def test_slides_of_a_book(decks, capsys):
    folder = decks.parent
    assert 'href="sample.html">A sample chapter</a> (3 slides)' in decks.read_text(encoding="utf-8")
    assert {path.name for path in (folder / "static").iterdir()} == set(ASSETS)
    assert main(["--root", str(folder.parents[1]), "slides"]) == 0
    assert "Open _build/slides/index.html" in capsys.readouterr().out
    assert main(["--root", str(folder.parents[1]), "slides", "--smoke"]) == 1
    assert "hasn't run with these parameters" in capsys.readouterr().err


@pytest.mark.skipif(chromium() is None, reason="no chromium on the PATH")
def test_a_deck_from_the_disk(decks):
    with sync_playwright() as playwright, launch(playwright) as browser:
        visit = open_page(browser, decks.parent / "sample.html")
        page = visit.page
        page.wait_for_function("() => document.querySelector('figure .isonb-vega').style.zoom > 1")
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
        boxes = page.evaluate("[...document.querySelectorAll('section')].map(s => s.getBoundingClientRect().height)")
        assert max(boxes) <= 901
