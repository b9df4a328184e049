"""What a comparison of two clouds says, as text, JSON and a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from isonb.auditing.defects import Finding
from isonb.auditing.report import FindingsReport, stands_out
from isonb.runtime.terminal import printable
from isonb.runtime.told import Columns, Section, between

K = 10  # neighbours


@dataclass(frozen=True)
class Difference:
    """A measure of both clouds, by its name in the registry and its title; ``rise``: second less first.

    ``low`` and ``high``: the 95% interval of the rise.
    """

    measure: str
    name: str
    first: float
    second: float
    rise: float
    low: float
    high: float


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

    def values(self) -> dict[str, float]:
        """Every number by its name: "row cosine 0.01", "CKA", "CKA, debiased", ``overlap@10``, "rise of IsoScore"."""
        numbers = {f"row cosine {share}": value for share, value in self.cosines.items()}
        numbers |= {"CKA": self.cka, "CKA, debiased": self.cka_debiased, f"overlap@{K}": self.overlap[0]}
        return numbers | {f"rise of {key}": item.rise for item in self.differences for key in (item.name, item.measure)}

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
        shared = f"a row keeps {value:.1%} of its {K} neighbours ({low:.1%} to {high:.1%})"
        message = f"CKA, debiased, {self.cka_debiased:z.4f} ({chance}); as it is {self.cka:z.4f}; {shared}"
        head, caption = ("measure", "first", "second", "rise"), "Each measure, and the rise with its 95% interval"
        yield Section("Both clouds", [message, Columns(caption, head, [*map(_cells, self.differences)])])
        if self.moved:
            moved = ", ".join(f"{number} ({cosine:.4f})" for number, cosine in self.moved[:8])
            yield Section("Rows that moved most", [f"moved most: {moved}"])


def _cells(item: Difference) -> list[str]:
    return [item.name, f"{item.first:.3f}", f"{item.second:.3f}", between(item.rise, item.low, item.high, 3, "+")]
