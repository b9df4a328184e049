"""A browser that can only read files: opens built pages and notes every complaint."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, Route

HTML = Path(os.environ.get("ISONB_HTML", "_build/html"))  # the built pages
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
STILL = """document.addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');
  style.textContent = '* { transition: none !important; animation: none !important; }';
  document.head.append(style);
})"""
SET = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', {bubbles: true})); }"
SETTLED = """() => !document.querySelector('.isonb-vega') || document.documentElement.dataset.charts"""


@dataclass
class Visit:
    """An open page and what it did that it shouldn't: requests off the disk, failures, errors in the console."""

    page: Page
    path: Path
    outside: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def chromium() -> str | None:
    """The browser of the system, if there is one."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


needs_chromium = pytest.mark.skipif(chromium() is None, reason="no chromium on the PATH")


def opens(page: Path) -> list[pytest.MarkDecorator]:
    """The marks of tests that open this built page: they run by ``make browser``, where it is built."""
    return [
        pytest.mark.browser,
        pytest.mark.skipif(not page.is_file(), reason=f"no {page}: run `make book` first"),
        needs_chromium,
    ]


def launch(playwright: Playwright) -> Browser:
    """A headless browser, which ``with`` closes."""
    return playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)


def pages_of(html: Path) -> list[Path]:
    """Every page of a built book but those that lead on and Sphinx's own indexes and listings of sources."""
    generated = {"genindex.html", "search.html", "prf-prf.html", "py-modindex.html"}
    assets = {"_static", "_modules"}
    pages = [path for path in html.rglob("*.html") if path.name not in generated and assets.isdisjoint(path.parts)]
    return sorted(path for path in pages if 'http-equiv="Refresh"' not in path.read_text(encoding="utf-8")[:400])


@contextmanager
def open_page(browser: Browser, path: Path, *, width: int = 1280, query: str = "") -> Iterator[Visit]:
    """A page from the disk, everything but files blocked, once its charts and formulas are drawn."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    visit = Visit(page, path)

    def guard(route: Route) -> None:
        if route.request.url.startswith(("file:", "data:", "blob:")):
            route.continue_()
        else:
            visit.outside.append(route.request.url)
            route.abort()

    page.route("**/*", guard)
    page.on("requestfailed", lambda request: visit.failed.append(f"{request.url}: {request.failure}"))
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("console", lambda message: visit.errors.append(message.text) if message.type == "error" else None)
    page.add_init_script(STILL)
    page.goto(path.resolve().as_uri() + query, timeout=120_000)  # the machine may be busy
    settle(page)
    with page:
        yield visit


def settle(page: Page) -> None:
    """Wait for the charts and the formulas."""
    page.wait_for_load_state("load")
    page.wait_for_function(SETTLED, timeout=60_000)
    page.evaluate("() => window.MathJax && MathJax.startup ? MathJax.startup.promise : null")


def use_theme(page: Page, theme: str) -> None:
    """Switch to the light or dark theme as the button does, and wait for the charts to follow."""
    page.evaluate(
        "t => { document.documentElement.dataset.mode = t; document.documentElement.dataset.theme = t }", theme
    )
    drawn = "t => !document.querySelector('.isonb-vega') || document.documentElement.dataset.charts === t"
    page.wait_for_function(drawn, arg=theme, timeout=60_000)
    page.wait_for_timeout(300)


def resize(page: Page, width: int) -> None:
    """Make the window as wide as a phone that is turned, once the charts have followed."""
    page.evaluate("() => delete document.documentElement.dataset.charts")
    page.set_viewport_size({"width": width, "height": 900})
    settle(page)
