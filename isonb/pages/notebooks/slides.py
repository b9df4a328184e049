"""Slides of a chapter's pictures: title, answer, each figure with its caption, summary. Opened from the disk.

A deck is one page that snaps from slide to slide. Its charts are live: they are drawn by the same scripts as the book.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from isonb.pages.build import vendor
from isonb.pages.chapters import Book, Chapter
from isonb.pages.notebooks.plain import CAPTION, readable
from isonb.pages.notebooks.words import Index
from isonb.pages.run import Job
from isonb.pages.vega import MIME, page_html
from isonb.runtime.files import update

STATIC = Path(__file__).parents[1] / "static"
ASSETS = ("isonb.css", "isonb.js", "deck.css", "deck.js")
HEADING = re.compile(r"^(#{1,4}) +(.+)$", re.MULTILINE)
ANSWER = re.compile(r"^\*\*The answer\.\*\* *(.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
CHAPTER_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\.ipynb\)")
CLOSING = ("Summary", "What this does not show")  # the first that there is
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="static/isonb.css"><link rel="stylesheet" href="static/deck.css">
<script src="static/deck.js"></script><script src="static/isonb.js"></script>
<script defer src="mathjax/tex-svg.js"></script>
</head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Slide:
    """A heading and the HTML below it."""

    title: str
    body: str
    level: int = 2


def as_html(text: str) -> str:
    r"""Markdown as HTML; formulas between the marks that MathJax looks for, raw HTML and links to chapters as text.

    >>> as_html("**Bold** $a_b$ <b> [c](d.ipynb)")
    '<p><strong>Bold</strong> \\(a_b\\) &lt;b&gt; <em>c</em></p>\n'
    """

    def formula(content: str, options: Mapping[str, Any]) -> str:
        marks = "[]" if options.get("display_mode") else "()"
        return f"\\{marks[0]}{html.escape(content)}\\{marks[1]}"

    reader = MarkdownIt("commonmark", {"html": False}).use(dollarmath_plugin, renderer=formula)
    reader.add_render_rule("math_inline", lambda _, tokens, i, *__: formula(tokens[i].content, {}))
    return str(reader.render(CHAPTER_LINK.sub(r"*\1*", text)))


def slides_of(notebook: Any) -> list[Slide]:
    """The slides of an executed plain notebook: the title with the answer, one a figure, and the closing points.

    A figure stands under the heading above it, which may be that of a subsection; its caption is the cell below.
    """
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title = next((name for marks, name in HEADING.findall(text) if marks == "#"), "")
    answer = ANSWER.search(text)
    made = [Slide(title, f"<div>{as_html(answer[1])}</div>" if answer else "", 1)]
    heading = title
    charts: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            charts = [page_html(dict(out["data"][MIME])) for out in cell.outputs if MIME in out.get("data", {})]
        elif CAPTION not in cell.metadata.get("tags", []):
            heading = next((name for _, name in HEADING.findall(cell.source)[::-1]), heading)
        elif charts:
            caption = f"<figcaption>{as_html(cell.source)}</figcaption>"
            made.append(Slide(heading, f"<figure>{''.join(charts)}{caption}</figure>"))
    for name in CLOSING:
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0].strip()
        if section:
            points = [part for part in section.split("\n\n") if part.startswith("- ")]
            return [*made, Slide(name, as_html("\n\n".join(points)))]
    return made


def deck(slides: Sequence[Slide]) -> str:
    """The page of these slides; the first names it."""
    parts = []
    for number, slide in enumerate(slides, start=1):
        name = as_html(slide.title).strip().removeprefix("<p>").removesuffix("</p>")
        head = f"<h{slide.level}>{name}</h{slide.level}>"
        label = f"<footer>{number} / {len(slides)}</footer>"
        parts.append(f'<section aria-label="Slide {number}" tabindex="-1">\n{head}\n{slide.body}\n{label}\n</section>')
    return PAGE.format(title=html.escape(slides[0].title), body="\n".join(parts))


def write_slides(
    book: Book, chapters: Sequence[Chapter], parameters: Mapping[str, Mapping[str, Any]] | None = None
) -> Path:
    """Write a deck a chapter with pictures, and a page that lists them, to ``_build/slides``; returns that page.

    Outputs come from the last run with these ``parameters`` (by name of the chapter). Raises :class:`ChapterError` for
    a chapter that hasn't run.
    """
    given, index = parameters or {}, Index(book)
    decks = {
        chapter: slides_of(readable(Job(book, chapter, chapter.validate(given.get(chapter.name, {}))), index))
        for chapter in chapters
    }
    folder = book.build / "slides"
    vendor(book)
    shutil.copytree(book.build / "vendor", folder, dirs_exist_ok=True)
    for name in ASSETS:
        update(folder / "static" / name, (STATIC / name).read_text(encoding="utf-8"))
    rows = []
    for chapter, slides in decks.items():
        if len(slides) > 2:  # more than a title and a closing: there are pictures
            update(folder / f"{chapter.slug}.html", deck(slides))
            told = f"{html.escape(slides[0].title)}</a> ({len(slides)} slides)"
            rows.append(f'<li><a href="{chapter.slug}.html">{told}</li>')
    update(folder / "index.html", deck([Slide("Slides", "<ul>\n" + "\n".join(rows) + "\n</ul>", 1)]))
    return folder / "index.html"
