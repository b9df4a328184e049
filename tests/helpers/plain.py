"""Chapters that need no library, so that they start fast."""

from isonb_lab.pages.chapters import Book


def plain_chapter(book, name, *cells, text="", parameters="n: int = 3  # a number; range 1..9"):
    """Add a chapter that needs no library, so that it starts fast; returns the book read again."""
    code = "\n\n".join(f"```{{code-cell}} ipython3\n{cell}\n```" for cell in cells)
    header = "---\nkernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n\n# A chapter\n\n"
    parameters = f"```{{code-cell}} ipython3\n:tags: [parameters]\n\n{parameters}\n```\n\n"
    (book.root / "book" / f"{name}.md").write_text(header + text + "\n" + parameters + code + "\n", encoding="utf-8")
    toc = book.root / "_toc.yml"
    toc.write_text(toc.read_text(encoding="utf-8") + f"  - file: book/{name}.ipynb\n", encoding="utf-8")
    return Book(book.root)
