"""Copies of chapters that belong to whoever works in them: never paired, never overwritten once they were worked in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat

from isonb.pages.chapters import Book, Chapter
from isonb.pages.notebooks.edits import digest
from isonb.pages.notebooks.pair import last_run
from isonb.pages.notebooks.plain import PAIR, plain
from isonb.pages.notebooks.words import Index
from isonb.pages.outputs import code_cells, glued, graft
from isonb.runtime.files import update

NOTE = "isonb_handed_out"  # the digest of a copy as it was written
START = """# The chapters, to play with

These are copies: run, change and save what you like, the book stays as it is. A copy that you changed is kept when you
come back; `make edit` opens the chapters themselves.

Open a chapter, then *Run > Run All Cells*. A folded cell opens when you click it. The parameters stand in one cell near
the top, each with its range; the cell below checks them. Text has the values of the last run of the book, and a cell
that computes one prints it anew."""


def _digest(notebook: Any) -> str:
    """What a person may have changed: the sources of the cells."""
    return digest(json.dumps([cell.source for cell in notebook.cells]))


def worked_in(path: Path) -> bool:
    """Whether the notebook there is no longer as it was written."""
    try:
        old = nbformat.read(path, as_version=4)
    except (OSError, ValueError, KeyError):
        return path.is_file()
    return bool(old.metadata.get(NOTE) != _digest(old))


def hand_out(chapter: Chapter, notebook: Any, path: Path, index: Index) -> None:
    """Write ``notebook``, which has the cells of the chapter's source, to ``path`` in plain words.

    Values are those of the last run of the chapter, if it has run.
    """
    run = last_run(index.book, chapter)
    made = plain(chapter, notebook, index, glued(run) if run else {})
    del made.metadata[PAIR]
    made.metadata[NOTE] = _digest(made)
    if (
        path.is_file()
        and not worked_in(path)
        and nbformat.read(path, as_version=4).metadata[NOTE] == made.metadata[NOTE]
    ):
        return  # what was run there stays
    update(path, nbformat.writes(made) + "\n")


def write_copies(book: Book, chapters: Sequence[Chapter], *, force: bool = False) -> list[Path]:
    """Write copies with the outputs of the last run to ``_build/lab``, and a page to start from; returns those kept.

    A copy that was worked in is kept, unless ``force``.
    """
    folder, index = book.build / "lab", Index(book)
    kept = []
    for chapter in chapters:
        path = folder / f"{chapter.name.removeprefix('book/')}.ipynb"
        if not force and worked_in(path):
            kept.append(path)
            continue
        notebook, run = chapter.fresh(), last_run(book, chapter)
        if run:
            graft(notebook, [cell.outputs for cell in code_cells(run)])
        hand_out(chapter, notebook, path, index)
    start = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(_start(book, index), id="start")])
    start.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    update(folder / "start.ipynb", nbformat.writes(start) + "\n")
    return kept


def _start(book: Book, index: Index) -> str:
    """The page to start from: what this is, and a link to each chapter."""
    lines = [START]
    names = [chapter.name.removeprefix("book/") for chapter in book.chapters]
    for part, of_part in groupby(names, lambda name: name.partition("/")[0]):
        lines += ["", f"## {part.capitalize()}", ""]
        lines += [f"- [{index.title(f'book/{name}')}]({name}.ipynb)" for name in of_part]
    return "\n".join(lines)
