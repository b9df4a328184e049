"""Chapters in JupyterLab in a browser: what is read there has nothing raw, before and after all cells have run."""

import json
import re
import shutil
import time
from pathlib import Path

import nbformat
import pytest
from browser import chromium, launch
from lab_server import TOKEN, end_kernels, idle_kernel, jupyter_lab
from playwright.sync_api import sync_playwright
from reading import prose

from isonb_lab.pages.__main__ import main
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.runtime.glue import glued

pytestmark = [pytest.mark.browser, pytest.mark.skipif(chromium() is None, reason="no chromium on the PATH")]

ROOT = Path(__file__).resolve().parents[2]
RAW = re.compile(r"\{[a-zA-Z][\w:+-]*\}[`A-Za-z]|[`:]{3,}|^\([\w:.-]+\)=", re.MULTILINE)
READ = ["practice/audit_your_model", "papers/softdecay", "foundations/barcodes"]
RUN = "foundations/measuring_isotropy"
ALL = {"windowingMode": "none"}  # cells out of sight are drawn, too
SEEN = "() => [...document.querySelectorAll('.jp-MarkdownCell')].map((node) => node.innerText)"


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


def test_no_chapter_shows_anything_raw(lab):
    """Every chapter of the book, opened one after the other in one Lab; solutions and hints are closed."""
    _, page, _ = lab
    names = [chapter.name.removeprefix("book/") for chapter in Book(ROOT).chapters]
    assert set(READ) <= set(names)
    for name in names:
        nothing_raw(opened(lab, name))
        assert page.locator("details[open]").count() == 0
        folded = page.locator(".jp-InputCollapser + .jp-Placeholder, .jp-InputPlaceholder").count()
        assert name not in READ or (page.locator("details").count() > 3 and folded > 5), "plumbing is folded"


def test_the_start_page_leads_to_the_chapters(lab):
    assert "The chapters, to play with" in opened(lab, "start")
    _, page, _ = lab
    page.click(".jp-MarkdownCell a:text-is('Barcodes')")
    page.wait_for_selector(".jp-MarkdownCell h2:has-text('Discs that grow')")


def test_running_all_and_saving_leaves_the_book_as_it_was(lab):
    url, page, root = lab
    before = {path: path.read_bytes() for path in (root / "book").rglob("*") if path.is_file()}
    nothing_raw(opened(lab, RUN))
    idle_kernel(url)
    page.click("text=Run >> nth=0")
    page.click("text=Run All Cells")
    path = root / "_build" / "lab" / f"{RUN}.ipynb"
    saved = saved_after_running(page, path)
    nothing_raw("\n".join(page.evaluate(SEEN)))
    assert not page.query_selector(".jp-RenderedText[data-mime-type='application/vnd.jupyter.error']")
    names = set(re.findall(r"\{glue\}`([^`]+)", (root / "book" / f"{RUN}.md").read_text(encoding="utf-8")))
    values = glued(saved)
    assert names <= set(values)
    assert all(values[name] in prose(saved) for name in names), "sentences have the values of this kernel"
    assert {path: path.read_bytes() for path in before} == before
