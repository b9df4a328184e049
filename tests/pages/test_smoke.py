"""Every chapter keeps the rules; that each runs with its smoke parameters is seen by .ci/lone_notebooks.py."""

from pathlib import Path

import pytest

from isonb_lab.pages.chapters import Book
from isonb_lab.pages.lint import problems

BOOK = Book(Path(__file__).resolve().parents[2])
each_chapter = pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.slug)


@each_chapter
def test_chapter_keeps_the_rules(chapter):
    assert problems(chapter) == []
