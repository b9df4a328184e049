"""The code that a reader sees: short, and no wider than a page. What only draws or prepares is folded."""

from __future__ import annotations

from collections.abc import Iterator

from isonb.pages.chapters import Chapter
from isonb.pages.notebooks.plain import cell_pieces
from isonb.pages.reading import FOLDED

__all__ = ["WIDTH", "visible", "visible_rule"]

WIDTH = 80
LINES = 12
NOT_YET: tuple[str, ...] = ()


def visible(chapter: Chapter) -> list[bool]:
    """Whether each code cell is open: not folded by its tags, nor in a solution. In chapters not yet gone over: no."""
    cells = zip(chapter.cells.cells, cell_pieces(chapter.cells, {}), strict=True)
    found = [
        not (solution or FOLDED & set(cell.metadata.get("tags", [])))
        for cell, (_, solution) in cells
        if cell.cell_type == "code"
    ]
    return [one and not chapter.name.startswith(NOT_YET) for one in found]


def visible_rule(chapter: Chapter) -> Iterator[str]:
    """The rule of the lint: an open cell has at most 12 lines of 80 columns."""
    for number, (cell, seen) in enumerate(zip(chapter.code, visible(chapter), strict=True), start=1):
        lines = cell.source.splitlines() or [""]
        if seen and (len(lines) > LINES or max(map(len, lines)) > WIDTH):
            size = f"{len(lines)} lines of up to {max(map(len, lines))}"
            must = f"an open cell has at most {LINES} lines of {WIDTH} columns"
            yield f"code cell {number}: {must}; it has {size}. Fold it"
