"""The notebook of a chapter as people read it: plain Markdown, plumbing folded, captions below their pictures.

It stands beside its source and is made by a build; ``make edit`` opens other notebooks, which jupytext pairs with the
sources. No notebook that a person changed is overwritten in silence.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nbformat
from markdown_it import MarkdownIt

from isonb.errors import origin, requirements
from isonb.runtime.files import update
from isonb_lab.pages.chapters import Book, Chapter
from isonb_lab.pages.errors import ChapterError, PairingError
from isonb_lab.pages.notebooks.markdown import Reader
from isonb_lab.pages.notebooks.references import Index
from isonb_lab.pages.outputs import INJECTED, INSTALL, PARAGRAPH, apply_outputs, code_cells
from isonb_lab.pages.run import Job
from isonb_lab.pages.sentences import GLUE, as_markdown, filled
from isonb_lab.pages.site import WHEEL
from isonb_lab.runtime.glue import glued

NOTE = "isonb_written"  # the digest of a notebook as it was written
CAPTION = "isonb_caption"
FAILED = "papermill-error-cell-tag"  # of what papermill writes above a cell that raised
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}  # tags of cells whose code the book hides

SHOWS = """\
from isonb_lab import pages

pages.paragraph(r'''
{text}
''')"""
INSTALLS = """\
# Opened alone: install what this notebook needs, {where}. Elsewhere nothing happens.
import importlib.util

