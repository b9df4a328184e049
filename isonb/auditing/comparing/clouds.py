"""The same rows from another runtime, precision, layer or model version: what moved, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.asking import named
from isonb.auditing.comparing.relations import relation_of
from isonb.auditing.comparing.told import Comparison, Difference, K
from isonb.auditing.defects import copies
from isonb.auditing.models import encoded
from isonb.auditing.parts import Finding
from isonb.auditing.reading import matrix
from isonb.auditing.reading.described import refuse
from isonb.auditing.reading.rows import CHUNK, NAMED, numbers, rows_of
from isonb.auditing.shape import AUDITED, GROUPS, TWO_NN, groups_of, jackknife
from isonb.auditing.vectors import SAMPLE, WIDE, check_sample, worst_first
from isonb.auditing.words import counted
from isonb.errors import DegenerateError, ShapeError, fail
from isonb.measures.registry import MEASURES
from isonb.numerics.nearest import nearest_by_cosine
from isonb.numerics.rows import unit_rows

__all__ = ["compare"]

SHARES = (0.0, 0.001, 0.01, 0.05, 0.5)
SAME = 1 - 1e-5  # the lowest cosine of rows that differ by rounding alone
MOVED = 0.99  # a cosine below which a row is another one
KEPT = 0.9  # mean overlap of neighbours below which a search answers differently
CHANCE = 3.0  # times the overlap of unrelated rows, up to which an overlap is no sign that the rows belong together


def compare(
    first: Any,
    second: Any,
    texts: Sequence[str] | None = None,
    *,
    names: tuple[str | None, str | None] = (None, None),
    sample: int = SAMPLE,
    seed: int = 0,
) -> Comparison:
    """Compare two clouds of the same rows: another runtime, precision, layer or version of a model, or another model.

    Neighbours and CKA need the same rows in one order, and no more: the dimensions may differ, as of a Matryoshka cut,
    a PCA or another model. Cosines of a row with itself need the same dimensions. ``first`` and ``second``: whatever
    :func:`isonb.audit` takes, ``names`` which array or column of each; with ``texts`` two models, which encode them.

    Cosines of rows and CKA are of all rows, read in pieces; neighbours and readings of at most ``sample``, drawn by
    ``seed``. Rows that aren't finite or are zero in either are left out, and a fault where they are so in one alone.
    Intervals are 95%, by a jackknife over ten groups of rows, the same in both.

    Shapes: (n, d) and (n, c), otherwise :class:`~isonb.errors.ShapeError`; 20 rows or more that count.

    >>> import torch
    >>> x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    >>> found = compare(x, 2 * x)
    >>> found.ok, round(found.cka, 6), found.overlap[0]
    (True, 1.0, 1.0)
    >>> [finding.name for finding in compare(x, x[:, :4]).findings]
    ['other neighbours', 'some dimensions']
    """
    with named("compare"):
        check_sample(sample)
        source = ""
        if texts is not None:
            source = f"{first} and {second}, {len(texts):,} texts"
            first, second = (encoded(model, texts) for model in (first, second))
        a, b = matrix(first, "first", names[0]), matrix(second, "second", names[1])
        if a.shape[0] != b.shape[0]:
            got = f"{a.shape[0]:,} and {b.shape[0]:,} rows"
            fix = "Compare the same texts in one order; dimensions may differ."
            fail(ShapeError, "both must have the same rows", got, fix)
        widest = max(a.shape[1], b.shape[1])
        if widest > WIDE:
            lines = (
                f"x = sklearn.decomposition.TruncatedSVD({WIDE // 4}).fit_transform(first)",
                "isonb.compare(x, second)",
            )
            refuse(ShapeError, f"both must have at most {WIDE} dimensions", widest, "Reduce them first.", lines)
        seen = _Both(a, b)
        if len(seen.rows) < 20:
            fail(ShapeError, "at least 20 rows must be finite and not zero", len(seen.rows), "Rows are points.")
        draw = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(seen.rows), generator=draw)[:sample].sort().values
        x, y = rows_of(a, seen.rows[order]), rows_of(b, seen.rows[order])
        group = groups_of(len(x), draw)
        overlap = _overlap(x, y, group)
        parts = tuple(_differences(x, y, group))
        relation = relation_of(a, b, x, y, seen.rows[order])
        findings = worst_first(list(_findings(seen, overlap, relation, len(x))))
        where = len(seen.rows), a.shape[1], len(x)
        own = seen.own()
        more = {"d_second": b.shape[1], "source": source}
        return Comparison(*where, findings, own[0], own[1], seen.cka(), overlap, parts, own[2], **more)


def _thinned(values: Tensor) -> Tensor:
    """As many values as torch takes quantiles of, spread over their order."""
    step = -(-len(values) // 10_000_000)
    return values.sort().values[::step]


class _Both:
    """One pass over both: which rows count, their cosines, and the products that CKA needs."""

    def __init__(self, a: Any, b: Any) -> None:
        d, c = a.shape[1], b.shape[1]
        self.alike = d == c
        self.odd: list[int] = []
        self.n_odd = 0
        self.means = [torch.zeros(size, dtype=torch.float64) for size in (d, c)]
        self.origin: list[Tensor] = []
        sizes = {"xx": (d, d), "yy": (c, c), "xy": (d, c)}
        self.products = {key: torch.zeros(size, dtype=torch.float64) for key, size in sizes.items()}
        good, cosines = torch.zeros(a.shape[0], dtype=torch.bool), torch.zeros(a.shape[0], dtype=torch.float64)
        for start in range(0, a.shape[0], step := max(16, min(CHUNK, 2**20 // max(d, c)))):
            rows = slice(start, start + step)
            pair = [numbers(a, rows).double(), numbers(b, rows).double()]
            fine = [one.isfinite().all(-1) & (one != 0).any(-1) for one in pair]
            odd = start + (fine[0] != fine[1]).nonzero().flatten()
            self.n_odd += len(odd)
            self.odd += odd[: NAMED - len(self.odd)].tolist() if len(self.odd) < NAMED else []
            both = fine[0] & fine[1]
            x, y = (one[both] for one in pair)
            good[start : start + len(both)] = both
            if self.alike:
                cosines[start : start + len(both)][both] = (unit_rows(x) * unit_rows(y)).sum(-1)
            self._add(x, y)
        self.rows, self.cosines = good.nonzero().flatten(), cosines[good]

    def own(self) -> tuple[dict[str, float], tuple[tuple[int, float], ...], tuple[float, ...]]:
        """Of the cosines of the rows with themselves: quantiles, the lowest, and the percentiles."""
        if not self.alike:
            return {}, (), ()
        lowest = self.cosines.argsort()[:NAMED]
        moved = tuple(zip(self.rows[lowest].tolist(), self.cosines[lowest].tolist(), strict=True))
        ends, scale = (
            torch.quantile(_thinned(self.cosines), torch.as_tensor(shares, dtype=torch.float64))
            for shares in (SHARES, torch.linspace(0, 1, 101, dtype=torch.float64))
        )
        cosines = {f"{share:g}": float(end) for share, end in zip(SHARES, ends, strict=True)}
        return cosines | {"0": moved[0][1]}, moved, tuple(scale.tolist())

    def _add(self, x: Tensor, y: Tensor) -> None:
        if not len(x):
            return
        self.origin = self.origin or [x.mean(0), y.mean(0)]
        x, y = x - self.origin[0], y - self.origin[1]
        for mean, one in zip(self.means, (x, y), strict=True):
            mean += one.sum(0)
        for key, (one, other) in {"xx": (x, x), "yy": (y, y), "xy": (x, y)}.items():
            self.products[key] += one.mT @ other

    def cka(self) -> float:
        """Linear CKA: the squared product of both clouds over the product of their own, all centred."""
        n = len(self.rows)
        away = {"x": self.means[0], "y": self.means[1]}
        size = {
            key: float((value - torch.outer(away[key[0]], away[key[1]]) / n).square().sum())
            for key, value in self.products.items()
        }
        return size["xy"] / max(math.sqrt(size["xx"] * size["yy"]), 1e-300)


def _overlap(x: Tensor, y: Tensor, group: Tensor) -> tuple[float, float, float]:
    """The mean share of common neighbours, by cosine."""
    k = min(K, len(x) - 1)
    one, other = (nearest_by_cosine(z, k)[0] for z in (x, y))
    parts = zip(torch.split(one, CHUNK), torch.split(other, CHUNK), strict=True)
    kept = torch.cat([(a.unsqueeze(-1) == b.unsqueeze(-2)).any(-1).double().mean(-1) for a, b in parts])
    half = jackknife([float(kept[group != g].mean()) for g in range(GROUPS)])
    return float(kept.mean()), float(kept.mean()) - half, float(kept.mean()) + half


def _differences(x: Tensor, y: Tensor, group: Tensor) -> Iterator[Difference]:
    for measure in (MEASURES[name] for name in AUDITED):
        kept = ~(copies(x) | copies(y)) if measure.name == TWO_NN else group >= 0
        try:
            first, second = float(measure(x[kept])), float(measure(y[kept]))
            without = [kept & (group != g) for g in range(GROUPS)]
            rises = [float(measure(y[rows])) - float(measure(x[rows])) for rows in without]
        except (DegenerateError, ShapeError):
            continue
        rise, half = second - first, jackknife(rises)
        yield Difference(measure.name, measure.title, first, second, rise, rise - half, rise + half)


def _findings(
    seen: _Both, overlap: tuple[float, float, float], relation: Finding | None, measured: int
) -> Iterator[Finding]:
    if seen.n_odd:
        text = f"Not finite or zero in one of the two alone: {counted(seen.n_odd, 'row')}."
        yield Finding("odd rows", "fault", text, "Left out here. Look at the texts behind them.", rows=tuple(seen.odd))
    if relation is not None:
        yield relation
    low = (seen.cosines < MOVED).nonzero().flatten() if seen.alike else seen.rows[:0]
    if len(low):
        worst = low[seen.cosines[low].argsort()][:NAMED]
        text = f"Moved, with a cosine below {MOVED}: {counted(len(low), 'row')} of {len(seen.rows):,}."
        advice = "Don't mix both in one index."
        yield Finding("moved rows", "warning", text, advice, rows=tuple(seen.rows[worst].tolist()))
    elif seen.alike and float(seen.cosines.min()) > SAME:
        yield Finding("same rows", "note", "The rows are the same up to rounding and length.")
    chance = min(K, measured - 1) / (measured - 1)
    if relation is None and overlap[2] < CHANCE * chance < KEPT:
        text = f"The neighbours have nothing in common ({overlap[0]:.1%}; by chance {chance:.1%})."
        yield Finding("unrelated rows", "fault", text, "Are the rows of both the same texts, in the same order?")
    elif overlap[0] < KEPT:
        text = f"A row keeps {overlap[0]:.0%} of its {K} nearest neighbours."
        yield Finding("other neighbours", "warning", text, "A search answers differently. Encode all rows anew.")
