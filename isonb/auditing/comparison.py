"""How two clouds of the same rows are related as a whole, and what a comparison says, as text, JSON and a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.defects import Finding
from isonb.auditing.report import FindingsReport, stands_out
from isonb.auditing.rows import pieces
from isonb.numerics.rows import unit_rows
from isonb.runtime.terminal import printable
from isonb.runtime.told import Columns, Section, between

K = 10  # neighbours
TRIED = 200  # rows that are looked for elsewhere
SAME = 1 - 1e-5  # cosine of rows, or of clouds, that differ by rounding alone
MATCHED = 0.999  # cosine from which a row is taken to be the one that is looked for
MOST = 2048  # dimensions up to which a rotation is looked for


@dataclass(frozen=True)
class Difference:
    """A measure of both clouds, by its name in the registry and its title; ``rise``: second less first.

    ``low`` and ``high``: the 95% interval of the rise. ``steady``: as of a reading of an audit, in both; what isn't is
    withheld.
    """

    measure: str
    name: str
    first: float
    second: float
    rise: float
    low: float
    high: float
    steady: bool = True


@dataclass(frozen=True, repr=False)
class Comparison(FindingsReport):
    """What :func:`isonb.compare` says.

    ``n``, ``d``: rows that are finite in both, and dimensions of the first; ``d_second``: of the second. ``cosines``:
    quantiles of the cosine of a row with itself in the other cloud, "0" the lowest; ``moved``: the rows that moved
    most, as (row, cosine); both are empty where the dimensions differ. Of ``measured`` rows: ``cka``, linear CKA: 1 for
    the same cloud up to rotation and scale; ``cka_debiased``: about 0 for unrelated ones, where few rows of many
    dimensions lift ``cka`` far above it; ``cka_floor``: its least and most where the rows are shuffled; ``overlap``,
    the share of the 10 nearest neighbours that a row keeps, with its 95% interval; ``differences`` of every reading.
    ``read``: what was read of both.
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
    d_second: int = 0
    cka_debiased: float = math.nan
    cka_floor: tuple[float, float] = (math.nan, math.nan)
    read: tuple[str, str] = ("", "")

    def values(self) -> dict[str, float | None]:
        """Every number by its name: "row cosine 0.01", "CKA", "CKA, debiased", ``overlap@10``, "rise of IsoScore".

        What is withheld is None and breaks its rule.
        """
        numbers: dict[str, float | None] = {f"row cosine {share}": value for share, value in self.cosines.items()}
        numbers |= {"CKA": self.cka, "CKA, debiased": self.cka_debiased, f"overlap@{K}": self.overlap[0]}
        both = [(key, item) for item in self.differences for key in (item.name, item.measure)]
        return numbers | {f"rise of {key}": item.rise if item.steady else None for key, item in both}

    def _heads(self) -> tuple[str, str]:
        d = f"{self.d} dimensions in both" if self.d == self.d_second else f"{self.d} and {self.d_second} dimensions"
        return "Comparison of vectors", f"{self.n:,} rows of {d} ({self.measured:,} measured)"

    def _sections(self, full: bool) -> Iterator[Section]:
        sides = zip(("first", "second"), map(printable, self.read), strict=True)
        yield Section("", [f"{side}: {read}" for side, read in sides if read])
        yield stands_out(self.findings)
        if self.cosines:
            cells = ["cosine of a row with itself", *(f"{value:.5f}" for value in self.cosines.values())]
            yield Section(
                "Each row with itself", [Columns("Quantiles", ["quantiles over rows", *self.cosines], [cells])]
            )
        value, low, high = self.overlap
        least, most = self.cka_floor
        chance = f"unrelated rows have {least:z.4f} to {most:z.4f}"
        shared = f"of {self.measured:,} rows one keeps {value:.1%} of its {K} neighbours ({low:.1%} to {high:.1%})"
        message = f"CKA, debiased, {self.cka_debiased:z.4f} ({chance}); as it is {self.cka:z.4f}; {shared}"
        head, caption = ("measure", "first", "second", "rise"), "Each measure, and the rise with its 95% interval"
        yield Section("Both clouds", [message, Columns(caption, head, [*map(_cells, self.differences)])])
        if self.moved:
            moved = ", ".join(f"{number} ({cosine:.4f})" for number, cosine in self.moved[:8])
            yield Section("Rows that moved most", [f"moved most: {moved}"])


