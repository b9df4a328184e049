"""What *Errata of the field* is made of: two readings of one definition, side by side."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from isonb.errors import InputError, fail
from isonb.layers import IsoBN
from isonb.layers.soft_decay import soft_decay
from isonb_lab.pages.charts import OKABE_ITO
from isonb_lab.papers.isolayer import isoscore_bound

KINDS = ("text and code", "code", "printed")
"""Text and code differ, code does another thing than it is meant to, a printed number contradicts its neighbours."""
COLORS = (OKABE_ITO["blue"], OKABE_ITO["vermillion"], OKABE_ITO["purple"])
WIDTHS = {"bert-base-cased": ("BERT-base", 768), "roberta-large": ("RoBERTa-L", 1024)}
STATES = {"Finetuned LM": "IsoLayer column, baseline without the method"}
STATES["Finetuned LM + Isotropy Layer"] = "IsoLayer (isotropy method on)"


def relative_difference(theirs: float, ours: float) -> float:
    """The difference over the larger of the two sizes: 0 for equal numbers, 1 beside a zero, 2 for opposite ones.

    A number that isn't finite is as far as can be.

    >>> [relative_difference(*pair) for pair in ((1.0, 2.0), (-3.0, 3.0), (math.nan, 1.0), (0.0, 0.0))]
    [0.5, 2.0, 2.0, 0.0]
    """
    if not (math.isfinite(theirs) and math.isfinite(ours)):
        return 2.0
    size = max(abs(theirs), abs(ours))
    return abs(theirs - ours) / size if size else 0.0


def number_pair(theirs: float, ours: float) -> str:
    """Both numbers with three digits, or with four where three are the same.

    >>> number_pair(12.0, 13.16), number_pair(64.12, 64.14)
    ('12 / 13.2', '64.12 / 64.14')
    """
    digits = 3 if f"{theirs:.3g}" != f"{ours:.3g}" else 4
    return f"{theirs:.{digits}g} / {ours:.{digits}g}"


class Errata:
    """The entries of a page in their order.

    >>> errata = Errata()
    >>> errata.note("Gain", "printed", as_printed=12.0, recomputed=13.16)
    Gain
    as printed: 12
    recomputed: 13.16
    >>> len(errata.frame())
    1
    """

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def note(self, name: str, kind: str, **readings: Any) -> None:
        """Keep two readings, theirs first, and print them below the name; a reading's name is words with underscores.

        Errors: a kind that isn't in :data:`KINDS`, or other than two readings :class:`~isonb.errors.InputError`.
        """
        if kind not in KINDS:
            fail(InputError, f"kind must be one of {', '.join(KINDS)}", repr(kind), "Name one of them.")
        if len(readings) != 2:
            fail(InputError, "an entry must have two readings", len(readings), "Give theirs, then ours.")
        parts = [word.replace("_", " ") for word in readings]
        theirs, ours = (float(value) for value in readings.values())
        row = {"entry": name, "kind": kind, "theirs": theirs, "ours": ours, "apart": relative_difference(theirs, ours)}
        self.rows.append({**row, "reading": parts[0], "other": parts[1]})
        print(f"{name}\n{parts[0]}: {theirs:.4g}\n{parts[1]}: {ours:.4g}")

    def frame(self) -> pd.DataFrame:
        """One row an entry: ``entry``, ``kind``, ``theirs``, ``ours``, ``apart`` and the words of both readings."""
        return pd.DataFrame(self.rows)

    def count(self, kind: str) -> int:
        """How many entries are of this kind."""
        return sum(row["kind"] == kind for row in self.rows)

    def chart(self) -> Any:
        """A bar an entry, as long as its readings are apart, the longest first."""
        frame = self.frame().sort_values("apart", ascending=False, kind="stable")
        frame["numbers"] = [number_pair(row.theirs, row.ours) for row in frame.itertuples()]
        order = frame["entry"].tolist()
        down = alt.Y("entry:N", sort=order, title=None, axis=alt.Axis(labelLimit=300, tickCount=len(order)))
        scale, axis = alt.Scale(domain=[0, 2.6]), alt.Axis(grid=False)  # a line would run through the numbers
        across = alt.X("apart:Q", title="difference over the larger of the two", scale=scale, axis=axis)
        colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(KINDS), range=list(COLORS)))
        base = alt.Chart(frame.drop(columns=["theirs", "ours"]), width=330, height=alt.Step(18)).encode(down, across)
        marks: dict[str, Any] = {"filled": True, "size": 60, "opacity": 1}
        dots = base.mark_point(**marks).encode(
            colour, alt.Shape("kind:N", title=None, scale=alt.Scale(domain=list(KINDS)))
        )
        numbers = base.mark_text(align="left", dx=8, fontSize=11).encode(text="numbers:N")
        return base.mark_rule(strokeWidth=2).encode(colour) + dots + numbers


def cells_over_the_bound(scores: pd.DataFrame, shares: pd.DataFrame) -> tuple[int, int]:
    """How many printed IsoScores of IsoLayer's Table 2 lie above what its Table 3 allows; and how many there are.

    ``scores`` and ``shares`` are the printed rows of both, with ``model``, ``task``, ``method``, ``metric``, ``value``.
    """
    scores = scores[scores["method"].isin(STATES) & scores["metric"].eq("IsoScore")]
    over = 0
    for row in scores.to_dict("records"):
        name, d = WIDTHS[row["model"]]
        same = (shares["model"] == name) & (shares["task"] == row["task"]) & shares["metric"].str.startswith("EV_")
        ev = shares[same & (shares["method"] == STATES[row["method"]])].sort_values("metric")["value"].tolist()
        over += row["value"] > isoscore_bound(ev, d)
    return over, len(scores)


def svd_slopes(seed: int = 0) -> tuple[float, float]:
    """The largest error of SoftDecay's gradient at two equal singular values: through the SVD, and ours.

    Both against central differences of the same smooth function of one 5 x 7 matrix with singular values 4, 2, 2, 1;
    relative to the largest slope.
    """
    generator = torch.Generator().manual_seed(seed)
    normal = partial(torch.randn, generator=generator, dtype=torch.float64)
    left, right = (torch.linalg.qr(normal(size, 4))[0] for size in (5, 7))
    x = left * torch.tensor([4, 2, 2, 1], dtype=torch.float64) @ right.T
    weights, alpha = normal(5, 7), -0.3

    def through_svd(points: Tensor) -> Tensor:
        u, s, v = torch.linalg.svd(points, full_matrices=False)
        g = (-torch.log(1 - alpha * (s + alpha)) / alpha).clamp(min=0)
        decayed: Tensor = u * (g * s[0] / g[0]) @ v
        return decayed

    def value(points: Tensor) -> Tensor:
        return (soft_decay(points, alpha, "safe") * weights).sum((-2, -1))

    step = 1e-6
    steps = step * torch.eye(35, dtype=torch.float64).view(35, 5, 7)
    want = ((value(x + steps) - value(x - steps)) / (2 * step)).view(5, 7)
    errors = []
    for total in (lambda points: (through_svd(points) * weights).sum(), value):
        y = x.clone().requires_grad_()
        errors.append(float((torch.autograd.grad(total(y), y)[0] - want).abs().max() / want.abs().max()))
    return errors[0], errors[1]


def mean_correlation(layer: IsoBN) -> float:
    """The mean squared correlation of the running statistics of IsoBN, cut at 1 as the layer does.

    >>> layer = IsoBN(2)
    >>> _ = layer(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]]))
    >>> mean_correlation(layer)  # on the diagonal 1 after the cut, beside it 0
    0.5
    """
    rho = layer.running_cov / layer.running_std.outer(layer.running_std)
    return float(rho.clamp(-1, 1).square().mean())
