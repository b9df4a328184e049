"""An audit as one screen of text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from isonb.auditing.parts import Check, Finding, Found, Layer, Match, Reading, Remedy
from isonb.measures.registry import titles
from isonb.runtime.terminal import printable, screen

__all__ = [
    "HEAD",
    "MATCH_HEAD",
    "REMEDY_HEAD",
    "audit_words",
    "clipped",
    "columns",
    "counted",
    "fine",
    "fixed",
    "folded",
    "layer_rows",
    "match_cells",
    "reading_cells",
    "remedy_cells",
    "title",
]

HEAD = ("measure", "value", "95% interval", "half the rows", "round cloud")
REMEDY_HEAD = ("fitted on half, judged on half", *titles("mean_cosine", "isoscore_unbiased").values(), "")
MATCH_HEAD = ("threshold", "cosine", "percentile", "false matches", "true matches")
SHOWN = titles("mean_cosine", "isoscore", "participation_ratio_unbiased", "two_nn")  # of each layer
MOST_LAYERS = 8
QUOTED = 2  # examples of a finding on the screen; a page shows them all
WIDE = 88  # columns of the screen, and of a page of the book
LONG = 64  # characters of a text that are quoted: its count stands on the same line


def counted(count: int, what: str) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def clipped(text: str) -> str:
    """A text in quotes on one line, cut where it is long."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= LONG else f'"{line[: LONG - 1]}…"'


def title(found: Found) -> str:
    """What was audited, and how much of it was measured."""
    of = f"{printable(found.source)}: " if found.source else ""
    return f"{of}{found.n:,} vectors of {found.d} dimensions ({found.measured:,} measured)"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of as many cells each, as lines: the first cell to the left, the others to the right of their column.

    >>> columns([["measure", "value"], ["IsoScore", "0.5"]])
    ['measure   value', 'IsoScore    0.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([f"{cells[0]:{widths[0]}}", *(f"{c:>{w}}" for c, w in zip(cells[1:], widths[1:], strict=True))])
        for cells in rows
    ]


def folded(line: str, indent: int) -> str:
    """A line that is no longer than the screen is wide; what follows the first line is indented."""
    return textwrap.fill(line, WIDE, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def fixed(value: float, digits: int = 3) -> str:
    """A number with so many digits, and no minus where that leaves 0.

    >>> fixed(-0.0001), fixed(-0.126, 2)
    ('0.000', '-0.13')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def fine(value: float, digits: int = 3) -> str:
    """A cosine with ``digits``, or more where it is so near 1 that they would not tell it from 1.

    >>> fine(0.5), fine(0.99987), fine(-0.2, 2)
    ('0.500', '0.99987', '-0.20')
    """
    gap = 1 - abs(value)
    return fixed(value, max(digits, 1 - math.floor(math.log10(gap))) if gap > 1e-12 else digits)


def reading_cells(reading: Reading) -> list[str]:
    """A reading by the columns of HEAD."""
    interval = f"{fixed(reading.low)} to {fixed(reading.high)}"
    return [reading.name, fixed(reading.value), interval, fixed(reading.fewer), fixed(reading.round)]


def match_cells(match: Match) -> list[str]:
    """A threshold by the columns of MATCH_HEAD."""
    rates = [match.false_matches, match.recall]
    shares = [f"{one[0]:.2%} ({one[1]:.1%} to {one[2]:.1%})" if one else "no labels" for one in rates]
    return [match.cloud, fine(match.threshold), f"{match.percentile:.1f}", *shares]


def remedy_cells(remedy: Remedy) -> list[str]:
    """A remedy by the columns of REMEDY_HEAD."""
    pairs = zip(remedy.before, remedy.after, strict=True)
    moved = [f"{fixed(before, 2)} → {fixed(after, 2)}" for (_, before), (_, after) in pairs]
    return [remedy.name, *moved, remedy.verdict]


def layer_rows(layers: Sequence[Layer]) -> Iterator[list[str]]:
    """One row a layer, the measures that are shown, each with half its interval; at last what a round cloud reads."""
    usual: dict[str, float] = {}
    for layer in layers:
        known = {reading.measure: reading for reading in layer.readings}
        usual |= {name: reading.round for name, reading in known.items()}
        read = [known.get(name) for name in SHOWN]
        cells = [f"{fixed(r.value, 2)} ± {(r.high - r.low) / 2:.2f}" if r else "unsure" for r in read]
        yield [f"layer {layer.number}", *cells]
    yield ["a round cloud", *(fixed(usual[name], 2) if name in usual else "unsure" for name in SHOWN)]


def _finding(finding: Finding) -> list[str]:
    lines = [f"{finding.severity:8}{finding.text} {finding.advice}".rstrip()]
    lines += [f"{'':10}{example}" for example in finding.examples[:QUOTED]]
    return [folded(line, 10) for line in lines]


def _checks(checks: Sequence[Check]) -> list[str]:
    if not checks:
        return []
    passed = sum(check.state == "ok" for check in checks)
    head = f"Is the instrument sound? {passed} of {len(checks)} checks passed"
    return [head, *(folded(f"{check.state:8}{check.name}: {check.text}", 10) for check in checks), ""]


def _layers(layers: Sequence[Layer]) -> list[str]:
    if not layers:
        return []
    step = max(1, -(-(len(layers) - 1) // (MOST_LAYERS - 1)))
    shown = [layer for layer in layers if layer.number % step == 0 or layer is layers[-1]]
    return ["", *columns([["by layer", *SHOWN.values()], *layer_rows(shown)])]


def _remedies(remedies: Sequence[Remedy]) -> list[str]:
    head, *lines = columns([REMEDY_HEAD[:3], *(remedy_cells(one)[:3] for one in remedies)])
    told = [part for line, one in zip(lines, remedies, strict=True) for part in (line, folded(f"    {one.verdict}", 4))]
    return ["", head, *told] if remedies else []


def audit_words(found: Found) -> str:
    """Faults first, then the floor, the shape, what stands out, what would help and what to do next."""
    shares = list(found.floor["random cosine"])
    floor = [[cloud, *map(fine, part.values())] for cloud, part in found.floor.items()]
    lines = [title(found), "", *_checks(found.checks)]
    lines += [line for finding in found.findings for line in _finding(finding)]
    lines += [] if found.findings else ["nothing stands out"]
    lines += ["", *columns([["cosine of two random rows", *shares], *floor])]
    lines += ["", *columns([HEAD, *map(reading_cells, found.readings)])]
    lines += [found.withheld] if found.withheld else []
    lines += _layers(found.layers)
    lines += ["", *columns([MATCH_HEAD, *map(match_cells, found.matches)])] if found.matches else []
    lines += _remedies(found.remedies)
    lines += [found.score] if found.score else []
    lines += ["", "next", *(f"    {line}" for line in found.next_steps)] if found.next_steps else []
    return screen("\n".join(lines))