def _cells(item: Difference) -> list[str]:
    if not item.steady:
        return [item.name, *["unsure"] * 3]
    return [item.name, f"{item.first:.3f}", f"{item.second:.3f}", between(item.rise, item.low, item.high, 3, "+")]


def relation_of(a: Any, b: Any, x: Tensor, y: Tensor, rows: Tensor) -> Finding | None:
    """What relates matrices ``a`` and ``b``, of which ``x`` and ``y`` are the ``rows``; None where nothing does."""
    d, c = x.shape[1], y.shape[1]
    x, y = x.double(), y.double()
    least = min(d, c)
    if float(_cosines(x[:, :least], y[:, :least]).median()) > MATCHED:  # every row is where it was
        cut = d != c and float(_cosines(x[:, :least], y[:, :least]).quantile(0.01)) > SAME
        names = ("second", "first") if c < d else ("first", "second")
        text = f"The {names[0]} are the first {least} of the {max(d, c)} dimensions of the {names[1]}."
        return Finding("some dimensions", "note", text) if cut else None
    return _rotation(x, y) or _order(a, b, x, rows)


def _cosines(x: Tensor, y: Tensor) -> Tensor:
    return (unit_rows(x) * unit_rows(y)).sum(-1)


def _rotation(x: Tensor, y: Tensor) -> Finding | None:
    r"""Whether :math:`y = s x Q`, Q orthonormal: the singular values of :math:`x^T y` sum to the product of norms."""
    if max(x.shape[1], y.shape[1]) > MOST or len(x) <= min(x.shape[1], y.shape[1]):
        return None  # so few rows can be rotated into any others
    if float(torch.linalg.svdvals(x.mT @ y).sum() / (x.norm() * y.norm())) < SAME:
        return None
    text = "The second is a rotation of the first, up to scale: neighbours and readings are the same."
    advice = "Vectors of the two can't be compared with each other: don't mix both in one index."
    return Finding("rotation", "warning", text, advice)


def _order(a: Any, b: Any, x: Tensor, rows: Tensor) -> Finding | None:
    """Whether rows of the first stand elsewhere in the second, whole or cut to the dimensions that both have."""
    least = min(a.shape[1], b.shape[1])
    picked = torch.linspace(0, len(x) - 1, min(TRIED, len(x))).long()
    queries = unit_rows(x[picked, :least])
    best, place = torch.full((len(picked),), -2.0, dtype=torch.float64), torch.zeros(len(picked), dtype=torch.long)
    for start, part in pieces(b):
        score, where = (queries @ unit_rows(part[:, :least].double().nan_to_num()).mT).max(-1)
        place = torch.where(score > best, start + where, place)
        best = torch.maximum(best, score)
    present = best > MATCHED
    elsewhere = present & (place != rows[picked])
    if float(present.double().mean()) < 0.9 or float(elsewhere.double().mean()) < 0.5:
        return None
    if len(set(place[present].tolist())) < 0.5 * int(present.sum()):  # rows that are all alike are everywhere
        return None
    shown = list(zip(rows[picked][elsewhere].tolist(), place[elsewhere].tolist(), strict=True))[:3]
    message = ", ".join(f"row {item} is row {other}" for item, other in shown)
    text = f"The rows are the same in another order: {message}."
    fix = "Sort both by one id, and compare again; nothing else here counts."
    return Finding("other order", "fault", text, fix, rows=tuple(rows[picked][elsewhere].tolist()))
