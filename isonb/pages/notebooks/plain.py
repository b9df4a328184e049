"""The notebook of a chapter as people read it: plain Markdown, plumbing folded, captions below their pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import nbformat

from isonb.pages.chapters import Chapter
from isonb.pages.notebooks.markdown import Reader
from isonb.pages.notebooks.two_sided import Piece, shown
from isonb.pages.notebooks.words import Index

PAIR = "isonb_pair"  # where a notebook keeps how it belongs to its source
CAPTION = "isonb_caption"
FOLDED = {"hide-input", "hide-cell", "remove-cell", "remove-input"}  # tags of cells whose code the book hides


def cell_pieces(notebook: Any, words: Mapping[str, str]) -> list[tuple[list[Piece], str]]:
    """For each cell of a source: its pieces, none for code, and the label of the solution that it stands in."""
    reader, made = Reader(words), []
    for cell in notebook.cells:
        inside = reader.solution
        made.append((reader.pieces(cell.source) if cell.cell_type == "markdown" else [], inside))
    return made


def plain(chapter: Chapter, notebook: Any, index: Index, values: Mapping[str, str]) -> Any:
    """``notebook``, which has the cells of the chapter's source, with its prose in words, to be read anywhere.

    Code that the book hides is folded, but for the parameters, and solutions are closed, with their outputs.
    """
    words = index.words(chapter, values)
    made = nbformat.v4.new_notebook(metadata={k: v for k, v in notebook.metadata.items() if k != "jupytext"})
    for cell, (pieces, solution) in zip(notebook.cells, cell_pieces(notebook, words), strict=True):
        metadata = {key: value for key, value in cell.metadata.items() if key != "mystnb"}
        if cell.cell_type == "markdown":
            made.cells.append(nbformat.v4.new_markdown_cell(shown(pieces), id=cell.id, metadata=metadata))
            continue
        tags = set(metadata.get("tags", []))
        folded = bool(FOLDED & tags) and "parameters" not in tags  # these are to be seen, and changed
        if folded or solution:
            metadata["jupyter"] = {"source_hidden": True} | ({"outputs_hidden": True} if solution else {})
        made.cells.append(nbformat.from_dict({**cell, "metadata": metadata}))
        made.cells += _caption(cell, index, words)
    made.metadata[PAIR] = {"words": words}
    return made


def _caption(cell: Any, index: Index, words: Mapping[str, str]) -> list[Any]:
    """The cell below a picture that says its number and what it shows; it can't be edited, its text is an option."""
    figure = (cell.metadata.get("mystnb") or {}).get("figure") or {}
    if not figure:
        return []
    number = index.labels.get(figure.get("name", ""), ("", ""))[1]
    said = shown(Reader(words).inline(" ".join(str(figure.get("caption", "")).split())))
    fixed = {"editable": False, "deletable": False, "tags": [CAPTION]}
    return [nbformat.v4.new_markdown_cell(f"*{number}* {said}".strip(), id=f"{cell.id}-caption", metadata=fixed)]
