"""Sources and notebooks side by side: write the ``.ipynb`` of a chapter from its ``.md``, and lose no edit of either.

The Markdown is the source. A notebook edited without it (outside Jupyter's pairing) is never overwritten in silence.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import jupytext
import nbformat

from isonb.pages.chapters import Chapter
from isonb.pages.errors import ChapterError, PairingError
from isonb.pages.outputs import code_cells, graft, with_overrides
from isonb.pages.run import Job, parameter_text
from isonb.runtime.files import update

__all__ = ["canonical", "pair", "put_outputs"]

HEADER_FILTER = "isonb,-jupytext.text_representation.jupytext_version"


def canonical(text: str) -> str:
    """The source as Jupyter would save it: one spelling of header, cell options and white space."""
    notebook = jupytext.reads(text, fmt="md:myst")
    header = notebook.metadata.setdefault("jupytext", {})
    header["formats"] = "ipynb,md:myst"
    header["notebook_metadata_filter"] = HEADER_FILTER
    header.get("text_representation", {}).pop("jupytext_version", None)
    return str(jupytext.writes(nbformat.reads(_written(notebook), as_version=4), fmt="md:myst"))


def _written(notebook: Any) -> str:
    """The file of a notebook as Jupyter writes it: keys sorted, and no word on how its text is represented.

    Else jupytext would see a pair that differs, and refuse to open it.
    """
    return str(jupytext.writes(notebook, fmt="ipynb")).rstrip("\n") + "\n"


def _fingerprint(notebook: Any) -> str:
    """The part of a notebook that a person writes: cells and their options, without outputs and ids."""
    cells = [[cell.cell_type, cell.source.strip(), dict(cell.metadata)] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()[:16]


def _check_no_edit_lost(chapter: Chapter, force: bool) -> None:
    """Refuse to overwrite a notebook whose cells are neither ours nor the source's."""
    if force or not chapter.notebook.is_file():
        return
    try:
        old = nbformat.read(chapter.notebook, as_version=4)
    except (ValueError, KeyError):
        return
    now = _fingerprint(old)
    if now not in (old.metadata.get("isonb_source"), _fingerprint(chapter.cells)):
        name = chapter.name
        raise PairingError(
            f"{name}.ipynb was edited and {name}.md doesn't have the edit. "
            f"Keep it: jupytext --to md:myst {name}.ipynb. Drop it: python -m isonb.pages pair --force {name}."
        )


def _write(chapter: Chapter, notebook: Any, force: bool) -> bool:
    _check_no_edit_lost(chapter, force)
    notebook.metadata["isonb_source"] = _fingerprint(chapter.cells)
    return update(chapter.notebook, _written(notebook))


def pair(chapter: Chapter, *, force: bool = False) -> bool:
    """Write the notebook of a chapter from its source; an unchanged cell keeps its outputs. True if it was written."""
    notebook = chapter.fresh()
    if chapter.notebook.is_file():
        old = nbformat.read(chapter.notebook, as_version=4)
        made = {cell.source: cell for cell in code_cells(old)}
        kept = [cell for cell in code_cells(notebook) if cell.source in made]
        for cell in kept:
            cell.outputs, cell.execution_count = made[cell.source].outputs, made[cell.source].execution_count
        if len(kept) == len(chapter.code) and "isonb_run" in old.metadata:
            notebook.metadata["isonb_run"] = old.metadata["isonb_run"]
    return _write(chapter, notebook, force)


def put_outputs(job: Job, *, force: bool = False) -> dict[str, Any]:
    """Write the notebook of an executed chapter with its outputs, and return the record of the run."""
    if not job.cached.is_file():
        raise ChapterError(f"{job.chapter.name} hasn't run with these parameters; run: python -m isonb.pages execute")
    executed = nbformat.read(job.cached, as_version=4)
    notebook = job.chapter.fresh()
    graft(notebook, [cell.outputs for cell in code_cells(executed)])
    with_overrides(notebook, parameter_text(job.parameters, job.chapter))
    notebook.metadata["isonb_run"] = executed.metadata["isonb_run"]
    _write(job.chapter, notebook, force)
    return dict(executed.metadata["isonb_run"])
