"""An audit as an object: its numbers by name, as text, as JSON, as a chart and as one page of HTML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from isonb.auditing.defects import Finding, listed
from isonb.auditing.fixing import Fix, fix_section
from isonb.auditing.measured import Layer, Match, Reading
from isonb.auditing.page import SHOWN, can_draw, cosine_chart, explanations, layer_chart
from isonb.auditing.remedies import Remedy
from isonb.auditing.rows import Read
from isonb.auditing.soundness import Check
from isonb.auditing.unrelated import Unrelated
from isonb.errors import InputError, fail
from isonb.measures.registry import titles
from isonb.runtime.terminal import printable
from isonb.runtime.told import (
    Code,
    Columns,
    Item,
    Picture,
    Printed,
    Section,
    Strong,
    between,
    counted,
    fine,
    fixed,
    plain,
)

JUDGED = titles("mean_cosine", "isoscore_unbiased")  # of each remedy
MOST_LAYERS = 8  # on a screen


class FindingsReport(Printed):
    """What is said of vectors; a dataclass with ``findings``."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is neither a fault nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)

    def rows(self) -> list[tuple[int, str, str]]:
        """Every row that a finding names: its number, counted from 0, the finding, and its severity."""
        return [(row, item.name, item.severity) for item in self.findings for row in item.rows]


