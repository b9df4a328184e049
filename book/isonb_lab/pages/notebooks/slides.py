"""Slides of a lesson, from its page: a heading begins a slide, with the words and the pictures below it.

A deck is one page that snaps from slide to slide. Its charts are live: they are drawn by the same scripts as the book.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from isonb.runtime.files import update
from isonb_lab.pages.chapters import Book
from isonb_lab.pages.notebooks.plain import CAPTION, readable
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.outputs import PARAGRAPH
from isonb_lab.pages.run import Job
from isonb_lab.pages.vega import MIME, page_html
from isonb_lab.pages.vendor import vendor

STATIC = Path(__file__).parents[1] / "static"
ASSETS = ("isonb.css", "isonb.js", "deck.css", "deck.js")
HEADING = re.compile(r"^(?=#{1,2} )", re.MULTILINE)
CHAPTER_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\.ipynb\)")
PAGE = Path(__file__).with_name("deck.html")


def as_html(text: str) -> str:
    r"""Markdown as HTML; formulas between the marks that MathJax looks for, raw HTML and links to chapters as text.

    >>> as_html("**Bold** $a_b$ <b> [c](d.ipynb)")
    '<p><strong>Bold</strong> \\(a_b\\) &lt;b&gt; <em>c</em></p>\n'
    """

    def formula(content: str, options: Mapping[str, Any]) -> str:
        marks = "[]" if options.get("display_mode") else "()"
        return f"\\{marks[0]}{html.escape(content)}\\{marks[1]}"

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, renderer=formula)
    reader.add_render_rule("math_inline", lambda _, tokens, i, *__: formula(tokens[i].content, {}))
    return str(reader.render(CHAPTER_LINK.sub(r"*\1*", text)))


def slides_of(notebook: Any) -> list[str]:
    """The HTML of each slide of an executed plain notebook. A picture's caption is left to the page."""
    results: list[str] = []
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "code" and PARAGRAPH not in tags:
            charts = [page_html(dict(out["data"][MIME])) for out in cell.outputs if MIME in out.get("data", {})]
            results[-1:] = ["".join([*results[-1:], *(f"<figure>{chart}</figure>" for chart in charts)])]
        elif CAPTION not in tags:
            text = cell.outputs[0].data["text/markdown"] if PARAGRAPH in tags else cell.source
            before, *headed = HEADING.split(text)
            if before.strip():
                results[-1] += as_html(before)
            results += map(as_html, headed)
    return results


def deck(title: str, slides: Sequence[str]) -> str:
    """The page of these slides."""
    parts = [
        f'<section aria-label="Slide {number}" tabindex="-1">\n{slide}\n<footer>{number} / {len(slides)}</footer>\n'
        "</section>"
        for number, slide in enumerate(slides, start=1)
    ]
    return PAGE.read_text(encoding="utf-8").format(title=html.escape(title), body="\n".join(parts))


def write_slides(book: Book) -> Path:
    """Write a deck a page of ``isonb: {slides: true}``, and a page that lists them, to ``_build/slides``; returns that.

    Outputs come from the last run. Raises :class:`ChapterError` for a page that hasn't run.
    """
    index = Index(book)
    lessons = [chapter for chapter in book.chapters if chapter.slides]
    decks = {item: slides_of(readable(Job(book, item, item.validate({})), index)) for item in lessons}
    folder = book.build / "slides"
    vendor(book)
    shutil.copytree(book.build / "vendor", folder, dirs_exist_ok=True)
    for name in ASSETS:
        update(folder / "static" / name, (STATIC / name).read_text(encoding="utf-8"))
    rows = []
    for lesson, slides in decks.items():
        update(folder / f"{lesson.slug}.html", deck(lesson.title, slides))
        rows.append(f'<li><a href="{lesson.slug}.html">{html.escape(lesson.title)}</a> ({len(slides)} slides)</li>')
    update(folder / "index.html", deck("Slides", ["<h1>Slides</h1>\n<ul>\n" + "\n".join(rows) + "\n</ul>"]))
    return folder / "index.html"
