"""From executed notebooks to HTML: the vendored scripts, the status page, Jupyter Book with warnings as errors."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.pages.chapters import Book
from isonb.pages.errors import BuildError
from isonb.pages.notebooks.words import Index
from isonb.pages.pair import put_outputs
from isonb.pages.run import Job, execute
from isonb.pages.status import status_page
from isonb.pages.teaching import teaching_page
from isonb.pages.vega import write_bundle
from isonb.runtime.files import update
from isonb.runtime.leash import Leash
from isonb.runtime.locks import held

__all__ = ["build", "html", "vendor"]

# MathJax 3.2.2, es5/tex-svg.js as published on npm; a Python package carries it, so that no other index is needed.
MATHJAX_PACKAGE = "sphinx-mathjax-offline"
MATHJAX_SHA256 = "d4295dc33744836935c1399feece5159577b34c5c8ffb9f1c6324cd82e03a882"
HTML = f"{Path(__file__).with_name('make_html.py')}:html"  # a file: what is imported by name brings torch


def mathjax() -> bytes:
    """MathJax from the installed package; :class:`BuildError` when it isn't there or isn't the file we know."""
    try:
        files = importlib.metadata.distribution(MATHJAX_PACKAGE).files or []
    except importlib.metadata.PackageNotFoundError:
        raise BuildError(f"formulas need {MATHJAX_PACKAGE}; run: pip install {MATHJAX_PACKAGE}==0.0.2") from None
    scripts = [file for file in files if file.name == "tex-svg.js"]
    content = Path(str(scripts[0].locate())).read_bytes() if scripts else b""
    found = hashlib.sha256(content).hexdigest()
    if found != MATHJAX_SHA256:
        raise BuildError(f"tex-svg.js of {MATHJAX_PACKAGE} must have sha256 {MATHJAX_SHA256}; got {found}.")
    return content


def vendor(book: Book) -> None:
    """Write the two libraries that pages load, Vega and MathJax, to ``_build/vendor`` (copied into the pages)."""
    folder = book.build / "vendor"
    pinned = importlib.metadata.version("vl-convert-python")
    stamp = folder / "vega" / f"vl-convert-{pinned}.txt"
    if not stamp.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        write_bundle(folder / "vega" / "vega.js")
        stamp.write_text(f"vega.js was bundled by vl-convert-python {pinned}\n", encoding="utf-8")
    target = folder / "mathjax" / "tex-svg.js"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(mathjax())


def html(book: Book) -> Path:
    """Run Jupyter Book from scratch (a cached page would hide its warnings) and return the index page."""
    for folder in ("html", ".doctrees", "jupyter_execute"):
        shutil.rmtree(book.build / folder, ignore_errors=True)
    arguments = ["build", str(book.root), "-n", "-W", "--keep-going", "-q"]
    log = book.build / "html.log"
    sphinx = Leash({"arguments": arguments}, log, function=HTML, environment={"ISONB_BOOK": "1"}, cwd=book.root)
    if (answer := sphinx.wait()).kind:
        raise BuildError(f"jupyter-book found problems ({answer}):\n{_complaints(log)}")
    index = book.build / "html" / "index.html"
    if not index.is_file():
        raise BuildError(f"jupyter-book ended well but wrote no {index}; is it version 1.x?")
    return index


def _complaints(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line for line in lines if "WARNING" in line or "ERROR" in line or "rror:" in line]
    return "\n".join(told or lines[-30:])


def build(book: Book, parameters: Mapping[str, Mapping[str, Any]] | None = None, **options: Any) -> Path:
    """Execute what must run, write notebooks and the status page, build the HTML; returns the index page."""
    given: Mapping[str, Mapping[str, Any]] = parameters or {}
    jobs = [Job(book, chapter, chapter.validate(given.get(chapter.name, {}))) for chapter in book.chapters]
    force = bool(options.pop("force", False))
    execute(jobs, force=force, **options)
    with held([book.build / "locks" / "pages.lock"]):  # two at once would write the same files
        write_pages(book, jobs)
        vendor(book)
        return html(book)


def write_pages(book: Book, jobs: Sequence[Job]) -> None:
    """The notebooks with their outputs, and the tables of the status page and of the page for instructors."""
    index = Index(book)
    records = [(job.chapter, put_outputs(job, index=index)) for job in jobs]
    update(book.build / "status.md", status_page(records))
    update(book.build / "teaching.md", teaching_page(records))
