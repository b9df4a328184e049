"""The Python of a chapter under ruff: what it finds is named by chapter, cell and line, and mended where it can be."""

import pytest

from isonb.pages import style
from isonb.pages.__main__ import main
from isonb.pages.chapters import Book
from isonb.pages.errors import LintError


def edited(book, old, new):
    source = book.root / "book" / "sample.md"
    text = source.read_text(encoding="utf-8")
    assert old in text
    source.write_text(text.replace(old, new, 1), encoding="utf-8")
    return Book(book.root)


def test_the_sample_is_in_style(book):
    assert style.problems(book.chapters) == []


def test_a_long_line_and_an_unknown_name_are_named_with_their_place(book):
    broken = edited(book, "1 + 1", f'"{"x " * 65}"\n1 + 1\nno_such_name')
    with pytest.raises(LintError) as caught:
        style.check(broken.chapters)
    for part in ("book/sample.md: code cell", "line 1: E501", "line 3: F821"):
        assert part in str(caught.value)


def test_fix_formats_cells_and_nothing_else(book, capsys):
    source = book.root / "book" / "sample.md"
    good = source.read_text(encoding="utf-8")
    edited(book, "1 + 1", "1+1")
    assert main(["--root", str(book.root), "lint"]) == 1
    assert "isn't formatted" in capsys.readouterr().err
    assert main(["--root", str(book.root), "lint", "--fix"]) == 0
    assert source.read_text(encoding="utf-8") == good
