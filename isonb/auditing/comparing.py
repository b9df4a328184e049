"""The same rows from another runtime, precision, layer or model version: what moved, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isonb.auditing.asking import named
from isonb.auditing.charts import quantile_chart
from isonb.auditing.page import findings_list, table, whole_page
from isonb.auditing.parts import Finding, as_json
from isonb.auditing.rows import CHUNK, NAMED, matrix, pieces, rows_of
from isonb.auditing.shape import GROUPS, MEASURES, groups_of, jackknife
from isonb.auditing.vectors import SAMPLE, check_sample, worst_first
from isonb.auditing.words import columns, counted
from isonb.cosine import unit_rows
from isonb.errors import DegenerateError, ShapeError, fail
from isonb.nearest import nearest_by_cosine

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "Difference", "compare"]

SHARES = (0.0, 0.001, 0.01, 0.05, 0.5)
K = 10  # neighbours
SAME = 1 - 1e-5  # the lowest cosine of rows that differ by rounding alone
MOVED = 0.99  # a cosine below which a row is another one
KEPT = 0.9  # mean overlap of neighbours below which a search answers differently


@dataclass(frozen=True)
class Difference:
    """A measure of both clouds, and ``rise``, second less first, with its 95% interval."""

    name: str
    first: float
    second: float
    rise: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """What :func:`isonb.compare` found.

    ``n``, ``d``: rows that are finite in both, and dimensions. ``cosines``: quantiles of the cosine of a row with
    itself in the other cloud, "0" the lowest. ``moved``: the rows that moved most, as (row, cosine). ``cka``: linear
    CKA of all rows, 1 for the same cloud up to rotation and scale. ``overlap``: the share of the 10 nearest neighbours
    that a row keeps, of ``measured`` rows, with its 95% interval. ``differences``: of every reading.
    """

    n: int
    d: int
    measured: int
    findings: tuple[Finding, ...]
    cosines: dict[str, float]
    moved: tuple[tuple[int, float], ...]
    cka: float
    overlap: tuple[float, float, float]
    differences: tuple[Difference, ...]
    scale: tuple[float, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is neither a fault nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)

    def values(self) -> dict[str, float]:
        """Every number by its name: "row cosine 0.01", "CKA", ``overlap@10``, "rise of IsoScore"."""
        found = {f"row cosine {share}": value for share, value in self.cosines.items()}
        found |= {"CKA": self.cka, f"overlap@{K}": self.overlap[0]}
        return found | {f"rise of {one.name}": one.rise for one in self.differences}

    def to_frame(self) -> pd.DataFrame:
        """The differences as a table."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.differences])

    def to_json(self) -> str:
        """Everything, as JSON; a number that is not finite is null."""
        return as_json(self)

    def plot(self) -> Any:
        """An altair chart of the cosines of the rows with themselves."""
        return quantile_chart(self.scale, "cosine of a row with itself")

    def _title(self) -> str:
        return f"{self.n:,} rows of {self.d} dimensions in both ({self.measured:,} measured)"

    def _together(self) -> str:
        value, low, high = self.overlap
        return f"CKA {self.cka:.4f}; a row keeps {value:.1%} of its {K} neighbours ({low:.1%} to {high:.1%})"

    def __repr__(self) -> str:
        lines = [self._title(), ""]
        lines += [f"{one.severity:8}{one.text} {one.advice}".rstrip() for one in self.findings]
        own = ["cosine of a row with itself", *(f"{value:.5f}" for value in self.cosines.values())]
        lines += ["", *columns([["quantiles over rows", *self.cosines], own])]
        lines += ["", self._together(), "", *columns([_HEAD, *map(_cells, self.differences)])]
        told = ", ".join(f"{number} ({cosine:.4f})" for number, cosine in self.moved[:8])
        return "\n".join([*lines, "", f"moved most: {told}"])

    def html(self) -> str:
        """One page, with no script and nothing to load."""
        shares = [["cosine of a row with itself", *(f"{value:.5f}" for value in self.cosines.values())]]
        moved = [[str(number), f"{cosine:.5f}"] for number, cosine in self.moved]
        parts = [
            f"<p>{self._title()}</p>",
            findings_list(self.findings),
            table("Quantiles over rows", ["", *self.cosines], shares),
            f"<p>{self._together()}</p>",
            table("Each measure, and the difference with its 95% interval", _HEAD, map(_cells, self.differences)),
            table("Rows that moved most", ["row", "cosine"], moved),
        ]
        return whole_page("Comparison of vectors", parts)


_HEAD = ("measure", "first", "second", "rise")


def _cells(one: Difference) -> list[str]:
    rise = f"{one.rise:+z.3f} ({one.low:+z.3f} to {one.high:+z.3f})"
    return [one.name, f"{one.first:.3f}", f"{one.second:.3f}", rise]


