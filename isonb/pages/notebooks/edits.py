"""An edit of a plain notebook back in the source of its chapter: the lines that were edited, and only those."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jupytext
import nbformat

from isonb.pages.chapters import Chapter
from isonb.pages.errors import PairingError
from isonb.pages.notebooks.plain import CAPTION, PAIR, cell_pieces
from isonb.pages.notebooks.two_sided import Piece, reworded, shown
from isonb.pages.outputs import INJECTED
from isonb.runtime.files import update

FAILED = "papermill-error-cell-tag"  # of what papermill writes above a cell that raised
HEADER_FILTER = "isonb,-jupytext.text_representation.jupytext_version"


def canonical(text: str) -> str:
    """The source as jupytext writes it: one spelling of header, cell options and white space."""
    notebook = jupytext.reads(text, fmt="md:myst")
    header = notebook.metadata.setdefault("jupytext", {})
    header.pop("formats", None)  # the notebook is written in words: jupytext must not pair it
    header["notebook_metadata_filter"] = HEADER_FILTER
    header.get("text_representation", {}).pop("jupytext_version", None)
    whole = nbformat.reads(jupytext.writes(notebook, fmt="ipynb"), as_version=4)
    return str(jupytext.writes(whole, fmt="md:myst"))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _own(cell: Any) -> bool:
    """Whether a person wrote it: neither papermill's cells nor one of our captions."""
    return not {INJECTED, FAILED, CAPTION} & set(cell.metadata.get("tags", []))


def fingerprint(notebook: Any) -> str:
    """The part of a notebook that a person writes: cells and their tags, without outputs, ids and what tools leave."""
    cells = [[c.cell_type, c.source.strip(), sorted(c.metadata.get("tags", []))] for c in notebook.cells if _own(c)]
    return digest(json.dumps(cells))


def bind(chapter: Chapter, notebook: Any) -> None:
    """Note in a plain notebook that has just been made from which source, cell by cell."""
    source = digest(chapter.source.read_text(encoding="utf-8"))
    cells = [cell.id for cell in chapter.cells.cells]
    notebook.metadata[PAIR] |= {"origin": source, "source": source, "cells": cells, "shown": fingerprint(notebook)}


def _edited(chapter: Chapter, notebook: Any, state: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The source with the edits of a notebook, and the ids of its cells; ``state`` is what :func:`bind` noted."""
    name = chapter.name
    pieces = cell_pieces(chapter.cells, notebook.metadata[PAIR]["words"])
    known = dict(zip(state["cells"], zip(chapter.cells.cells, pieces, strict=True), strict=True))
    here = {cell.id for cell in notebook.cells}
    gone = [known[name][1][0] for name in known if name not in here]
    source, ids = chapter.fresh(), []
    source.cells = []
    for cell in notebook.cells:
        new = cell.id not in known or known[cell.id][0].cell_type != cell.cell_type
        if not _own(cell) or (new and not cell.source.strip()):
            continue
        tags = [tag for tag in cell.metadata.get("tags", []) if tag]
        if new:
            made = nbformat.from_dict({**cell, "metadata": {"tags": tags} if tags else {}})
            whole = [parts for _, (parts, _) in known.values() if cell.source.strip() in shown(parts)]
            before = whole[:1]  # of a cell that was split, or pasted
        else:
            made = copy.deepcopy(known[cell.id][0])
            if tags != made.metadata.get("tags", []):
                made.metadata["tags"] = tags
            merged = [parts for parts in gone if (text := shown(parts).strip()) and text in cell.source]
            before = [known[cell.id][1][0], *merged]
        made.source = cell.source
        if cell.cell_type == "markdown" and before:
            try:
                made.source = reworded(_joined(before), cell.source)
            except ValueError as error:
                if not new:
                    raise PairingError(f"{name}.ipynb: {error} Edit that in {name}.md.") from None
        source.cells.append(made)
        ids.append(cell.id)
    if fingerprint(source) == fingerprint(chapter.cells):
        return chapter.source.read_text(encoding="utf-8"), ids
    text = canonical(jupytext.writes(source, fmt="md:myst"))
    again = [cell.source.strip() for cell in jupytext.reads(text, fmt="md:myst").cells]
    if again != [cell.source.strip() for cell in source.cells]:
        raise PairingError(f"{name}.md must hold each cell of {name}.ipynb; one is no MyST. Edit it in {name}.md.")
    return text, ids


def _joined(texts: Sequence[Sequence[Piece]]) -> list[Piece]:
    """Cells as one text, a blank line between them, as JupyterLab merges them."""
    between = Piece("\n\n", "\n\n")
    return [piece for number, text in enumerate(texts) for piece in ([between] * bool(number) + [*text])]


def keep(chapter: Chapter, notebook: Any, before: Mapping[str, Any] | None = None) -> None:
    """Write the edits of ``notebook`` into the source, and note so in the notebook, which is then written elsewhere.

    ``before`` is what the notebook on the disk notes; without it, ``notebook`` is that one. Raises
    :class:`PairingError`, with nothing written, where the source was edited since, too.
    """
    name, own = chapter.name, notebook.metadata[PAIR]
    state = before or own
    if state["origin"] != own["origin"]:
        raise PairingError(f"{name}.ipynb was written anew since it was opened. Reload it from the disk.")
    if digest(chapter.source.read_text(encoding="utf-8")) != state["source"]:
        raise PairingError(
            f"{name}.md was edited since {name}.ipynb was written from it. Write it anew (an edit of it is lost): "
            f"python -m isonb.pages pair --force {name}. Then reload it."
        )
    text, ids = _edited(chapter, notebook, state)
    update(chapter.source, text)
    notebook.metadata[PAIR] = {**own, "source": digest(text), "cells": ids, "shown": fingerprint(notebook)}


def save(chapter: Chapter, notebook: Any) -> None:
    """Before a notebook is saved in the place of the chapter's own: its edits go into the source (:func:`keep`)."""
    if PAIR not in notebook.metadata or not chapter.source.is_file() or not chapter.notebook.is_file():
        return
    disk = nbformat.read(chapter.notebook, as_version=4)
    keep(chapter, notebook, disk.metadata.get(PAIR))
