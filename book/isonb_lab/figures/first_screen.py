"""The first picture of the book: two sentences with nothing in common, and the cosines of eight, with one switch.

The README shows both views: ``python -m isonb_lab.figures.first_screen`` writes ``first_screen.svg``; a test compares
them.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from isonb.models.loading import encode, load
from isonb.numerics.rows import unit_rows
from isonb.points import mean_pool
from isonb_lab.data.corpus import sentences

VIEWS = ("as they are", "shared direction taken off")
TARGET = Path(__file__).with_suffix(".svg")
CELL, LEFT, TOP, LETTERS = 30, 330, 46, 52  # of the drawing: pixels, and letters of a sentence
STYLE = (
    "<style>text { font: 13px system-ui, sans-serif; fill: #222 } .number { font-size: 11px; text-anchor: middle } "
    "@media (prefers-color-scheme: dark) { text { fill: #ced6dd } }</style>"
)


def eight(corpus: Sequence[Any]) -> list[int]:
    """The rows of eight sentences: two pairs that say the same, one that nearly does, and two about something else.

    The first is about soup and the last about rain.
    """
    row = {sentence.id: at for at, sentence in enumerate(corpus)}
    twins = [s for s in corpus if s.paraphrase_of][:2] + [s for s in corpus if s.near_miss_of][:1]
    pairs = [row[name] for s in twins for name in (s.paraphrase_of or s.near_miss_of, s.id)]
    topics = sorted({s.topic for s in corpus})[-2:]
    return pairs + [next(at for at, s in enumerate(corpus) if s.topic == topic) for topic in topics]


class Square:
    """The cosines of some sentences as they are and without the mean of all, as HTML: a switch needs no script."""

    def __init__(self, vectors: Tensor, texts: Sequence[str], rows: Sequence[int]) -> None:
        """``vectors`` (n, d) of the n ``texts``; ``rows``: which are shown. The first and the last stand on top."""
        self.texts = [texts[row] for row in rows]
        units = [unit_rows(cloud[list(rows)]) for cloud in (vectors, vectors - vectors.mean(0))]
        self.cosines = [(unit @ unit.mT).tolist() for unit in units]

    def pair(self, view: str) -> float:
        """The cosine of the first and the last sentence."""
        return float(self.cosines[VIEWS.index(view)][0][-1])

    def _repr_html_(self) -> str:
        first, last = html.escape(self.texts[0]), html.escape(self.texts[-1])
        switch = "".join(
            f'<label><input type="radio" name="isonb-square" value="{at}"{" checked" * (not at)}> {view}</label>'
            for at, view in enumerate(VIEWS)
        )
        head = "".join(f'<th scope="col">{number}</th>' for number in range(1, len(self.texts) + 1))
        body = "".join(
            f'<tr><th scope="row">{row + 1}. {html.escape(text)}</th>{self._cells(row)}</tr>'
            for row, text in enumerate(self.texts)
        )
        return (
            '<div class="isonb-square" role="group" aria-label="The cosines of eight sentences">'
            f'<p class="isonb-two"><q>{first}</q> <q>{last}</q> <span class="isonb-gauge"{self._shades(0, -1)}>'
            f"</span> <b>{self._numbers(0, -1)}</b></p><p>{switch}</p>"
            f'<table><thead><tr><th scope="col">cosine with</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def _cells(self, row: int) -> str:
        columns = range(len(self.texts))
        return "".join(f"<td{self._shades(row, column)}>{self._numbers(row, column)}</td>" for column in columns)

    def _shades(self, row: int, column: int) -> str:
        ends = ";".join(f"--view-{at}:{max(0.0, view[row][column]):.2f}" for at, view in enumerate(self.cosines))
        return f' style="{ends}"'

    def _numbers(self, row: int, column: int) -> str:
        shown = (_short(view[row][column]) for view in self.cosines)
        return "".join(f'<span class="view-{at}">{text}</span>' for at, text in enumerate(shown))

    def svg(self) -> str:
        """Both views side by side, for where no switch works."""
        n = len(self.texts)
        gap = LEFT + n * CELL + 20
        parts = [f'<text x="{x}" y="18">{view}</text>' for x, view in zip((LEFT, gap), VIEWS, strict=True)]
        for row, text in enumerate(self.texts):
            y = TOP + row * CELL + 20
            line = text if len(text) <= LETTERS else text[: LETTERS - 2] + " …"
            parts.append(f'<text x="0" y="{y}">{row + 1}. {html.escape(line)}</text>')
            for left, view in zip((LEFT, gap), self.cosines, strict=True):
                parts += [_square(left + column * CELL, y, value) for column, value in enumerate(view[row])]
        heads = ((left + (k + 0.5) * CELL, k + 1) for left in (LEFT, gap) for k in range(n))
        parts += [f'<text class="number" x="{x}" y="{TOP - 6}">{number}</text>' for x, number in heads]
        size = f'viewBox="0 0 {gap + n * CELL} {TOP + n * CELL}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{STYLE}{"".join(parts)}</svg>'

    def __repr__(self) -> str:
        text = ", ".join(f"{view} {self.pair(view):.2f}" for view in VIEWS)
        return f"Square of {len(self.texts)} sentences; the cosine of the first and the last: {text}"


def _short(cosine: float) -> str:
    """Two digits, without the zero that all cosines share.

    >>> _short(0.6704), _short(-0.05), _short(1.0)
    ('.67', '-.05', '1')
    """
    return f"{cosine:z.2f}".replace("0.", ".", 1).replace("1.00", "1")


def _square(x: float, y: float, cosine: float) -> str:
    """A cell of the drawing whose text stands at height ``y``."""
    shade = f'fill="#56B4E9" fill-opacity="{0.75 * max(0.0, cosine):.2f}"'
    cell = f'<rect x="{x}" y="{y - 20}" width="{CELL}" height="{CELL}" {shade}/>'
    return f'{cell}<text class="number" x="{x + CELL / 2}" y="{y}">{_short(cosine)}</text>'


def square(encoder: str = "tiny") -> Square:
    """The square of the eight sentences as an encoder sees them: means of the tokens of its last layer."""
    corpus = sentences()
    texts = [sentence.text for sentence in corpus]
    states = encode(load(encoder), texts, progress=False)
    return Square(mean_pool(states.hidden_states[-1], states.mask).double(), texts, eight(corpus))


if __name__ == "__main__":
    TARGET.write_text(square().svg() + "\n", encoding="utf-8")