if importlib.util.find_spec("isonb_lab") is None:
    %pip install --quiet {requirements}"""


def installs(chapter: Chapter, wheel: str = "") -> str:
    """The cell that installs this copy of isonb where it is missing.

    ``wheel`` is that of isonb, beside which that of isonb-lab lies: by default where the pages stand, if that is known.
    Else, of a checkout, it is its repository, where that can be read by all, or the checkout itself, from a notebook in
    it by a path that moves with both.
    """
    address = Book(chapter.root).site.address
    if wheel or address:
        where = "from the wheels of the book"
        kind, place = ("path", wheel) if wheel else ("url", f"{address}/{WHEEL}")
    else:
        where = "from where the book was built with it"
        kind, place = origin()
        if not kind:
            kind, place = "checkout", str(chapter.root)
        if kind == "checkout" and (remote := _repository(place)):
            kind, place = "url", remote
        if kind == "checkout" and chapter.source.is_relative_to(place):
            where, place = "from the checkout that it lies in", os.path.relpath(place, chapter.source.parent)
    specifiers = " ".join(f'"{requirement}"' for requirement in requirements(kind, place, "lab"))
    return INSTALLS.format(where=where, requirements=specifiers)


@functools.cache
def _repository(checkout: str) -> str:
    """The repository that a checkout is a clone of, for pip: one that can be read without a key, or none."""
    try:
        command = ["git", "-C", checkout, "config", "--get", "remote.origin.url"]
        url = urlsplit(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"git+https://{url.hostname}{url.path}" if url.scheme == "https" and url.hostname else ""


def paragraphs(text: str) -> Iterator[tuple[bool, str]]:
    """The paragraphs of a Markdown cell, joined to those that have numbers of the kernel and those that have none.

    >>> list(paragraphs("# Soup\\n\\nMuch.\\n\\nOf {glue}`n` spoons.\\n\\n- Salt."))
    [(False, '# Soup\\n\\nMuch.'), (True, 'Of {glue}`n` spoons.'), (False, '- Salt.')]
    """
    if not GLUE.search(text) or "{solution-" in text:  # a solution is folded as a whole
        yield bool(GLUE.search(text)), text
        return
    lines = text.splitlines()
    blocks = [token.map for token in MarkdownIt().enable("table").parse(text) if token.level == 0 and token.map]
    ends = [start for start, _ in blocks[1:]] + [len(lines)]
    parts = ["\n".join(lines[start:end]) for (start, _), end in zip(blocks, ends, strict=True)]
    for live, group in groupby(parts, lambda part: bool(GLUE.search(part))):
        yield live, "\n".join(group).strip("\n")


def _markdown(cell: Any, number: int, text: str, live: bool, values: Mapping[str, str]) -> Any:
    """The cell of some paragraphs: Markdown, or code that shows them with the numbers of the kernel."""
    name = cell.id if not number else f"{cell.id}-{number}"
    metadata = {key: value for key, value in cell.metadata.items() if key != "mystnb"}
    if not live:
        return nbformat.v4.new_markdown_cell(text, id=name, metadata=metadata)
    metadata |= {"tags": [*metadata.get("tags", []), PARAGRAPH], "jupyter": {"source_hidden": True}}
    shown = nbformat.v4.new_output("display_data", data=as_markdown(filled(text, values)))
    return nbformat.v4.new_code_cell(SHOWS.format(text=text), id=name, metadata=metadata, outputs=[shown])


def plain(chapter: Chapter, notebook: Any, index: Index, values: Mapping[str, str]) -> Any:
    """``notebook``, which has the cells of the chapter's source, with its prose in words, to be read anywhere.

    Code that the book hides is folded, but for the parameters, and solutions are closed, with their outputs. The first
    code cell installs the package where it is missing.
    """
    references = index.references(chapter)
    reader = Reader(references)
    result = nbformat.v4.new_notebook(metadata={k: v for k, v in notebook.metadata.items() if k != "jupytext"})
    for cell in notebook.cells:
        solution = reader.solution
        if cell.cell_type == "markdown":
            parts = [(bool(GLUE.search(cell.source)), cell.source)] if solution else paragraphs(cell.source)
            shown = [(live, reader.shown(text)) for live, text in parts]
            result.cells += [_markdown(cell, at, text, live, values) for at, (live, text) in enumerate(shown)]
            continue
        metadata = {key: value for key, value in cell.metadata.items() if key != "mystnb"}
        tags = set(metadata.get("tags", []))
        folded = bool(FOLDED & tags) and "parameters" not in tags  # these are to be seen, and changed
        if folded or solution:
            metadata["jupyter"] = {"source_hidden": True} | ({"outputs_hidden": True} if solution else {})
        result.cells.append(nbformat.from_dict({**cell, "metadata": metadata}))
        figure = (cell.metadata.get("mystnb") or {}).get("figure") or {}
        if figure:  # below it a cell with its number and what it shows
            number = index.labels.get(figure.get("name", ""), ("", ""))[1]
            caption_text = Reader(references).inline(" ".join(str(figure.get("caption", "")).split()))
            fixed = {"editable": False, "deletable": False, "tags": [CAPTION]}
            caption = f"*{number}* {caption_text}".strip()
            result.cells.append(nbformat.v4.new_markdown_cell(caption, id=f"{cell.id}-caption", metadata=fixed))
    first = next((at for at, cell in enumerate(result.cells) if cell.cell_type == "code"), len(result.cells))
    result.cells.insert(first, nbformat.v4.new_code_cell(installs(chapter), id="install", metadata={"tags": [INSTALL]}))
    return result


def note(notebook: Any) -> str:
    """What a person may have changed: the sources of the cells, but for those that papermill puts there."""
    tools = {INJECTED, FAILED}
    sources = [cell.source.strip() for cell in notebook.cells if not tools & set(cell.metadata.get("tags", []))]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()[:16]


def worked_in(path: Path) -> bool:
    """Whether the notebook there is no longer as it was written."""
    try:
        old = nbformat.read(path, as_version=4)
    except (OSError, ValueError, KeyError):
        return path.is_file()
    return bool(old.metadata.get(NOTE) != note(old))


def write_notebook(path: Path, notebook: Any) -> bool:
    """Write a notebook with a note of what it is, by which :func:`worked_in` sees a change. True if it was written."""
    notebook.metadata[NOTE] = note(notebook)
    return update(path, nbformat.writes(notebook).rstrip("\n") + "\n")


def with_outputs(job: Job, index: Index) -> Any:
    """The plain notebook of a chapter, with the outputs and the values of the job's run where there is one."""
    notebook = job.chapter.fresh()
    if (job.book.build / "executed").is_dir() and job.cached.is_file():
        run = nbformat.read(job.cached, as_version=4)
        apply_outputs(notebook, [cell.outputs for cell in code_cells(run)])
        notebook.metadata["isonb_run"] = run.metadata["isonb_run"]
    return plain(job.chapter, notebook, index, glued(notebook))


def readable(job: Job, index: Index) -> Any:
    """The plain notebook of an executed chapter, with its outputs and its values."""
    if not job.cached.is_file():
        raise ChapterError(f"{job.chapter.name} hasn't run with these parameters: python -m isonb_lab.pages execute")
    return with_outputs(job, index)


def put_outputs(job: Job, index: Index) -> Mapping[str, Any]:
    """Write the notebook of an executed chapter with its outputs, and return the record of the run.

    Raises :class:`~isonb_lab.pages.errors.PairingError` where a notebook stands that a person changed.
    """
    notebook = readable(job, index)
    defaults = {parameter.name: parameter.default for parameter in job.chapter.parameters}
    changed = [f"{name} = {value!r} (default {defaults[name]!r})" for name, value in job.parameters.items()]
    for cell in code_cells(notebook):
        if changed and "parameters" in cell.metadata.get("tags", []):
            text = f"This page was run with {', '.join(changed)}.\n"
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    if job.chapter.notebook.is_file() and worked_in(job.chapter.notebook):
        raise PairingError(
            f"a built notebook must be as it was written; {job.chapter.name}.ipynb was edited, and "
            f"{job.chapter.name}.md doesn't have the edit. Move it away, or delete it. Edit with: make edit"
        )
    write_notebook(job.chapter.notebook, notebook)
    return dict(notebook.metadata["isonb_run"])
