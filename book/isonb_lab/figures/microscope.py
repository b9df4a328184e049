"""Pictures of *The microscope*: guess the score of a cloud, and the nearest neighbours of a sentence by layer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.layers.soft_decay import soft_decay
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore
from isonb.measures.spectrum import singular_values
from isonb.numerics.nearest import nearest_by_cosine
from isonb.transforms import SoftZCA, ZeroMean
from isonb_lab.pages.charts import GREY, OKABE_ITO, option_menu, slider

BARS = 10  # directions shown of the spectrum
SCORES = ["IsoScore", "mean cosine"]
MARKS = {
    "your guess": (OKABE_ITO["vermillion"], "diamond"),
    "this cloud": (OKABE_ITO["blue"], "circle"),
    "round cloud of this size": (GREY, "square"),
}
RADIUS = "sqrt(stretch * stretch + d - 1)"  # the root mean squared distance of the cloud from its mean


def bent(noise: Tensor, shift: float, stretch: float) -> Tensor:
    """Standard normal ``noise`` (n, d), its first axis stretched, then moved along the diagonal of the first two axes.

    The way is ``shift`` times the radius :math:`\\sqrt{s^2 + d - 1}` of the stretched cloud.

    >>> bent(torch.zeros(1, 2, dtype=torch.float64), shift=1.0, stretch=1.0).tolist()
    [[1.0, 1.0]]
    """
    out = noise.clone()
    out[:, 0] *= stretch
    out[:, :2] += shift * ((stretch**2 + noise.shape[1] - 1) / 2) ** 0.5
    return out


def guess_frames(
    shifts: Sequence[float], stretches: Sequence[float], sizes: Sequence[int], dims: Sequence[int], seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Readings of every cloud of the grid, spectra of every stretch and size, and the points of the first two axes.

    A smaller cloud is a corner of the largest. ``round`` is the reading of the same points neither moved nor stretched.
    """
    noise = torch.randn(max(sizes), max(dims), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    readings, spectra = [], []
    for n in sizes:
        for d in dims:
            cloud = noise[:n, :d]
            plain = _scores(cloud)
            for stretch in stretches:
                size = {"n": n, "d": d, "stretch": stretch}
                shares = singular_values(bent(cloud, 0.0, stretch), center=True).square()
                spectra.append({**size, "shares": [round(v, 3) for v in (shares / shares.sum())[:BARS].tolist()]})
                for shift in shifts:
                    pairs = zip(SCORES, _scores(bent(cloud, shift, stretch)), plain, strict=True)
                    readings += [{**size, "shift": shift, "score": s, "truth": t, "round": r} for s, t, r in pairs]
    dots = pd.DataFrame(noise[:, :2].numpy().round(2), columns=["u", "v"]).assign(i=range(max(sizes)))
    return pd.DataFrame(readings).round(3), pd.DataFrame(spectra), dots


def _scores(cloud: Tensor) -> tuple[float, float]:
    return float(isoscore(cloud)), float(mean_cosine(cloud))


def guess_chart(readings: pd.DataFrame, spectra: pd.DataFrame, dots: pd.DataFrame) -> Any:
    """The cloud of :func:`guess_frames` with its spectrum, and below the guesses; a box reveals the readings."""
    grid = {name: sorted(readings[name].unique().tolist()) for name in ("shift", "stretch", "n", "d")}
    steps = {name: grid[name][1] - grid[name][0] for name in ("shift", "stretch")}
    controls = [
        slider("shift", grid["shift"][0], grid["shift"][-1], step=steps["shift"], value=grid["shift"][1]),
        slider("stretch", grid["stretch"][0], grid["stretch"][-1], step=steps["stretch"], value=grid["stretch"][1]),
        option_menu("n", grid["n"][::-1], label="points n"),
        option_menu("d", grid["d"], label="dimensions d"),
        slider("guess0", 0, 1, step=0.05, value=0.5, label="guess IsoScore"),
        slider("guess1", 0, 1, step=0.05, value=0.5, label="guess mean cosine"),
        alt.param(name="reveal", value=False, bind=alt.binding_checkbox(name="reveal ")),
    ]
    upper = alt.hconcat(_plane(dots, grid["shift"][-1], grid["stretch"][-1]), _spectrum(spectra), spacing=14)
    return alt.vconcat(upper, _panel(readings), spacing=16).add_params(*controls).configure_view(stroke=None)


def _plane(dots: pd.DataFrame, shift: float, stretch: float) -> Any:
    """The first two coordinates, the origin a cross; one frame for every ``shift`` and ``stretch``."""
    way = f"shift * {RADIUS} / SQRT2"
    farthest = RADIUS.replace("stretch", str(stretch))
    low, high = -3.3 * stretch, alt.ExprRef(f"{3.3 * stretch} + {shift} * {farthest} / SQRT2")
    frame = alt.Scale(domainMin=low, domainMax=high, nice=False, zero=False)
    x = alt.X("x:Q", scale=frame, title="first coordinate", axis=alt.Axis(tickCount=4))
    y = alt.Y("y:Q", scale=frame, title="second coordinate", axis=alt.Axis(tickCount=4))
    cloud = alt.Chart(dots, width=200, height=200).transform_filter("datum.i < n")
    cloud = cloud.transform_calculate(x=f"datum.u * stretch + {way}", y=f"datum.v + {way}")
    origin = alt.Chart(pd.DataFrame({"x": [0], "y": [0]})).mark_point(shape="cross", size=110, color=GREY, aria=False)
    return cloud.mark_circle(size=14, opacity=0.65, clip=True, aria=False).encode(x, y) + origin.encode(x, y)


def _spectrum(spectra: pd.DataFrame) -> Any:
    chart = alt.Chart(spectra, width=170, height=200)
    chart = chart.transform_filter("datum.n == n && datum.d == d && datum.stretch == stretch")
    chart = chart.transform_flatten(["shares"], as_=["share"]).transform_window(rank="row_number()")
    share = alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), title="share of the variance", axis=alt.Axis(tickCount=3))
    rank = alt.X("rank:O", title=f"direction (first {BARS})", axis=alt.Axis(labelAngle=0))
    return chart.mark_bar(aria=False).encode(rank, share)


