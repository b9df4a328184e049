"""Sections of a report as lines for a screen and as one page of HTML, with no script and nothing to load.

Every text of a user is escaped on the page, and printable on the screen.
"""

from __future__ import annotations

import html
import json
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from isonb.runtime.terminal import screen, spelled

WIDE = 88  # columns of the screen, and of a page of the book
LONG = 64  # characters of a text that are quoted: its count stands on the same line
QUOTED = 2  # texts of an item on the screen; a page shows them all
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
div { overflow-x: auto; } table { border-collapse: collapse; } caption { text-align: left; padding: .4rem 0; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8885; vertical-align: top; }
.text { text-align: left; } svg { max-width: 100%; height: auto; background: #fff; }
.fault { border-left: .3rem solid #D55E00; } .warning { border-left: .3rem solid #E69F00; }
.note, .skipped { border-left: .3rem solid #7f7f7f; } .ok { border-left: .3rem solid #009E73; }
li { list-style: none; padding: .2rem .7rem; margin: .4rem 0; } li li { border: 0; margin: 0; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #8885; }
"""


class Item(NamedTuple):
    """What a check or a finding says, after a word such as "fault"; ``quoted`` below it."""

    mark: str
    text: str
    quoted: Sequence[str] = ()


@dataclass(frozen=True)
class Columns:
    """Rows with a cell a column; ``words``: the columns of text, to the left.

    ``remarks``: the last cell of each row is text, too, which on a screen has its own line where the row has no room.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: bool = False
    words: Sequence[int] = (0,)


class Code(NamedTuple):
    """Lines to paste."""

    lines: Sequence[str]


class Strong(NamedTuple):
    """A sentence that says the whole."""

    text: str


class Picture(NamedTuple):
    """A chart of altair, which a page has and a screen hasn't."""

    chart: Any


Block = str | Item | Columns | Code | Strong | Picture


class Section(NamedTuple):
    """Blocks below a heading, which a screen shows only where ``shown``."""

    heading: str
    blocks: Sequence[Block]
    shown: bool = False


class Printed(ABC):
    """What says the same as text, JSON and HTML; a dataclass."""

    @abstractmethod
    def _heads(self) -> tuple[str, str]:
        """The name of the page, and the line above all sections."""

    @abstractmethod
    def _sections(self, full: bool) -> Iterator[Section]:
        """All sections; ``full``: with what is said on a page alone."""

    def to_json(self) -> str:
        """Everything, as JSON; a number that is not finite is null."""
        return json.dumps(plain(asdict(self)), indent=1)  # type: ignore[call-overload]

    def __repr__(self) -> str:
        return as_text(self._heads()[1], self._sections(full=False))

    def html(self) -> str:
        """The report as one HTML page, without scripts and with nothing to load."""
        return as_page(*self._heads(), self._sections(full=True))


def plain(value: Any) -> Any:
    """A value for JSON: a number that is not finite is None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(count: int, what: str) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def clipped(text: str) -> str:
    """A text in quotes on one line, cut where it is long."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= LONG else f'"{line[: LONG - 1]}…"'


def fixed(value: float, digits: int = 3) -> str:
    """A number with so many digits, and no minus where that leaves 0.

    >>> fixed(-0.0001), fixed(-0.126, 2)
    ('0.000', '-0.13')
    """
    return f"{value:z.{digits}f}"


def fine(value: float, digits: int = 3) -> str:
    """A cosine with ``digits``, or more where it is so near 1 that they would not tell it from 1.

    >>> fine(0.5), fine(0.99987), fine(-0.2, 2)
    ('0.500', '0.99987', '-0.20')
    """
    gap = 1 - abs(value)
    return fixed(value, max(digits, 1 - math.floor(math.log10(gap))) if gap > 1e-12 else digits)


def between(value: float, low: float, high: float, digits: int = 2, sign: str = "", unit: str = "") -> str:
    """A value with the ends of its interval; ``sign``: "+" for a difference.

    >>> between(0.123, 0.08, 0.161), between(0.5, -0.0001, 1, 3, "+", " points")
    ('0.12 (0.08 to 0.16)', '+0.500 points (+0.000 to +1.000)')
    """
    first, last, most = (f"{number:{sign}z.{digits}f}" for number in (value, low, high))
    return f"{first}{unit} ({last} to {most})"


def as_text(title: str, sections: Iterable[Section]) -> str:
    """One screen of text."""
    lines = [title]
    for section in sections:
        lines += [""] * bool(section.shown or section.blocks) + [section.heading] * section.shown
        for block, before in zip(section.blocks, (None, *section.blocks), strict=False):
            lines += [""] * (isinstance(block, Columns) and before is not None) + _lines(block)
    return screen("\n".join(lines).strip("\n"))


def _lines(block: Block) -> list[str]:
    if isinstance(block, Picture):
        return []
    if isinstance(block, Item):
        more = [f"{'':10}{example}" for example in block.quoted[:QUOTED]]
        return [_folded(line, 10) for line in (f"{block.mark:8}{block.text}", *more)]
    if isinstance(block, Columns):
        width = len(block.head) - block.remarks
        rows = [block.head[:width], *(row[:width] for row in block.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        first, *lines = [
            "  ".join(f"{c:{'<' if i in block.words else '>'}{widths[i]}}" for i, c in enumerate(row)).rstrip()
            for row in rows
        ]
        remarks = [row[-1] if block.remarks else "" for row in block.rows]
        return [first, *(part for line, remark in zip(lines, remarks, strict=True) for part in _remarked(line, remark))]
    if isinstance(block, Code):
        return [f"    {line}" for line in block.lines]
    return [_folded(block.text if isinstance(block, Strong) else block, 0)]


def _remarked(line: str, remark: str) -> list[str]:
    """A line with its remark behind it or, where the screen isn't so wide, below it."""
    both = f"{line}  {remark}" if remark else line
    return [both] if not remark or len(both) <= WIDE else [line, _folded(f"    {remark}", 4)]


def _folded(line: str, indent: int) -> str:
    """A line that is no longer than the screen is wide; what follows the first line is indented."""
    return textwrap.fill(line, WIDE, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def as_page(name: str, title: str, sections: Iterable[Section]) -> str:
    """One document of HTML."""
    head = f"<title>{html.escape(name)}</title><h1>{html.escape(name)}</h1>"
    parts = [f"<p>{html.escape(title)}</p>"]
    for section in sections:
        parts += [f"<h2>{html.escape(section.heading)}</h2>"] * bool(section.heading) + [*map(_element, section.blocks)]
    style = f'<meta charset="utf-8"><style>{STYLE}</style>'
    page = f'<!doctype html><html lang="en">{style}{head}' + "\n".join(parts) + "</html>\n"
    return spelled(page)


def _element(block: Block) -> str:
    if isinstance(block, Item):
        quoted = "".join(f"<li>{html.escape(example)}</li>" for example in block.quoted)
        more = f"<ul>{quoted}</ul>" if quoted else ""
        return f'<li class="{block.mark}"><b>{block.mark}</b> {html.escape(block.text)}{more}</li>'
    if isinstance(block, Columns):
        words = {*block.words, *([len(block.head) - 1] if block.remarks else [])}
        rows = (("th", block.head), *(("td", row) for row in block.rows))
        body = "".join(
            f"<tr>{''.join(_cell(tag, cell, i in words) for i, cell in enumerate(row))}</tr>" for tag, row in rows
        )
        caption = f"<caption>{html.escape(block.caption)}</caption>" if block.caption else ""
        return f"<div><table>{caption}{body}</table></div>"
    if isinstance(block, Picture):
        import vl_convert

        return f"<div>{vl_convert.vegalite_to_svg(json.dumps(_drawable(block.chart.to_dict())))}</div>"
    if isinstance(block, Strong):
        return f"<p><strong>{html.escape(block.text)}</strong></p>"
    if isinstance(block, Code):
        return f"<pre>{html.escape(chr(10).join(block.lines))}</pre>"
    return f"<p>{html.escape(block)}</p>"


def _drawable(value: Any) -> Any:
    """A part of a chart without control characters, which a picture can't hold (its library ends the process)."""
    if isinstance(value, dict):
        return {key: _drawable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_drawable(item) for item in value]
    return spelled(value) if isinstance(value, str) else value


def _cell(tag: str, text: str, to_left: bool) -> str:
    return f"<{tag}{' scope=col' * (tag == 'th')}{' class=text' * to_left}>{html.escape(text)}</{tag}>"
