"""Numbers beside charts: tables."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from isonb_lab.pages.errors import PageError
from isonb_lab.pages.sentences import contradict, format_value

FILTERS = Path(__file__).parent / "static" / "filters.js"
LONG = 26  # letters of a cell that gets the room of a sentence
COUNTED = re.compile(r"([-+]?\d.*), n = (\d+)")  # a mean with the number of its runs
INTERVAL = re.compile(r" (\([^ ()]+ to [^ ()]+\),?)")
FEW = 4  # counts that may stand in their cells though they are one and the same


def _text(cell: str) -> str:
    """A cell as HTML: an interval isn't broken."""
    return INTERVAL.sub(r' <span class="interval">\1</span>', html.escape(cell))


@dataclass(eq=False, repr=False)
class Table:
    """What :func:`table` returns: rows with a caption, header cells with a scope, numbers to the right.

    Cells are text already; ``numeric`` tells which columns hold numbers; ``heads`` stand above a row.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[bool]
    caption: str
    heads: Mapping[int, Sequence[str]]
    filters: Sequence[str] = ()

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col"{self._look(at)}>{_text(name)}</th>' for at, name in enumerate(self.columns))
        body = "\n".join(f"{self._heads(at)}<tr>{self._cells(row)}</tr>" for at, row in enumerate(self.rows))
        caption = f"<caption>{_text(self.caption)}</caption>" if self.caption else ""
        label = html.escape(self.caption or "Table", quote=True)
        filters = f' data-filters="{html.escape(json.dumps(self.filters))}"' if self.filters else ""
        script = f"<script>{FILTERS.read_text(encoding='utf-8')}</script>" if self.filters else ""
        return (
            f'<div class="isonb-table" role="region" aria-label="{label}" tabindex="0"{filters}><table>{caption}'
            f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{script}"
        )

    def _heads(self, at: int) -> str:
        """What stands above a row, over all columns, as rows of its own."""
        cell = f'<th scope="colgroup" colspan="{len(self.columns)}">'
        return "".join(
            f'<tr class="head">{cell}<span>{_text(head)}</span></th></tr>\n' for head in self.heads.get(at, ())
        )

    def _look(self, at: int, cell: str = "") -> str:
        """The class of a cell: a number, or a sentence that needs room. The style does the rest."""
        return ' class="num"' if self.numeric[at] else ' class="long"' if len(INTERVAL.sub("", cell)) >= LONG else ""

    def _cells(self, row: Sequence[str]) -> str:
        tags = ['th scope="row"', *["td"] * (len(row) - 1)]
        cells = enumerate(zip(tags, row, strict=True))
        return "".join(f"<{tag}{self._look(at, cell)}>{_text(cell)}</{tag[:2]}>" for at, (tag, cell) in cells)

    def __repr__(self) -> str:
        grid = [list(self.columns), *map(list, self.rows)]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        cells = [f"{{:>{w}}}" if n else f"{{:<{w}}}" for w, n in zip(widths, self.numeric, strict=True)]
        lines = ["  ".join(f.format(c) for f, c in zip(cells, row, strict=True)) for row in grid]
        return "\n".join(line for at, row in enumerate(lines, start=-1) for line in (*self.heads.get(at, ()), row))


def table(
    data: Any,
    *,
    fmt: str | Mapping[str, str] | None = None,
    caption: str = "",
    index: bool = False,
    heads: Mapping[int, Sequence[str]] | None = None,
    filters: Sequence[str] = (),
) -> Table:
    """An accessible table of a DataFrame, of rows (mappings) or of columns (a mapping of sequences).

    ``fmt`` is one format for every number or one a column; a missing value prints as a dash. The first column heads
    its row; ``heads`` are lines over all columns, by the number of the row that they stand above. Where all means are
    of equally many runs the caption says how many, and not each cell. In a notebook the table is displayed at once (as
    a last line it isn't shown twice). A long table has a menu for each of its columns in ``filters``, and a search.

    >>> print(table([{"cloud": "sphere", "score": 0.97123}, {"cloud": "cone", "score": None}], fmt=".2f"))
    cloud   score
    sphere   0.97
    cone        –
    """
    columns = _columns(data, index)
    if not columns or not next(iter(columns.values())):
        contradict("a table needs at least one row and one column; got an empty one.")
        return Table([], [], [], caption, {})
    if len({len(cells) for cells in columns.values()}) != 1:
        raise PageError(f"columns must be of one length; got { {k: len(v) for k, v in columns.items()} }.")
    for option, names in (("fmt", fmt if isinstance(fmt, Mapping) else ()), ("filters", filters)):
        if unknown := sorted(set(names) - set(columns)):
            raise PageError(f"{option} names columns that aren't there: {unknown}. There are: {list(columns)}.")
    numeric = [all(_is_number(cell) for cell in cells) for cells in columns.values()]
    text = [
        [format_value(cell, (fmt.get(name) if isinstance(fmt, Mapping) else fmt) if number else None) for cell in cells]
        for (name, cells), number in zip(columns.items(), numeric, strict=True)
    ]
    text, caption = _counted_once(text, caption)
    result = Table(list(columns), list(zip(*text, strict=True)), numeric, caption, heads or {}, filters)
    if InteractiveShell.initialized():
        display(result)  # type: ignore[no-untyped-call]
        result._ipython_display_ = lambda: None  # type: ignore[attr-defined]
    return result


def _counted_once(text: Sequence[Sequence[str]], caption: str) -> tuple[list[list[str]], str]:
    """Columns of cells and a caption; the number of runs goes from the cells to the caption where all have the same.

    >>> _counted_once([["1 (0 to 2), n = 3"] * 4, ["–"] * 4], "Scores.")
    ([['1 (0 to 2)', '1 (0 to 2)', '1 (0 to 2)', '1 (0 to 2)'], ['–', '–', '–', '–']], 'Scores. n = 3.')
    """
    matches = [match for column in text for cell in column if (match := COUNTED.fullmatch(cell))]
    numbers = {match[2] for match in matches}
    if len(numbers) != 1 or len(matches) < FEW:
        return [list(column) for column in text], caption
    output = f"{caption} n = {numbers.pop()}.".lstrip()
    return [[COUNTED.sub(r"\1", cell) for cell in column] for column in text], output


def _is_number(cell: object) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)) or hasattr(cell, "item")


def _columns(data: Any, index: bool) -> dict[str, list[object]]:
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.reset_index() if index else data
        return {str(name): list(data[name]) for name in data.columns}
    if isinstance(data, Mapping):
        return {str(name): list(cells) for name, cells in data.items()}
    rows = list(data)
    if not all(isinstance(row, Mapping) for row in rows):
        raise PageError("rows must be mappings of column to value; got another type. Or pass a DataFrame.")
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}
