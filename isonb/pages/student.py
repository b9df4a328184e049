"""Chapters as notebooks to work in: the solutions of the exercises emptied, a cell to fill in place of each.

Cells keep their order and their ids, so that a filled notebook can be laid beside the chapter. A notebook that a
student has worked in is never overwritten in silence.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import PairingError
from isonb.pages.names import first_seen
from isonb.pages.notebooks.plain import PAIR, plain
from isonb.pages.notebooks.words import Index
from isonb.pages.pair import values_of
from isonb.runtime.files import update

__all__ = ["EMPTY", "fill", "needed_from_solutions", "student", "write_students"]

DIRECTIVE = re.compile(r"^(?P<fence>[`:]{3,})\{solution-(?P<end>start|end)\}")
PROMPT = "**Your solution:**"
EMPTY = "# your code"
MOVE = """# Files that this chapter reads are looked for beside its source.
import os

started_in = globals().get("started_in", os.getcwd())
os.chdir(os.path.join(started_in, {folder!r}))"""


def _without_solutions(text: str, inside: bool) -> tuple[str, bool]:
    """The lines of a Markdown cell outside solutions, each solution as a prompt; and whether it ends inside one."""
    kept: list[str] = []
    waiting = ""  # the fence that ends the head of a directive
    for line in text.splitlines():
        if found := DIRECTIVE.match(line):
            inside, waiting = found["end"] == "start", found["fence"]
            kept += [PROMPT] if inside else []
        elif waiting and line.strip() == waiting:
            waiting = ""
        elif not inside and not waiting:
            kept.append(line)
    return "\n".join(kept).strip("\n"), inside


def student(chapter: Chapter) -> Any:
    """The notebook of a chapter with the text and code of its solutions gone.

    A code cell of a solution becomes :data:`EMPTY`, which runs and does nothing, and is tagged ``solution``; all other
    code is the chapter's own. No cell is added, removed or moved.
    """
    notebook = chapter.fresh()
    notebook.metadata = {"kernelspec": dict(notebook.metadata.get("kernelspec", {}))}
    inside = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source, inside = _without_solutions(cell.source, inside)
        elif inside:
            cell.source = EMPTY
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "solution"]
    return notebook


def beside(folder: str) -> Any:
    """The first cell of a notebook that lies elsewhere: it moves to the folder of the chapter's source."""
    folded = {"jupyter": {"source_hidden": True}}
    return nbformat.v4.new_code_cell(MOVE.format(folder=folder), id="beside-the-source", metadata=folded)


def fill(notebook: Any, solutions: Sequence[str]) -> Any:
    """A copy with these sources in its solution cells, in order; there must be one for each."""
    filled = copy.deepcopy(notebook)
    cells = _to_fill(filled)
    if len(cells) != len(solutions):
        raise PairingError(f"each of {len(cells)} solution cells needs a source; got {len(solutions)}. Give one each.")
    for cell, source in zip(cells, solutions, strict=True):
        cell.source = source
    return filled


def _to_fill(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]


def needed_from_solutions(chapter: Chapter) -> list[str]:
    """Names that code outside the solutions uses and only a solution defines: an empty solution would stop there."""
    filled = {cell.id for cell in _to_fill(student(chapter))}
    given: set[str] = set()
    offered: set[str] = set()
    missing: list[str] = []
    for cell in chapter.code:
        used, defined = first_seen(cell.source)
        if cell.id in filled:
            offered |= defined - given
        else:
            missing += sorted((used & offered) - given)
            given |= defined
    return missing


def _digest(notebook: Any) -> str:
    """What a student may have changed: the sources of the cells."""
    return hashlib.sha256(json.dumps([cell.source for cell in notebook.cells]).encode()).hexdigest()[:16]


def _worked_in(path: Path) -> bool:
    """Whether the notebook there is no longer as it was written."""
    try:
        old = nbformat.read(path, as_version=4)
    except (OSError, ValueError, KeyError):
        return path.is_file()
    return bool(old.metadata.get("isonb_student") != _digest(old))


def write_students(book: Book, chapters: Sequence[Chapter], *, force: bool = False) -> list[Path]:
    """Write the notebooks to ``_build/student``; returns their paths.

    Raises :class:`PairingError`, before anything is written, where a notebook was worked in (``force=True`` drops the
    work) or where a chapter goes on with what a solution defines.
    """
    targets = {chapter: book.build / "student" / f"{chapter.name.removeprefix('book/')}.ipynb" for chapter in chapters}
    kept = [path.relative_to(book.root).as_posix() for path in targets.values() if not force and _worked_in(path)]
    if kept:
        raise PairingError(f"notebooks must be unchanged; {', '.join(kept)} were worked in. Move them, or add --force.")
    index = Index(book)
    for chapter, path in targets.items():
        if names := needed_from_solutions(chapter):
            raise PairingError(f"{chapter.name} must run without its solutions; it uses {', '.join(names)} of one.")
        notebook = plain(chapter, student(chapter), index, values_of(index.book, chapter))
        del notebook.metadata[PAIR]  # it is the student's own
        folder = Path(os.path.relpath(chapter.source.parent, path.parent)).as_posix()
        notebook.cells.insert(0, beside(folder))
        notebook.metadata["isonb_student"] = _digest(notebook)
        update(path, nbformat.writes(nbformat.from_dict(notebook)) + "\n")
    return list(targets.values())
