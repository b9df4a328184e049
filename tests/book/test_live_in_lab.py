"""A live control in JupyterLab in a browser: the picture follows, nothing flickers, errors stand in its place."""

import nbformat
import pytest
from browser import chromium, launch
from lab_server import TOKEN, idle_kernel, jupyter_lab
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import sync_playwright

pytestmark = [pytest.mark.browser, pytest.mark.skipif(chromium() is None, reason="no chromium on the PATH")]

CELL = """\
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


def described(page, n):
    page.wait_for_selector(f".vega-embed [aria-label='the pattern of {n}']", state="attached")


def test_the_picture_follows_the_slider(tmp_path):
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[new_code_cell(CELL)], metadata=kernel), tmp_path / "n.ipynb")
    home = tmp_path / "home"
    home.mkdir()
    with jupyter_lab(tmp_path, home) as url, sync_playwright() as playwright, launch(playwright) as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 1000})
        page.set_default_timeout(180_000)
        page.goto(f"{url}/lab/tree/n.ipynb?token={TOKEN}")
        page.wait_for_selector(".jp-CodeCell")
        idle_kernel(url)
        page.click("text=Run >> nth=0")
        page.click("text=Run All Cells")
        described(page, 5)
        page.evaluate(WATCH)
        slider = page.locator(".jupyter-widgets .noUi-handle")
        slider.focus()
        for n in (6, 7, 8):
            page.keyboard.press("ArrowRight")
            described(page, n)
        assert len(set(page.evaluate("window.frames_seen"))) == 1, "no frame without picture, none of another height"
        page.evaluate("cancelAnimationFrame(window.watching)")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(".jp-OutputArea-child:nth-child(2) >> text=ValueError: nine is too many")
        assert not page.query_selector(".vega-embed")
        page.keyboard.press("ArrowLeft")
        described(page, 8)
        assert not page.query_selector(".jp-OutputArea >> text=ValueError")
