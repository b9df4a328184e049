"""Every chapter keeps the rules; that each runs with its smoke parameters is seen by .ci/lone_notebooks.py."""

import re
from pathlib import Path

import pytest

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.lint import problems

BOOK = Book(Path(__file__).resolve().parents[2])
each_chapter = pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.slug)


@each_chapter
def test_chapter_keeps_the_rules(chapter):
    assert problems(chapter) == []


def test_no_label_stands_twice():
    """Across the book: sphinx refuses it, but only at the end of a build."""
    sources = [chapter.source.read_text(encoding="utf-8") for chapter in BOOK.chapters]
    labels = [label for text in sources for label in re.findall(r"^(?::label:|    name:) (\S+)$", text, re.MULTILINE)]
    assert len(labels) > 30
    assert sorted(labels) == sorted(set(labels))