def compare(first: Any, second: Any, *, sample: int = SAMPLE, seed: int = 0) -> Comparison:
    """Compare two clouds of the same rows: another runtime, precision, layer or version of a model.

    Cosines of rows and CKA are of all rows, read in pieces; neighbours and readings of at most ``sample``, drawn by
    ``seed``. Rows that aren't finite or are zero in either are left out, and a fault where they are so in one alone.
    Intervals are 95%, by a jackknife over ten groups of rows, the same in both.

    Shapes: (n, d) both, otherwise :class:`~isonb.errors.ShapeError`; 20 rows or more that count.

    >>> import torch
    >>> x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    >>> found = compare(x, 2 * x)
    >>> found.ok, round(found.cka, 6), found.overlap[0]
    (True, 1.0, 1.0)
    """
    with named("compare"):
        check_sample(sample)
        a, b = matrix(first, "first"), matrix(second, "second")
        if a.shape != b.shape:
            got = f"{tuple(a.shape)} and {tuple(b.shape)}"
            fail(ShapeError, "both must have the same rows and dimensions", got, "Compare the same texts in one order.")
        seen = _Both(a, b)
        if len(seen.rows) < 20:
            fail(ShapeError, "at least 20 rows must be finite and not zero", len(seen.rows), "Rows are points.")
        draw = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(seen.rows), generator=draw)[:sample].sort().values
        x, y = rows_of(a, seen.rows[order]), rows_of(b, seen.rows[order])
        group = groups_of(len(x), draw)
        overlap = _overlap(x, y, group)
        lowest = seen.cosines.argsort()[:NAMED]
        moved = tuple(zip(seen.rows[lowest].tolist(), seen.cosines[lowest].tolist(), strict=True))
        ends = torch.quantile(_thinned(seen.cosines), torch.tensor(SHARES, dtype=torch.float64))
        cosines = {f"{share:g}": float(end) for share, end in zip(SHARES, ends, strict=True)}
        cosines["0"] = moved[0][1]
        scale = torch.quantile(_thinned(seen.cosines), torch.linspace(0, 1, 101, dtype=torch.float64))
        findings = worst_first(list(_findings(seen, overlap[0])))
        parts = tuple(_differences(x, y, group))
        where = len(seen.rows), a.shape[1], len(x)
        return Comparison(*where, findings, cosines, moved, seen.cka(), overlap, parts, tuple(scale.tolist()))


def _thinned(values: Tensor) -> Tensor:
    """As many values as torch takes quantiles of, spread over their order."""
    step = -(-len(values) // 10_000_000)
    return values.sort().values[::step]


class _Both:
    """One pass over both: which rows count, their cosines, and the products that CKA needs."""

    def __init__(self, a: Any, b: Any) -> None:
        d = a.shape[1]
        self.odd: list[int] = []
        self.n_odd = 0
        self.means = [torch.zeros(d, dtype=torch.float64) for _ in range(2)]
        self.origin: list[Tensor] = []
        self.products = {key: torch.zeros(d, d, dtype=torch.float64) for key in ("xx", "yy", "xy")}
        good, cosines = torch.zeros(a.shape[0], dtype=torch.bool), torch.zeros(a.shape[0], dtype=torch.float64)
        for (start, one), (_, other) in zip(pieces(a), pieces(b), strict=True):
            pair = [one.double(), other.double()]
            fine = [one.isfinite().all(-1) & (one != 0).any(-1) for one in pair]
            odd = start + (fine[0] != fine[1]).nonzero().flatten()
            self.n_odd += len(odd)
            self.odd += odd[: NAMED - len(self.odd)].tolist() if len(self.odd) < NAMED else []
            both = fine[0] & fine[1]
            x, y = (one[both] for one in pair)
            good[start : start + len(both)] = both
            cosines[start : start + len(both)][both] = (unit_rows(x) * unit_rows(y)).sum(-1)
            self._add(x, y)
        self.rows, self.cosines = good.nonzero().flatten(), cosines[good]

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
    for name, measure in MEASURES.items():
        try:
            first, second = float(measure(x)), float(measure(y))
            rises = [float(measure(y[group != g])) - float(measure(x[group != g])) for g in range(GROUPS)]
        except (DegenerateError, ShapeError):
            continue
        rise, half = second - first, jackknife(rises)
        yield Difference(name, first, second, rise, rise - half, rise + half)


def _findings(seen: _Both, overlap: float) -> Iterator[Finding]:
    if seen.n_odd:
        text = f"Not finite or zero in one of the two alone: {counted(seen.n_odd, 'row')}."
        yield Finding("odd rows", "fault", text, "Left out here. Look at the texts behind them.", rows=tuple(seen.odd))
    low = (seen.cosines < MOVED).nonzero().flatten()
    if len(low):
        worst = low[seen.cosines[low].argsort()][:NAMED]
        text = f"Moved, with a cosine below {MOVED}: {counted(len(low), 'row')} of {len(seen.rows):,}."
        advice = "Don't mix both in one index."
        yield Finding("moved rows", "warning", text, advice, rows=tuple(seen.rows[worst].tolist()))
    elif float(seen.cosines.min()) > SAME:
        yield Finding("same rows", "note", "The rows are the same up to rounding and length.")
    if overlap < KEPT:
        text = f"A row keeps {overlap:.0%} of its {K} nearest neighbours."
        yield Finding("other neighbours", "warning", text, "A search answers differently. Encode all rows anew.")
