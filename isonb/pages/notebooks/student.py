"""Chapters as notebooks to work in: the solutions of the exercises emptied, a cell to fill in place of each.

Cells keep their order and their ids, so that a filled notebook can be laid beside the chapter. A notebook that a
student has worked in is never overwritten in silence.
"""

from __future__ import annotations

import re
import symtable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import PairingError
from isonb.pages.notebooks.handed_out import hand_out, worked_in
from isonb.pages.notebooks.words import Index

DIRECTIVE = re.compile(r"^(?P<fence>[`:]{3,})\{solution-(?P<end>start|end)\}")
PROMPT = "**Your solution:**"
EMPTY = "# your code"


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


def names(source: str) -> tuple[set[str], set[str]]:
    """Names that a cell takes from other cells or from Python, and names that it sets for them.

    >>> used, made = names("y = x + 1\\nz = [k * y for k in range(n)]\\nimport os.path")
    >>> sorted(used), sorted(made)
    (['n', 'range', 'x'], ['os', 'y', 'z'])
    >>> names("def f(a):\\n    b = a + c\\n    return b")
    ({'c'}, {'f'})
    """
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]
    top = symtable.symtable("\n".join(lines), "cell", "exec")
    made = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    used = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    inner = top.get_children()
    while inner:
        scope = inner.pop()
        used |= {s.get_name() for s in scope.get_symbols() if s.is_global() and s.is_referenced()}
        inner += scope.get_children()
    return used - made, made


def needed_from_solutions(chapter: Chapter) -> list[str]:
    """Names that code outside the solutions uses and only a solution defines: an empty solution would stop there."""
    filled = {cell.id for cell in student(chapter).cells if "solution" in cell.metadata.get("tags", [])}
    given: set[str] = set()
    offered: set[str] = set()
    missing: list[str] = []
    for cell in chapter.code:
        used, defined = names(cell.source)
        if cell.id in filled:
            offered |= defined - given
        else:
            missing += sorted((used & offered) - given)
            given |= defined
    return missing


def write_students(book: Book, chapters: Sequence[Chapter], *, force: bool = False) -> list[Path]:
    """Write the notebooks to ``_build/student``; returns their paths.

    Raises :class:`PairingError`, before anything is written, where a notebook was worked in (``force=True`` drops the
    work) or where a chapter goes on with what a solution defines.
    """
    targets = {chapter: book.build / "student" / f"{chapter.name.removeprefix('book/')}.ipynb" for chapter in chapters}
    kept = [path.relative_to(book.root).as_posix() for path in targets.values() if not force and worked_in(path)]
    if kept:
        raise PairingError(f"notebooks must be unchanged; {', '.join(kept)} were worked in. Move them, or add --force.")
    index = Index(book)
    for chapter, path in targets.items():
        if names := needed_from_solutions(chapter):
            raise PairingError(f"{chapter.name} must run without its solutions; it uses {', '.join(names)} of one.")
        hand_out(chapter, student(chapter), path, index)
    return list(targets.values())
