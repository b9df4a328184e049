"""Chapters that need no library, so that they start fast."""

import jupytext
from nbformat.v4 import new_markdown_cell
from notebooks import python_notebook

from isonb_lab.pages.chapters import Book


def plain_chapter(book, name, *cells, text=""):
    """Add a chapter that needs no library, so that it starts fast; returns the book read again."""
    notebook = python_notebook("n: int = 3  # a number; range 1..9", *cells)
    notebook.cells.insert(0, new_markdown_cell(f"# A chapter\n\n{text}".strip()))
    jupytext.write(notebook, book.root / "book" / f"{name}.md", fmt="md:myst")
    toc = book.root / "_toc.yml"
    toc.write_text(toc.read_text(encoding="utf-8") + f"  - file: book/{name}.ipynb\n", encoding="utf-8")
    return Book(book.root)
