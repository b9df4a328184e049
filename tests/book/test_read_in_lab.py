"""Chapters in JupyterLab in a browser: nothing raw is read, all cells run, and a picture follows its slider."""

import json
import re
import shutil
import time
from pathlib import Path

import nbformat
import pytest
from browser import launch, needs_chromium
from lab_server import TOKEN, end_kernels, idle_kernel, jupyter_lab
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebooks import KERNEL
from playwright.sync_api import sync_playwright
from reading import RAW, prose

from isonb_lab.pages.__main__ import main
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.runtime.glue import glued

pytestmark = [pytest.mark.browser, needs_chromium]

ROOT = Path(__file__).resolve().parents[2]
RUN = "foundations/measuring_isotropy"
ALL = {"windowingMode": "none"}  # cells out of sight are drawn, too
SEEN = "() => [...document.querySelectorAll('.jp-MarkdownCell')].map((node) => node.innerText)"
LIVE = """\
import altair as alt

from isonb_lab import pages

pages.setup()


def draw(n):
    if n == 9:
        raise ValueError("nine is too many")
    chart = alt.Chart(alt.Data(values=[{"x": i, "y": i % n} for i in range(100)])).mark_point().encode(x="x:Q", y="y:Q")
    pages.show(chart, description=f"the pattern of {n}")


pages.live(draw, n=(1, 9))
"""
WATCH = """() => {
  window.frames_seen = [];
  const look = () => {
    const heights = [...document.querySelectorAll('.jp-OutputArea-child')].map((node) => node.offsetHeight);
    const drawn = document.querySelectorAll('.jp-OutputArea-child .vega-embed canvas').length;
    window.frames_seen.push([...heights, drawn].join(' '));
    window.watching = requestAnimationFrame(look);
  };
  look();
}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab on copies of the book's chapters, as `make lab` opens them, and the folder of the book."""
    root, home = tmp_path_factory.mktemp("book"), tmp_path_factory.mktemp("home")
    for name in ("_toc.yml", "book"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)
    assert main(["--root", str(root), "play"]) == 0
    settings = home / "CONFIG" / "lab" / "user-settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text(json.dumps(ALL))
    server = jupyter_lab(root, home, "_build/lab/start.ipynb")
    with server as url, sync_playwright() as playwright, launch(playwright) as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.set_default_timeout(180_000)
        yield url, page, root


def opened(lab, name):
    """The text of all Markdown of a notebook in the Lab, once it is drawn; the kernels of those before are ended."""
    url, page, root = lab
    page.goto("about:blank")
    end_kernels(url)
    page.goto(f"{url}/lab/tree/{name}.ipynb?token={TOKEN}&reset")
    cells = nbformat.read(root / "_build" / "lab" / f"{name}.ipynb", as_version=4).cells
    count = sum(cell.cell_type == "markdown" for cell in cells)
    page.wait_for_function(
        f"() => {{ const seen = ({SEEN})(); return seen.length === {count} && seen.every(Boolean) }}"
    )
    return "\n".join(page.evaluate(SEEN))


def run_all(lab):
    url, page, _ = lab
    idle_kernel(url)
    page.click("text=Run >> nth=0")
    page.click("text=Run All Cells")


def nothing_raw(text):
    assert len(text) > 500
    assert not RAW.findall(text)
    assert not set(Index(Book(ROOT)).citations) & set(re.findall(r"[\w-]+", text))


def saved_after_running(page, path, seconds=300):
    """The notebook as it is saved once every code cell has run: folded cells show no number on the page."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        page.keyboard.press("Control+s")
        page.wait_for_timeout(2000)
        saved = nbformat.read(path, as_version=4)
        if all(cell.execution_count for cell in saved.cells if cell.cell_type == "code"):
            return saved
    raise AssertionError(f"cells of {path.name} had not run after {seconds} s")


@pytest.mark.parametrize("name", ["practice/audit_your_model", "papers/softdecay", "foundations/barcodes"])
def test_no_chapter_shows_anything_raw(lab, name):
    """Solutions and hints are closed, plumbing is folded. The Markdown of every chapter is read in tests/pages."""
    nothing_raw(opened(lab, name))
    _, page, _ = lab
    assert page.locator("details[open]").count() == 0
    assert page.locator("details").count() > 3
    assert page.locator(".jp-InputCollapser + .jp-Placeholder, .jp-InputPlaceholder").count() > 5


def test_the_start_page_leads_to_the_chapters(lab):
    assert "The chapters, to play with" in opened(lab, "start")
    _, page, _ = lab
    page.click(".jp-MarkdownCell a:text-is('Barcodes')")
    page.wait_for_selector(".jp-MarkdownCell h2:has-text('Discs that grow')")


def test_running_all_and_saving_leaves_the_book_as_it_was(lab):
    _, page, root = lab
    before = {path: path.read_bytes() for path in (root / "book").rglob("*") if path.is_file()}
    nothing_raw(opened(lab, RUN))
    run_all(lab)
    path = root / "_build" / "lab" / f"{RUN}.ipynb"
    saved = saved_after_running(page, path)
    nothing_raw("\n".join(page.evaluate(SEEN)))
    assert not page.query_selector(".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']")
    names = set(re.findall(r"\{glue\}`([^`]+)", (root / "book" / f"{RUN}.md").read_text(encoding="utf-8")))
    values = glued(saved)
    assert names <= set(values)
    assert all(values[name] in prose(saved) for name in names), "sentences have the values of this kernel"
    assert {path: path.read_bytes() for path in before} == before


def test_the_picture_follows_the_slider_without_a_flicker_and_errors_stand_in_its_place(lab):
    _, page, root = lab
    cells = [new_markdown_cell("A control."), new_code_cell(LIVE)]
    nbformat.write(new_notebook(cells=cells, metadata=KERNEL), root / "_build" / "lab" / "live.ipynb")

    def described(n):
        page.wait_for_selector(f".vega-embed [aria-label='the pattern of {n}']", state="attached")

    opened(lab, "live")
    run_all(lab)
    described(5)
    page.evaluate(WATCH)
    page.locator(".jupyter-widgets .noUi-handle").focus()
    for n in (6, 7, 8):
        page.keyboard.press("ArrowRight")
        described(n)
    assert len(set(page.evaluate("window.frames_seen"))) == 1, "no frame without picture, none of another height"
    page.evaluate("cancelAnimationFrame(window.watching)")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".jp-OutputArea-child:nth-child(2) >> text=ValueError: nine is too many")
    assert not page.query_selector(".vega-embed")
    page.keyboard.press("ArrowLeft")
    described(8)
    assert not page.query_selector(".jp-OutputArea >> text=ValueError")
