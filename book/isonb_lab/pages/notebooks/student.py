"""Chapters to work in: copies to play with, and notebooks for students with the solutions of the exercises emptied.

They belong to whoever works in them: never paired, never overwritten in silence once they were worked in. In those for
students a cell to fill stands in place of each solution; cells keep their order and their ids, so that a filled
notebook can be laid beside the chapter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import nbformat

from isonb.runtime.files import update
from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.errors import PairingError
from isonb_lab.pages.notebooks.markdown import blocks
from isonb_lab.pages.notebooks.plain import NOTE, note, plain, with_outputs, worked_in, write_notebook
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.run import Job

CHECK = re.compile(r'pages\.check\("(?P<label>[\w-]+)", answer\)')
PROMPT = "**Your solution:**"
EMPTY = "# your code"
ANSWER = "answer = ...  # your code"  # where a check asks for it
START = """# The chapters, to play with

These are copies: run, change and save what you like, the book stays as it is. A copy that you changed is kept when you
come back; `make edit` opens the chapters themselves.

Open a chapter, then *Run > Run All Cells*. A folded cell opens when you click it. The parameters stand in one cell near
the top, each with its range; the cell below checks them. A sentence with a number changes when its number is computed
anew, and one that doesn't hold with your parameters says so."""


def without_solutions(text: str, inside: bool) -> tuple[str, bool]:
    """A Markdown cell outside solutions, each solution as a prompt; and whether it ends inside one."""
    parts = []
    for block in blocks(text):
        if block.name in ("solution-start", "solution-end"):
            inside = block.name == "solution-start"
            parts += [f"{PROMPT}\n"] if inside else []
        elif not inside:
            parts.append(block.source)
    return "".join(parts).strip("\n"), inside


def student(chapter: Chapter) -> Any:
    """The notebook of a chapter with the text and code of its solutions gone.

    A code cell of a solution becomes :data:`EMPTY`, which runs and does nothing, and is tagged ``solution``; all other
    code is the chapter's own. The check of an answer stays, and the first cell before it becomes :data:`ANSWER`: for
    nbgrader these two are a solution and its test. No cell is added, removed or moved.
    """
    notebook = chapter.fresh()
    about = notebook.metadata
    notebook.metadata = {name: dict(about[name]) for name in ("kernelspec", "isonb") if name in about}
    inside = False
    filled: list[Any] = []  # cells of the solution that we are in
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source, inside = without_solutions(cell.source, inside)
            filled = []
        elif match := CHECK.fullmatch(cell.source):
            filled[0].source = ANSWER
            filled[0].metadata["nbgrader"] = _nbgrader(match["label"], solution=True)
            cell.metadata["nbgrader"] = _nbgrader(f"{match['label']}-check", solution=False)
        elif inside:
            cell.source = EMPTY
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "solution"]
            filled.append(cell)
    return notebook


def _nbgrader(name: str, *, solution: bool) -> dict[str, Any]:
    """What nbgrader (schema 3) reads of a cell: one to fill, or a locked one that gives one point."""
    kind = {"grade": not solution, "solution": solution, "locked": not solution, "task": False}
    return {"schema_version": 3, "grade_id": name, **kind} | ({} if solution else {"points": 1})


def write_students(book: Book, chapters: Sequence[Chapter], *, force: bool = False) -> list[Path]:
    """Write the notebooks to ``_build/student``; returns their paths.

    Raises :class:`PairingError`, before anything is written, where a notebook was worked in; ``force=True`` drops the
    work.
    """
    targets = {chapter: book.build / "student" / f"{chapter.name.removeprefix('book/')}.ipynb" for chapter in chapters}
    edited = [path.relative_to(book.root).as_posix() for path in targets.values() if not force and worked_in(path)]
    if edited:
        raise PairingError(
            f"notebooks must be unchanged; {', '.join(edited)} were worked in. Move them, or add --force."
        )
    index = Index(book)
    for chapter, path in targets.items():
        hand_out(plain(chapter, student(chapter), index, {}), path)
    return list(targets.values())


def hand_out(notebook: Any, path: Path) -> None:
    """Write a notebook to ``path``, unless the same stands there: what was run in it stays."""
    if path.is_file() and not worked_in(path) and nbformat.read(path, as_version=4).metadata[NOTE] == note(notebook):
        return
    write_notebook(path, notebook)


def write_copies(book: Book, chapters: Sequence[Chapter], *, force: bool = False) -> list[Path]:
    """Write copies with the outputs of the last run to ``_build/lab``, and a page to start from; returns those kept.

    A copy that was worked in is kept, unless ``force``.
    """
    folder, index = book.build / "lab", Index(book)
    edited = []
    for chapter in chapters:
        path = folder / f"{chapter.name.removeprefix('book/')}.ipynb"
        if not force and worked_in(path):
            edited.append(path)
            continue
        hand_out(with_outputs(Job(book, chapter), index), path)
    start = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(_start(book, index), id="start")])
    start.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    update(folder / "start.ipynb", nbformat.writes(start) + "\n")
    return edited


def _start(book: Book, index: Index) -> str:
    """The page to start from: what this is, and a link to each chapter."""
    lines = [START]
    names = [chapter.name.removeprefix("book/") for chapter in book.chapters]
    for part, of_part in groupby(names, lambda name: name.partition("/")[0]):
        lines += ["", f"## {part.capitalize()}", ""]
        lines += [f"- [{index.title(f'book/{name}')}]({name}.ipynb)" for name in of_part]
    return "\n".join(lines)
