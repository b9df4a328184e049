"""Slides of a chapter's pictures: title, answer, each figure with its caption, summary. Opened from the disk.

A deck is one page that snaps from slide to slide. Its charts are live: they are drawn by the same scripts as the book.
"""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from isonb.pages.build import vendor
from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import ChapterError
from isonb.pages.plain_text import as_html, glued, in_words, short_citations
from isonb.pages.run import Job
from isonb.pages.vega import MIME, page_html
from isonb.runtime.files import update

__all__ = ["Slide", "deck", "slides_of", "write_slides"]

STATIC = Path(__file__).with_name("static")
ASSETS = ("isonb.css", "isonb.js", "deck.css", "deck.js")
HEADING = re.compile(r"^(#{1,4}) +(.+)$", re.MULTILINE)
ANSWER = re.compile(r"^\*\*The answer\.\*\* *(.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
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


def _section(text: str, title: str) -> str:
    """What stands under a heading of level 2, down to the next one."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0].strip()


def _figures(notebook: Any) -> Iterator[tuple[str, str, list[Mapping[str, Any]]]]:
    """(heading above it, caption, charts) of each cell with a figure; a heading may be that of a subsection."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            titles = HEADING.findall(cell.source)
            heading = titles[-1][1] if titles else heading
            continue
        caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
        charts = [out["data"][MIME] for out in cell.outputs if MIME in out.get("data", {})]
        if caption and charts:
            yield heading, " ".join(caption.split()), charts


def slides_of(notebook: Any, citations: Mapping[str, str]) -> list[Slide]:
    """The slides of an executed notebook: the title with the answer, one a figure, and the closing points."""
    values = glued(notebook)

    def words(text: str) -> str:
        return as_html(in_words(text, values, citations))

    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title = next((name for marks, name in HEADING.findall(text) if marks == "#"), "")
    answer = ANSWER.search(text)
    made = [Slide(title, f"<div>{words(answer[1])}</div>" if answer else "", 1)]
    for heading, caption, charts in _figures(notebook):
        drawn = "".join(page_html(dict(chart)) for chart in charts)
        made.append(Slide(heading or title, f"<figure>{drawn}<figcaption>{words(caption)}</figcaption></figure>"))
    closing = next((name for name in CLOSING if _section(text, name)), "")
    if closing:
        points = [part for part in _section(text, closing).split("\n\n") if part.startswith("- ")]
        made.append(Slide(closing, words("\n\n".join(points))))
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


def _executed(book: Book, chapter: Chapter, parameters: Mapping[str, Any]) -> Any:
    job = Job(book, chapter, chapter.validate(parameters))
    if not job.cached.is_file():
        raise ChapterError(f"{chapter.name} must have run before its slides are made; run: make book")
    return nbformat.read(job.cached, as_version=4)


def write_slides(
    book: Book, chapters: Sequence[Chapter], parameters: Mapping[str, Mapping[str, Any]] | None = None
) -> Path:
    """Write a deck a chapter with pictures, and a page that lists them, to ``_build/slides``; returns that page.

    Outputs come from the last run with these ``parameters`` (by name of the chapter). Raises :class:`ChapterError` for
    a chapter that hasn't run.
    """
    given = parameters or {}
    notebooks = [(chapter, _executed(book, chapter, given.get(chapter.name, {}))) for chapter in chapters]
    bibliography = book.root / "book" / "references.bib"
    citations = short_citations(bibliography.read_text(encoding="utf-8") if bibliography.is_file() else "")
    folder = book.build / "slides"
    vendor(book)
    shutil.copytree(book.build / "vendor", folder, dirs_exist_ok=True)
    for name in ASSETS:
        update(folder / "static" / name, (STATIC / name).read_text(encoding="utf-8"))
    rows = []
    for chapter, notebook in notebooks:
        slides = slides_of(notebook, citations)
        if len(slides) > 2:  # more than a title and a closing: there are pictures
            update(folder / f"{chapter.slug}.html", deck(slides))
            rows.append(
                f'<li><a href="{chapter.slug}.html">{html.escape(slides[0].title)}</a> ({len(slides)} slides)</li>'
            )
    listed = Slide("Slides", "<ul>\n" + "\n".join(rows) + "\n</ul>", 1)
    update(folder / "index.html", deck([listed]))
    return folder / "index.html"
