"""A sphinx extension: pages are built from the sources of chapters, with the outputs of their notebooks.

The notebooks themselves are in plain words; they are what a reader downloads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat

from isonb.pages.chapters import Chapter
from isonb.pages.outputs import code_cells, graft

__all__ = ["as_written", "setup"]


def as_written(app: Any, name: str, content: list[str]) -> None:
    """Put the cells of the source in the place of the plain ones of a notebook, before sphinx reads it."""
    if not str(app.env.doc2path(name)).endswith(".ipynb"):
        return
    notebook = nbformat.reads(content[0], as_version=4)
    source = Chapter(Path(app.srcdir), name).fresh()
    graft(source, [cell.outputs for cell in code_cells(notebook)])
    content[0] = nbformat.writes(nbformat.from_dict(source))


def setup(app: Any) -> dict[str, bool]:
    """What sphinx calls."""
    app.connect("source-read", as_written)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
