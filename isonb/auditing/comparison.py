"""What a comparison says: its numbers by name, as text, as a table, as JSON, as a chart and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from isonb.auditing.findings import Finding
from isonb.auditing.report import FindingsReport, quantile_chart, stands_out
from isonb.auditing.told import Columns, Section
from isonb.errors import ShapeError, fail
from isonb.runtime.terminal import printable

if TYPE_CHECKING:
    import pandas as pd

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
    most, as (row, cosine); both are empty where the dimensions differ. ``cka``: linear CKA of all rows, 1 for the same
    cloud up to rotation and scale. ``overlap``: the share of the 10 nearest neighbours that a row keeps, of
    ``measured`` rows, with its 95% interval. ``differences``: of every reading.
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
    d_second: int = 0
    source: str = ""

    def values(self) -> dict[str, float]:
        """Every number by its name: "row cosine 0.01", "CKA", ``overlap@10``, "rise of IsoScore"."""
        numbers = {f"row cosine {share}": value for share, value in self.cosines.items()}
        numbers |= {"CKA": self.cka, f"overlap@{K}": self.overlap[0]}
        return numbers | {f"rise of {key}": one.rise for one in self.differences for key in (one.name, one.measure)}

    def to_frame(self) -> pd.DataFrame:
        """The differences as a table."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.differences])

    def plot(self) -> Any:
        """An altair chart of the cosines of the rows with themselves; ShapeError where the dimensions differ."""
        if not self.scale:
            got, fix = f"{self.d} and {self.d_second}", "Look at the differences: to_frame()."
            fail(ShapeError, "a cosine of a row with itself needs the same dimensions", got, fix)
        return quantile_chart(self.scale, "cosine of a row with itself")

    def _heads(self) -> tuple[str, str]:
        d = f"{self.d} dimensions in both" if self.d == self.d_second else f"{self.d} and {self.d_second} dimensions"
        of = f"{printable(self.source)}: " if self.source else ""
        return "Comparison of vectors", f"{of}{self.n:,} rows of {d} ({self.measured:,} measured)"

    def _sections(self, full: bool) -> Iterator[Section]:
        yield stands_out(self.findings)
        if self.cosines:
            own = ["cosine of a row with itself", *(f"{value:.5f}" for value in self.cosines.values())]
            yield Section("Each row with itself", [Columns("Quantiles", ["quantiles over rows", *self.cosines], [own])])
        value, low, high = self.overlap
        told = f"CKA {self.cka:.4f}; a row keeps {value:.1%} of its {K} neighbours ({low:.1%} to {high:.1%})"
        head, caption = ("measure", "first", "second", "rise"), "Each measure, and the rise with its 95% interval"
        yield Section("Both clouds", [told, Columns(caption, head, [*map(_cells, self.differences)])])
        if self.moved:
            moved = ", ".join(f"{number} ({cosine:.4f})" for number, cosine in self.moved[:8])
            yield Section("Rows that moved most", [f"moved most: {moved}"])


def _cells(one: Difference) -> list[str]:
    rise = f"{one.rise:+z.3f} ({one.low:+z.3f} to {one.high:+z.3f})"
    return [one.name, f"{one.first:.3f}", f"{one.second:.3f}", rise]
