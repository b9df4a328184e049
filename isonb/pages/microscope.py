"""A sentence microscope: the nearest neighbours of one sentence by several vectors, layer by layer, in a static page.

The lists are plain HTML that wraps on a phone; a menu and a slider exchange their text from data in the page itself.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from isonb.layers.soft_decay import soft_decay
from isonb.numerics.nearest import nearest_by_cosine
from isonb.pages.errors import PageError
from isonb.transforms import SoftZCA, ZeroMean

__all__ = ["VIEWS", "Microscope", "found_first", "new_neighbours", "views"]

VIEWS = {
    "plain": "as the model gives them",
    "centred": "minus the mean of all sentences",
    "whitened": "centred, and every direction brought near one variance",
    "SoftDecayed": "large singular values pulled down by a logarithm",
}
SCRIPT = Path(__file__).parent / "static" / "microscope.js"


def views(x: Tensor) -> dict[str, Tensor]:
    """The vectors (n, d) of n sentences in the four forms of :data:`VIEWS`, all fitted on these sentences.

    Whitening is soft, with the shrinkage of Ledoit and Wolf (:class:`~isonb.SoftZCA`): with n <= d there is
    no inverse. SoftDecay acts on the singular values of the matrix, not centred, at its default alpha.

    >>> import torch
    >>> list(views(torch.eye(4, dtype=torch.float64)))
    ['plain', 'centred', 'whitened', 'SoftDecayed']
    """
    made = (x, ZeroMean().fit_transform(x), SoftZCA(eps="auto").fit_transform(x), soft_decay(x))
    return dict(zip(VIEWS, made, strict=True))


def found_first(x: Tensor, pairs: Sequence[tuple[int, int]]) -> list[bool]:
    """For each pair (row, partner) whether the partner is the row's nearest neighbour by cosine.

    >>> import torch
    >>> found_first(torch.tensor([[1.0, 0.0], [3.0, 3.0], [0.0, 2.0]]), [(0, 1), (2, 0)])
    [True, False]
    """
    nearest = nearest_by_cosine(x, 1)[0].flatten().tolist()
    return [nearest[row] == partner for row, partner in pairs]


def new_neighbours(x: Tensor, plain: Tensor, k: int) -> float:
    """How many of a row's k neighbours in ``x`` its k neighbours in ``plain`` lack, on average over rows.

    >>> import torch
    >>> plain = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    >>> round(new_neighbours(plain[[0, 2, 1]], plain, 1), 2)
    1.0
    """
    pairs = zip(*(nearest_by_cosine(cloud, k)[0].tolist() for cloud in (x, plain)), strict=True)
    return sum(len(set(new) - set(old)) for new, old in pairs) / len(x)


@dataclass(frozen=True)
class Entry:
    """One neighbour: its text's place, cosine, whether the plain list lacks it, and its kinship ("" for none)."""

    text: int
    cosine: float
    new: bool
    kin: str


class Microscope:
    """The lists of neighbours of some sentences, to be displayed by a notebook or a page."""

    def __init__(
        self,
        layers: Sequence[Tensor],
        texts: Sequence[str],
        picks: Sequence[int],
        kin: Mapping[tuple[int, int], str] | None = None,
        k: int = 5,
    ) -> None:
        """``layers``: a cloud (n, d) a layer; ``picks``: which of the n ``texts`` the menu offers.

        ``kin`` names what a neighbour is to a sentence, for pairs (sentence, neighbour) of which that is known.
        """
        if not layers or not picks or any(len(layer) != len(texts) for layer in layers):
            sizes = [len(layer) for layer in layers]
            raise PageError(f"each layer needs a vector a text, and the menu a sentence; got {sizes}, {len(texts)}.")
        if not 1 <= k < len(texts):
            raise PageError(f"k must be from 1 to {len(texts) - 1}, the other sentences; got {k}.")
        self.texts, self.picks, self.kin = texts, list(picks), dict(kin or {})
        self.lists = [self._layer(layer, k) for layer in layers]

    def _layer(self, layer: Tensor, k: int) -> dict[int, list[list[Entry]]]:
        found = {name: nearest_by_cosine(x, k) for name, x in views(layer).items()}
        plain = found["plain"][0]
        return {
            i: [
                [
                    Entry(j, c, j not in plain[i].tolist(), self.kin.get((i, j), ""))
                    for j, c in zip(index[i].tolist(), cosine[i].tolist(), strict=True)
                ]
                for index, cosine in found.values()
            ]
            for i in self.picks
        }

    def entries(self, layer: int, pick: int, view: str) -> list[Entry]:
        """The neighbours of the sentence at ``pick``, nearest first."""
        return self.lists[layer][pick][list(VIEWS).index(view)]

    def data(self) -> dict[str, object]:
        """What the script of the page reads: the texts in use, and [layer][sentence of the menu][view][neighbour]."""
        used = sorted({e.text for layer in self.lists for each in layer.values() for row in each for e in row})
        place = {text: number for number, text in enumerate(used)}
        kinds = ["", *sorted(set(self.kin.values()))]
        lists = [
            [
                [[[place[e.text], round(e.cosine, 3), int(e.new), kinds.index(e.kin)] for e in row] for row in layer[i]]
                for i in self.picks
            ]
            for layer in self.lists
        ]
        return {"texts": [self.texts[i] for i in used], "kinds": kinds, "lists": lists}

    def _repr_html_(self) -> str:
        data = json.dumps(self.data(), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        last = len(self.lists) - 1
        options = "".join(f'<option value="{n}">{_text(self.texts[i])}</option>' for n, i in enumerate(self.picks))
        panels = "".join(self._panel(name, self.entries(last, self.picks[0], name)) for name in VIEWS)
        return (
            '<div class="isonb-microscope" role="group" aria-label="Sentence microscope">'
            f'<label class="isonb-pick">Sentence <select>{options}</select></label>'
            f'<label class="isonb-layer">Layer <input type="range" min="0" max="{last}" step="1" value="{last}">'
            f" <output>{last}</output></label>"
            f'<p class="isonb-chosen">{_text(self.texts[self.picks[0]])}</p>'
            f'<p class="isonb-told" aria-live="polite"></p><div class="isonb-lists">{panels}</div>'
            f'<script type="application/json">{data}</script>'
            f"<script>{SCRIPT.read_text(encoding='utf-8')}</script></div>"
        )

    def _panel(self, name: str, entries: Sequence[Entry]) -> str:
        rows = "".join(self._row(entry) for entry in entries)
        return (
            f'<section aria-label="{name}"><p><strong>{name}</strong> {_text(VIEWS[name])}</p><ol>{rows}</ol></section>'
        )

    def _row(self, entry: Entry) -> str:
        mark, kind = ("" if shown else " hidden" for shown in (entry.new, entry.kin))
        new = ' class="isonb-new"' if entry.new else ""
        return (
            f'<li{new}><span class="isonb-cosine">{entry.cosine:.2f}</span> '
            f"<span>{_text(self.texts[entry.text])}</span> <em{mark}>new</em> <em{kind}>{_text(entry.kin)}</em></li>"
        )

    def __repr__(self) -> str:
        return f"Microscope({len(self.picks)} of {len(self.texts)} sentences, {len(self.lists)} layers)"


def _text(words: str) -> str:
    return html.escape(words, quote=True)
