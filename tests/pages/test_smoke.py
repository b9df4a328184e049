"""Every chapter whose smoke parameters shorten it runs with them, and says nothing on stderr."""

import re
from pathlib import Path

import nbformat
import pytest

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.lint import problems
from isonb_lab.pages.run import Job, execute

BOOK = Book(Path(__file__).resolve().parents[2])
each_chapter = pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.slug)


@each_chapter
def test_chapter_keeps_the_rules(chapter):
    assert problems(chapter) == []


# The others run in seconds; the build runs them as they are, and `make browser` looks at what they said.
LONG = [chapter for chapter in BOOK.chapters if chapter.smoke]


@pytest.mark.slow
@pytest.mark.parametrize("chapter", LONG, ids=lambda chapter: chapter.slug)
def test_chapter_runs_with_smoke_parameters(chapter):
    job = Job(BOOK, chapter, chapter.smoke)
    execute([job], progress=False)
    notebook = nbformat.read(job.cached, as_version=4)
    assert any(cell.get("outputs") for cell in notebook.cells)
    assert not job.warned.exists(), job.warned.read_text(encoding="utf-8")


def test_no_label_stands_twice():
    """Across the book: sphinx refuses it, but only at the end of a build."""
    sources = [chapter.source.read_text(encoding="utf-8") for chapter in BOOK.chapters]
    labels = [label for text in sources for label in re.findall(r"^(?::label:|    name:) (\S+)$", text, re.MULTILINE)]
    assert len(labels) > 30
    assert sorted(labels) == sorted(set(labels))
