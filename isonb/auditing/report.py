"""An audit as an object, as text, as a table, as JSON and as one page of HTML that needs nothing else."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SEVERITIES", "Audit", "Finding", "Reading"]

SEVERITIES = ("fault", "warning", "note")
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
div { overflow-x: auto; } table { border-collapse: collapse; } caption { text-align: left; padding: .4rem 0; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8885; }
th:first-child, td:first-child { text-align: left; }
.fault { border-left: .3rem solid #D55E00; } .warning { border-left: .3rem solid #E69F00; }
.note { border-left: .3rem solid #7f7f7f; } li { list-style: none; padding: .2rem .7rem; margin: .4rem 0; }
"""


@dataclass(frozen=True)
class Finding:
    """Something to know about the vectors: what was seen, and what to do. ``rows`` and ``dims`` name the culprits."""

    name: str
    severity: str
    text: str
    advice: str = ""
    rows: tuple[int, ...] = ()
    dims: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A measure with its 95% interval, and ``round``: what a round cloud of as many points and dimensions reads."""

    name: str
    value: float
    low: float
    high: float
    round: float


@dataclass(frozen=True)
class Audit:
    """What :func:`isonb.audit` found.

    ``n`` and ``d``: rows that count, and dimensions. ``findings``: the worst first. ``readings``: measures of the
    shape, of ``measured`` rows. ``floor``: quantiles of the cosine of two random rows, as they are and after the mean
    is subtracted. ``withheld``: why the shape isn't judged, or nothing.
    """

    n: int
    d: int
    measured: int
    findings: tuple[Finding, ...]
    readings: tuple[Reading, ...]
    floor: dict[str, dict[str, float]]
    withheld: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is neither a fault nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)

    def values(self) -> dict[str, float]:
        """Every reading and every quantile of the floor ("random cosine 0.99") by its name."""
        found = {reading.name: reading.value for reading in self.readings}
        for cloud, quantiles in self.floor.items():
            found |= {f"{cloud} {share}": value for share, value in quantiles.items()}
        return found

    def threshold(self, rate: float = 0.01) -> float:
        """The cosine that a share ``rate`` of random pairs passes, of 0.5, 0.1, 0.05, 0.01 and 0.001."""
        return self.floor["random cosine"][f"{1 - rate:g}"]

    def to_frame(self) -> pd.DataFrame:
        """The readings as a table."""
        import pandas as pd

        return pd.DataFrame([asdict(reading) for reading in self.readings])

    def to_json(self) -> str:
        """Everything, as JSON; a number that is not finite is null."""
        return json.dumps(_plain(asdict(self)), indent=1)

    def __repr__(self) -> str:
        lines = [f"{self.n:,} vectors of {self.d} dimensions ({self.measured:,} measured)", ""]
        lines += [f"{finding.severity:8}{finding.text} {finding.advice}".rstrip() for finding in self.findings]
        lines += [] if self.findings else ["nothing stands out"]
        lines += ["", *(_row(cells) for cells in [_HEAD, *map(_cells, self.readings)])]
        lines += [self.withheld] if self.withheld else []
        shares = list(self.floor["random cosine"])
        lines += ["", _row(["cosine of two random rows", *shares])]
        lines += [_row([cloud, *(f"{value:.3f}" for value in part.values())]) for cloud, part in self.floor.items()]
        return "\n".join(lines)

    def html(self) -> str:
        """One page, with no script and nothing to load."""
        findings = "\n".join(
            f'<li class="{one.severity}"><b>{one.severity}</b> {html.escape(f"{one.text} {one.advice}")}</li>'
            for one in self.findings
        )
        shares = list(self.floor["random cosine"])
        floor = [[cloud, *(f"{v:.3f}" for v in part.values())] for cloud, part in self.floor.items()]
        parts = [
            f"<p>{self.n:,} vectors of {self.d} dimensions; the shape was measured on {self.measured:,} of them.</p>",
            f"<h2>What stands out</h2><ul>{findings}</ul>" if findings else "<h2>Nothing stands out</h2>",
            "<h2>How alike are two random rows?</h2>",
            _table("Quantiles of the cosine", ["", *shares], floor),
            "<p>A score says something only above the last columns: so alike are rows that have nothing in common.</p>",
            "<h2>The shape</h2>",
            f"<p>{html.escape(self.withheld)}</p>" if self.withheld else "",
            _table("Each measure with its 95% interval", _HEAD, [_cells(one) for one in self.readings]),
        ]
        title = "<title>Audit of vectors</title><h1>Audit of vectors</h1>"
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}</style>{title}'
        return head + "\n".join(parts) + "</html>\n"


_HEAD = ["measure", "value", "95% interval", "round cloud"]


def _cells(reading: Reading) -> list[str]:
    interval = f"{reading.low:.3f} to {reading.high:.3f}"
    return [reading.name, f"{reading.value:.3f}", interval, f"{reading.round:.3f}"]


def _row(cells: Sequence[str]) -> str:
    return f"{cells[0]:28}" + "".join(f"{cell:>18}" if " to " in cell else f"{cell:>13}" for cell in cells[1:])


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div><table><caption>{html.escape(caption)}</caption><tr>{heads}</tr>{body}</table></div>"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