@dataclass(frozen=True, repr=False)
class Audit(FindingsReport):
    """What :func:`isonb.audit` says.

    ``n`` and ``d``: rows that count, and dimensions. ``findings``: the worst first. ``readings``: measures of the
    shape, of ``measured`` rows. ``floor``: quantiles of the cosine of two random rows, and of two unrelated ones where
    these could be told, as they are and after the mean is subtracted; ``unrelated``: what is known of the latter.
    ``withheld``: why the shape isn't judged, or nothing. ``remedies``: what would help. ``matches``: thresholds;
    ``queries_note``: why queries give none.
    ``next_steps``: lines of Python to paste; ``commands``: the same for a terminal. ``read``: the shape, the file, the
    columns, and what was left out. Of a model there are ``source`` (texts, model and pooling), ``checks``, ``layers``,
    and ``layers_note``: how the last layer becomes the vectors.

    >>> import isonb, torch
    >>> audit = isonb.audit(torch.randn(500, 64, generator=torch.Generator().manual_seed(0)) + 1.0)
    >>> audit.n, audit.d, audit.ok, [finding.name for finding in audit.findings]
    (500, 64, False, ['hubs', 'shift'])
    """

    n: int
    d: int
    measured: int
    findings: tuple[Finding, ...]
    readings: tuple[Reading, ...]
    floor: dict[str, dict[str, float]]
    withheld: str = ""
    scale: tuple[float, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    matches: tuple[Match, ...] = ()
    score: str = ""
    next_steps: tuple[str, ...] = ()
    source: str = ""
    checks: tuple[Check, ...] = ()
    layers: tuple[Layer, ...] = ()
    read: Read | None = None
    layers_note: str = ""
    commands: tuple[str, ...] = ()
    fixed: Fix | None = None
    unrelated: Unrelated | None = None
    histogram: tuple[tuple[float, int, int], ...] = ()
    queries_note: str = ""

    @property
    def sound(self) -> bool:
        """Whether no check of the model failed; True for vectors, of which nothing is known."""
        return all(check.state != "fault" for check in self.checks)

    @property
    def headline(self) -> str:
        """The whole report in a sentence. It says what is broken, or gives a threshold and its reason."""
        faults = [item for item in self.findings if item.severity == "fault"]
        if faults:
            more = f" {counted(len(faults) - 1, 'more fault')} below." if len(faults) > 1 else ""
            return f"Broken: {_sentences(replace(faults[0], advice=''))}{more}"
        warnings = [item.name for item in self.findings if item.severity == "warning"]
        but = f", with {counted(len(warnings), 'warning')} ({', '.join(warnings)})" if warnings else ""
        if self.matches:
            return f"Usable{but}: {_threshold(self.matches[0], self.n)}"
        known = self.unrelated
        if known is None:
            return f"Usable{but}."
        if known.certain:
            return f"Usable{but}: take a threshold above {fine(known.high, 2)}, {known.why}"
        return f"Usable to rank{but}. A threshold needs labelled pairs, since {known.why}"

    def to_json(self) -> str:
        """Everything, as JSON, the headline first; a number that is not finite is null."""
        return json.dumps(plain({"headline": self.headline} | asdict(self)), indent=1)

    def values(self) -> dict[str, float | None]:
        """Every number that a rule may name, by its name.

        Readings by title and by name in the registry ("IsoScore-U", "isoscore_unbiased"), by layer too ("layer 3
        IsoScore"); quantiles of cosines ("random cosine 0.99", "unrelated cosine 0.99") and thresholds ("threshold as
        they are" of pairs, "threshold of queries, as they are"). What is withheld is None and breaks its rule.
        """
        places = [("", self.readings), *((f"layer {layer.number} ", layer.readings) for layer in self.layers)]
        both = [(place, item) for place, readings in places for item in readings]
        numbers: dict[str, float | None]
        numbers = {f"unrelated cosine{part} {share}": None for part in ("", ", centred") for share in self._shares}
        numbers |= {
            f"{place}{key}": item.value if item.steady else None
            for place, item in both
            for key in (item.name, item.measure)
        }
        for cloud, quantiles in self.floor.items():
            numbers |= {f"{cloud} {share}": value for share, value in quantiles.items()}
        return numbers | {f"threshold {match.cloud}": match.threshold for match in self.matches}

    @property
    def _shares(self) -> tuple[str, ...]:
        return tuple(self.floor["random cosine"])

    def threshold(self, rate: float = 0.01) -> float:
        """The cosine that a share ``rate`` of unrelated pairs passes, of 0.5, 0.1, 0.05, 0.01 and 0.001.

        Raises :class:`~isonb.errors.InputError` for another rate, and where unrelated pairs can't be told from related
        ones: ``floor["random cosine"]`` is of both, and ``unrelated`` says between which ends the floor lies.
        """
        shares = {f"{1 - float(share):g}": share for share in self._shares}
        if (share := shares.get(f"{rate:g}")) is None:
            fix = "percentile says how many pairs lie below a cosine."
            fail(InputError, f"rate must be one of {', '.join(shares)}", rate, fix)
        if "unrelated cosine" not in self.floor:
            got = "pairs that pass into each other" if self.unrelated is None else str(self.unrelated)
            must, fix = "unrelated pairs must stand out from related ones", "Pass labelled pairs: pairs, or --pairs."
            fail(InputError, must, got.removesuffix("."), fix)
        return self.floor["unrelated cosine"][share]

    def percentile(self, cosine: float) -> float:
        """The percentage of random pairs below a cosine, from 0 to 100: a score that means the same in any cloud."""
        below = sum(end <= cosine for end in self.scale)
        if below in (0, len(self.scale)):
            return 100.0 if below else 0.0
        low, high = self.scale[below - 1], self.scale[below]
        return 100 * (below - 1 + (cosine - low) / (high - low)) / (len(self.scale) - 1)

    def plot(self) -> Any:
        """A chart of altair: of a model its shape by layer, of vectors the cosines of random pairs and the floor."""
        return layer_chart(self.layers) if self.layers else cosine_chart(self.histogram, self.unrelated)

    def _clouds(self) -> Iterator[tuple[str, dict[str, float]]]:
        """The rows of the floor; where no pair seems related the unrelated ones are all."""
        split = self.unrelated is not None and bool(self.unrelated.related)
        return (item for item in self.floor.items() if split or not item[0].startswith("unrelated"))

    def _heads(self) -> tuple[str, str]:
        read = printable(self.source) or self.read or Read((self.n, self.d), "vectors")
        title = f"{read} ({counted(self.n, 'row')} counted, {self.measured:,} measured)"
        return "Audit of a model" if self.checks else "Audit of vectors", title

    def _sections(self, full: bool) -> Iterator[Section]:
        yield Section("", [Strong(self.headline)])
        if self.checks:
            passed = sum(check.state == "ok" for check in self.checks)
            heading = f"Is the instrument sound? {passed} of {len(self.checks)} checks passed"
            yield Section(heading, [Item(item.state, f"{item.name}: {item.text}") for item in self.checks], shown=True)
        yield stands_out(self.findings)
        pictures = full and can_draw()
        head = ["cosine of two random rows", *self.floor["random cosine"]]
        rows = [[cloud, *map(fine, quantiles.values())] for cloud, quantiles in self._clouds()]
        floor = Columns("Quantiles of the cosine", head, rows)
        alike = [Picture(cosine_chart(self.histogram, self.unrelated))] if pictures and self.histogram else []
        known = self.unrelated
        repeated = known is None or (known.why in self.headline and not full)  # a screen shows the headline just above
        message = [] if repeated else [str(known)]
        yield Section("How alike are two random rows?", [floor, *message, *alike])
        head = ["measure", "value", "95% interval", "half the rows", "Gaussian"]
        shape = Columns("Each measure with its 95% interval", head, [*map(_reading, self.readings)])
        withheld = [self.withheld] if self.withheld else []
        note = [self.layers_note] if self.layers_note else []
        drawn = [Picture(layer_chart(self.layers))] if pictures and self.layers else []
        yield Section("The shape", [shape, *withheld, *_layers(self.layers, full), *note, *drawn])
        if self.matches or self.queries_note:
            caption = "Thresholds, chosen on one half and measured on the other, with 95% intervals"
            head = ["threshold", "cosine", "percentile", "false matches", "true matches"]
            told = [Columns(caption, head, [*map(_match, self.matches)])] if self.matches else []
            yield Section("A threshold", [*told, *[self.queries_note] * bool(self.queries_note)])
        head = ["before → after, held out", *JUDGED.values(), ""]
        tried = [Columns("Fitted on one half, judged on the other", head, [*map(_remedy, self.remedies)], remarks=True)]
        if self.remedies or self.score:
            yield Section("What would help", [*tried[: len(self.remedies)], self.score])
        if self.fixed:
            yield fix_section(self.fixed)
        elif self.commands or self.next_steps:
            yield Section("What to do next", [Code(self.commands or self.next_steps)], shown=True)
        if full:
            yield Section("What the words mean", [explanations(item.measure for item in self.readings)])


def stands_out(findings: Sequence[Finding]) -> Section:
    """The findings with their first rows and the texts that they quote."""
    items = [Item(item.severity, _sentences(item), item.examples) for item in findings]
    return Section("What stands out" if items else "Nothing stands out", items, shown=not items)


def _sentences(finding: Finding) -> str:
    rows = f"Row{'s' * (len(finding.rows) > 1)} {listed(finding.rows)}." if finding.rows else ""
    return " ".join(part for part in (finding.text, rows, finding.advice) if part)


def _reading(reading: Reading) -> list[str]:
    interval = f"{fixed(reading.low)} to {fixed(reading.high)}"
    value = fixed(reading.value) if reading.steady else "unsure"
    return [reading.name, value, interval, fixed(reading.fewer), fixed(reading.gaussian)]


def _threshold(match: Match, n: int) -> str:
    share = f"{match.false_matches[0]:.1%}"
    if match.recall is None:
        passed = f"{share} of unrelated pairs of a query and a row pass it, about {match.false_matches[0] * n:,.0f} of"
        return f"take the threshold {fine(match.threshold)}. {passed} {n:,} rows a query."
    passed = f"{share} of the pairs that don't match pass it, and {match.recall[0]:.0%} of those that do."
    return f"take the threshold {fine(match.threshold)}. {passed}"


def _match(match: Match) -> list[str]:
    rates = [match.false_matches, match.recall]
    shares = [f"{item[0]:.2%} ({item[1]:.1%} to {item[2]:.1%})" if item else "no labels" for item in rates]
    return [match.cloud, fine(match.threshold), f"{match.percentile:.1f}", *shares]


def _remedy(remedy: Remedy) -> list[str]:
    pairs = zip(remedy.before, remedy.after, strict=True)
    moved = [f"{fixed(before, 2)} → {fixed(after, 2)}" for (_, before), (_, after) in pairs]
    return [remedy.name, *moved, remedy.verdict]


def _layers(layers: Sequence[Layer], full: bool) -> Iterator[Columns]:
    """One row a layer, each measure with its interval; at last what an isotropic Gaussian reads."""
    if not layers:
        return
    step = 1 if full else max(1, -(-(len(layers) - 1) // (MOST_LAYERS - 1)))
    usual: dict[str, float] = {}
    rows = []
    for layer in layers:
        known = {reading.measure: reading for reading in layer.readings}
        usual |= {name: reading.gaussian for name, reading in known.items()}
        read = [known.get(name) for name in SHOWN]
        known_cells = (r if r and r.steady else None for r in read)
        cells = [between(r.value, r.low, r.high, 2 if abs(r.value) < 2 else 1) if r else "unsure" for r in known_cells]
        rows.append([f"layer {layer.number}", *cells])
    shown_rows = [row for i, row in enumerate(rows) if i % step == 0 or i == len(rows) - 1]
    shown_rows.append(["Gaussian", *(fixed(usual[name], 2) if name in usual else "unsure" for name in SHOWN)])
    yield Columns(
        f"By layer, of {layers[0].rows:,} texts, with 95% intervals", ["by layer", *SHOWN.values()], shown_rows
    )
