"""From executed notebooks to HTML: the vendored scripts, the tables of runs, Jupyter Book with warnings as errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.runtime.files import update
from isonb_lab.pages import tables
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.downloads import write_downloads
from isonb_lab.pages.errors import BuildError
from isonb_lab.pages.notebooks.plain import put_outputs
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.run import Job, execute
from isonb_lab.pages.vendor import vendor
from isonb_lab.runtime.locks import file_lock

SOLUTIONS = "ISONB_SOLUTIONS"  # "no" in the environment builds pages without solutions, to hand out
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"


def html(book: Book) -> Path:
    """Run Jupyter Book from scratch (a cached page would hide its warnings) and return the index page.

    Pages to hand out lie apart, in ``_build/handout``: those with the solutions stay.
    """
    handout = os.environ.get(SOLUTIONS) == "no"
    output = book.build / "handout.new" if handout else book.root  # Jupyter Book writes into _build of that
    for folder in ("html", ".doctrees", "jupyter_execute"):
        shutil.rmtree(output / "_build" / folder, ignore_errors=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", str(book.root), "-n", "-W", "--keep-going", "-q"]
    command += ["--path-output", str(output)]
    environment = {**os.environ, "ISONB_BOOK": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    log = book.build / "html.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream:
        sphinx = subprocess.Popen(command, env=environment, cwd=book.root, stdout=stream, stderr=stream)
        try:
            code = sphinx.wait()
        finally:
            sphinx.kill()  # after Ctrl-C; of a process that has ended nothing happens
            sphinx.wait()
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        texts = [line for line in lines if "WARNING" in line or "ERROR" in line or "rror:" in line] or lines[-30:]
        raise BuildError(f"jupyter-book found problems (exit code {code}):\n" + "\n".join(texts))
    if handout:
        shutil.rmtree(book.build / "handout", ignore_errors=True)
        (output / "_build" / "html").rename(book.build / "handout")
        shutil.rmtree(output)
    return book.build / ("handout" if handout else "html") / "index.html"


def build(book: Book, parameters: Mapping[str, Mapping[str, Any]], **options: Any) -> Path:
    """Execute what must run, write notebooks and the status page, build the HTML; returns the index page."""
    jobs = [Job(book, chapter, chapter.validate(parameters[chapter.name])) for chapter in book.chapters]
    execute(jobs, **options)
    with file_lock([book.build / "locks" / "pages.lock"]):  # two at once would write the same files
        write_pages(book, jobs)
        vendor(book)
        write_downloads(book, solutions=os.environ.get(SOLUTIONS) != "no")
        return html(book)


def write_pages(book: Book, jobs: Sequence[Job]) -> None:
    """The notebooks with their outputs, and the tables of the status page and of the page for instructors."""
    index = Index(book)
    records = [(job.chapter, put_outputs(job, index)) for job in jobs]
    update(book.build / "status.md", tables.status_page(records))
    update(book.build / "teaching.md", tables.teaching_page(records))
