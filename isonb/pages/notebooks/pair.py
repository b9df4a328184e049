"""Sources and notebooks side by side: write the ``.ipynb`` of a chapter from its ``.md``, and lose no edit of either.

The Markdown is the source. The notebook says it in words that any viewer shows; what is edited there goes back into the
source when it is saved in the Lab of ``make edit``, or by ``pair --keep``. No edit is overwritten in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nbformat

from isonb.pages.chapters import Book, Chapter
from isonb.pages.errors import ChapterError, PairingError
from isonb.pages.notebooks.edits import bind, fingerprint, keep
from isonb.pages.notebooks.plain import PAIR, plain
from isonb.pages.notebooks.words import Index
from isonb.pages.outputs import code_cells, glued, graft, with_overrides
from isonb.pages.run import Job, parameter_text
from isonb.runtime.files import update


def _read(chapter: Chapter) -> Any:
    """The notebook on the disk; None where none can be read."""
    try:
        return nbformat.read(chapter.notebook, as_version=4)
    except (OSError, ValueError, KeyError):
        return None


def _was_edited(chapter: Chapter, old: Any) -> bool:
    """Whether its cells are neither those that were written there nor the source's."""
    return fingerprint(old) not in (old.metadata.get(PAIR, {}).get("shown"), fingerprint(chapter.cells))


def _write(chapter: Chapter, notebook: Any, old: Any, force: bool) -> bool:
    """Write the notebook, unless one that was edited stands there."""
    if old is not None and not force and _was_edited(chapter, old):
        name = chapter.name
        keeping = f"Keep it: python -m isonb.pages pair --keep {name}." if PAIR in old.metadata else "Keep it: move it."
        raise PairingError(
            f"{name}.ipynb was edited and {name}.md doesn't have the edit. "
            f"{keeping} Drop it: python -m isonb.pages pair --force {name}."
        )
    bind(chapter, notebook)
    return update(chapter.notebook, nbformat.writes(notebook).rstrip("\n") + "\n")


def pair(chapter: Chapter, *, force: bool = False, kept: bool = False, index: Index | None = None) -> bool:
    """Write the notebook of a chapter from its source; an unchanged cell keeps its outputs. True if it was written.

    Values in the prose are those of the outputs, else those of the last run of the book. With ``kept``, edits of the
    notebook go into the source first.
    """
    old = _read(chapter)
    if kept and old is not None and PAIR in old.metadata and _was_edited(chapter, old):
        keep(chapter, old)
        chapter = Chapter(chapter.root, chapter.name)
    notebook = chapter.fresh()
    if old is not None:
        made = {cell.source: cell for cell in code_cells(old)}
        for cell in (cell for cell in code_cells(notebook) if cell.source in made):
            cell.outputs, cell.execution_count = made[cell.source].outputs, made[cell.source].execution_count
        if all(cell.source in made for cell in chapter.code) and "isonb_run" in old.metadata:
            notebook.metadata["isonb_run"] = old.metadata["isonb_run"]
        given = old.metadata.get("papermill", {}).get("parameters") or {}  # papermill ran it where it stands
        known = {parameter.name for parameter in chapter.parameters} if given else set()
        with_overrides(notebook, parameter_text({n: v for n, v in given.items() if n in known}, chapter))
    index = index or Index(Book(chapter.root))
    run = last_run(index.book, chapter)
    values = {**(glued(run) if run else {}), **glued(notebook)}
    return _write(chapter, plain(chapter, notebook, index, values), old, force)


def last_run(book: Book, chapter: Chapter) -> Any:
    """The notebook of the last run of a chapter as it stands, with its defaults; None where there is none."""
    path = Job(book, chapter).cached if (book.build / "executed").is_dir() else None
    return nbformat.read(path, as_version=4) if path and path.is_file() else None


def readable(job: Job, index: Index) -> Any:
    """The plain notebook of an executed chapter, with its outputs and its values."""
    if not job.cached.is_file():
        raise ChapterError(f"{job.chapter.name} hasn't run with these parameters; run: python -m isonb.pages execute")
    run = nbformat.read(job.cached, as_version=4)
    notebook = job.chapter.fresh()
    graft(notebook, [cell.outputs for cell in code_cells(run)])
    notebook.metadata["isonb_run"] = run.metadata["isonb_run"]
    return plain(job.chapter, notebook, index, glued(notebook))


def put_outputs(job: Job, *, force: bool = False, index: Index | None = None) -> Mapping[str, Any]:
    """Write the notebook of an executed chapter with its outputs, and return the record of the run."""
    notebook = readable(job, index or Index(job.book))
    with_overrides(notebook, parameter_text(job.parameters, job.chapter))
    _write(job.chapter, notebook, _read(job.chapter), force)
    return dict(notebook.metadata["isonb_run"])