def _panel(readings: pd.DataFrame) -> Any:
    """A row a score: the guess, and once revealed the reading and that of a round cloud, as marks and as words."""
    here = " && ".join(f"datum.{name} == {name}" for name in ("shift", "stretch", "n", "d"))
    chart = alt.Chart(readings, width=420, height=120).transform_filter(here)
    chart = chart.transform_calculate(guess=f"datum.score == '{SCORES[0]}' ? guess0 : guess1")
    row = alt.Y("score:N", sort=SCORES, title=None, axis=None)
    text = (
        "datum.score + ': you guess ' + format(datum.guess, '.2f') + (reveal ? ', it is ' + "
        "format(datum.truth, '.2f') + '; round: ' + format(datum.round, '.2f') : '')"
    )
    label = chart.transform_calculate(told=text).mark_text(align="left", dy=-19).encode(row, text="told:N")
    label = label.encode(x=alt.value(0))
    named = dict(zip(("guess", "truth", "round"), MARKS, strict=True))
    for field, name in named.items():
        chart = chart.transform_calculate(**{name.replace(" ", "_"): f"datum.{field}"})
    marks = chart.transform_fold([name.replace(" ", "_") for name in MARKS], as_=["which", "reading"])
    marks = marks.transform_calculate(which="replace(datum.which, /_/g, ' ')")
    marks = marks.transform_filter(f"reveal || datum.which == '{next(iter(MARKS))}'")
    domain, colors, shapes = list(MARKS), [c for c, _ in MARKS.values()], [s for _, s in MARKS.values()]
    legend = alt.Legend(title=None, columns=3, symbolOpacity=1)
    reading = alt.X(
        "reading:Q", scale=alt.Scale(domain=[-0.1, 1.05], nice=False), title="reading", axis=alt.Axis(grid=False)
    )
    points = marks.mark_point(filled=True, size=110, opacity=0.85, aria=False).encode(
        reading,
        row,
        alt.Color("which:N", scale=alt.Scale(domain=domain, range=colors), legend=legend),
        alt.Shape("which:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend),
    )
    return points + label


VIEWS = {
    "plain": "as the model gives them",
    "centred": "minus the mean of all sentences",
    "whitened": "centred, and every direction brought near one variance",
    "SoftDecayed": "large singular values drawn together by a logarithm",
}
SCRIPT = Path(__file__).with_suffix(".js")


def views(x: Tensor) -> dict[str, Tensor]:
    """The vectors (n, d) of n sentences in the four forms of :data:`VIEWS`, all fitted on these sentences.

    Whitening is soft, with the shrinkage of Ledoit and Wolf (:class:`~isonb.transforms.SoftZCA`): with n <= d there is
    no inverse. SoftDecay acts on the singular values of the matrix, not centred, at its default alpha.

    >>> import torch
    >>> list(views(torch.eye(4, dtype=torch.float64)))
    ['plain', 'centred', 'whitened', 'SoftDecayed']
    """
    output = (x, ZeroMean().fit_transform(x), SoftZCA(eps="auto").fit_transform(x), soft_decay(x))
    return dict(zip(VIEWS, output, strict=True))


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
        self.texts, self.picks, self.kin = texts, list(picks), dict(kin or {})
        self.lists = [self._layer(layer, k) for layer in layers]

    def _layer(self, layer: Tensor, k: int) -> dict[int, list[list[Entry]]]:
        results = {name: nearest_by_cosine(x, k) for name, x in views(layer).items()}
        plain = results["plain"][0]
        return {
            i: [
                [
                    Entry(j, c, j not in plain[i].tolist(), self.kin.get((i, j), ""))
                    for j, c in zip(index[i].tolist(), cosine[i].tolist(), strict=True)
                ]
                for index, cosine in results.values()
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
        options = "".join(f'<option value="{n}">{escape(self.texts[i])}</option>' for n, i in enumerate(self.picks))
        panels = "".join(self._panel(name, self.entries(last, self.picks[0], name)) for name in VIEWS)
        return (
            '<div class="isonb-microscope" role="group" aria-label="Sentence microscope">'
            f'<label class="isonb-pick">Sentence <select>{options}</select></label>'
            f'<label class="isonb-layer">Layer <input type="range" min="0" max="{last}" step="1" value="{last}">'
            f" <output>{last}</output></label>"
            f'<p class="isonb-chosen">{escape(self.texts[self.picks[0]])}</p>'
            f'<p class="isonb-told" aria-live="polite"></p><div class="isonb-lists">{panels}</div>'
            f'<script type="application/json">{data}</script>'
            f"<script>{SCRIPT.read_text(encoding='utf-8')}</script></div>"
        )

    def _panel(self, name: str, entries: Sequence[Entry]) -> str:
        rows = "".join(self._row(entry) for entry in entries)
        head = f"<p><strong>{name}</strong> {escape(VIEWS[name])}</p>"
        return f'<section aria-label="{name}">{head}<ol>{rows}</ol></section>'

    def _row(self, entry: Entry) -> str:
        mark, kind = ("" if shown else " hidden" for shown in (entry.new, entry.kin))
        new = ' class="isonb-new"' if entry.new else ""
        return (
            f'<li{new}><span class="isonb-cosine">{entry.cosine:.2f}</span> '
            f"<span>{escape(self.texts[entry.text])}</span> <em{mark}>new</em> <em{kind}>{escape(entry.kin)}</em></li>"
        )

    def __repr__(self) -> str:
        return f"Microscope({len(self.picks)} of {len(self.texts)} sentences, {len(self.lists)} layers)"
