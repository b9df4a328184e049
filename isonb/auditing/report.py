"""An audit as an object: its numbers by name, as text, as a table, as JSON, as a chart and as one page of HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from isonb.auditing.defects import Finding
from isonb.auditing.measured import Layer, Match, Reading
from isonb.auditing.reading.rows import Read
from isonb.auditing.remedies import Remedy
from isonb.auditing.soundness import Check
from isonb.errors import InputError, fail, needs
from isonb.measures.registry import titles
from isonb.runtime.told import Code, Columns, Item, Printed, Section, between, counted, fine, fixed

if TYPE_CHECKING:
    import pandas as pd

SHOWN = titles("mean_cosine", "isoscore", "participation_ratio_unbiased", "two_nn")  # of each layer
JUDGED = titles("mean_cosine", "isoscore_unbiased")  # of each remedy
MOST_LAYERS = 8  # on a screen


class FindingsReport(Printed):
    """What is said of vectors; a dataclass with ``findings``."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is neither a fault nor a warning."""
        return all(finding.severity == "note" for finding in self.findings)


@dataclass(frozen=True, repr=False)
class Audit(FindingsReport):
    """What :func:`isonb.audit` says.

    ``n`` and ``d``: rows that count, and dimensions. ``findings``: the worst first. ``readings``: measures of the
    shape, of ``measured`` rows. ``floor``: quantiles of the cosine of two random rows, as they are and after the mean
    is subtracted. ``withheld``: why the shape isn't judged, or nothing. ``remedies``: what would help. ``matches``:
    thresholds. ``next_steps``: three lines to paste. ``read``: the shape, the file, the columns, and what was left out.
    Of a model there are ``source`` (model and pooling), ``checks`` and ``layers`` too.

    >>> import isonb, torch
    >>> audit = isonb.audit(torch.randn(500, 64, generator=torch.Generator().manual_seed(0)) + 1.0)
    >>> audit.n, audit.d, audit.ok, [finding.name for finding in audit.findings]
    (500, 64, False, ['shift', 'hubs'])
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

    @property
    def sound(self) -> bool:
        """Whether no check of the model failed; True for vectors, of which nothing is known."""
        return all(check.state != "fault" for check in self.checks)

    def values(self) -> dict[str, float]:
        """Every number that a rule may name, by its name.

        Readings by title and by name in the registry ("IsoScore-U", "isoscore_unbiased"), by layer too ("layer 3
        IsoScore"); quantiles of the floor ("random cosine 0.99") and thresholds ("threshold as they are"; with pairs
        and queries both, that of the queries).
        """
        places = [("", self.readings), *((f"layer {layer.number} ", layer.readings) for layer in self.layers)]
        both = [(place, one) for place, readings in places for one in readings]
        numbers = {f"{place}{key}": one.value for place, one in both for key in (one.name, one.measure)}
        for cloud, quantiles in self.floor.items():
            numbers |= {f"{cloud} {share}": value for share, value in quantiles.items()}
        return numbers | {f"threshold {match.cloud}": match.threshold for match in self.matches}

    def threshold(self, rate: float = 0.01) -> float:
        """The cosine that a share ``rate`` of random pairs passes, of 0.5, 0.1, 0.05, 0.01 and 0.001.

        Raises :class:`~isonb.errors.InputError` for another rate.
        """
        quantiles = self.floor["random cosine"]
        if (share := f"{1 - rate:g}") not in quantiles:
            rates = ", ".join(f"{1 - float(known):g}" for known in quantiles)
            fail(InputError, f"rate must be one of {rates}", rate, "percentile says how many pairs lie below a cosine.")
        return quantiles[share]

    def percentile(self, cosine: float) -> float:
        """The percentage of random pairs below a cosine, from 0 to 100: a score that means the same in any cloud."""
        below = sum(end <= cosine for end in self.scale)
        if below in (0, len(self.scale)):
            return 100.0 if below else 0.0
        low, high = self.scale[below - 1], self.scale[below]
        return 100 * (below - 1 + (cosine - low) / (high - low)) / (len(self.scale) - 1)

    def to_frame(self) -> pd.DataFrame:
        """The readings as a table; of a model those of every layer, with a column ``layer``."""
        import pandas as pd

        if not self.layers:
            return pd.DataFrame([asdict(reading) for reading in self.readings])
        rows = [{"layer": layer.number, **asdict(one)} for layer in self.layers for one in layer.readings]
        return pd.DataFrame(rows)

    def plot(self) -> Any:
        """An altair chart; for a model: its shape by layer; for vectors: how alike random rows are."""
        return _by_layer(self.layers) if self.layers else quantile_chart(self.scale, "cosine of two random rows")

    def _heads(self) -> tuple[str, str]:
        read = self.read or Read((self.n, self.d), "vectors")
        title = f"{read} ({counted(self.n, 'row')} counted, {self.measured:,} measured)"
        return "Audit of a model" if self.checks else "Audit of vectors", title

    def _sections(self, full: bool) -> Iterator[Section]:
        if self.checks:
            passed = sum(check.state == "ok" for check in self.checks)
            heading = f"Is the instrument sound? {passed} of {len(self.checks)} checks passed"
            yield Section(heading, [Item(one.state, f"{one.name}: {one.text}") for one in self.checks], shown=True)
        yield stands_out(self.findings)
        head = ["cosine of two random rows", *self.floor["random cosine"]]
        rows = [[cloud, *map(fine, quantiles.values())] for cloud, quantiles in self.floor.items()]
        told = "A score below the last columns says nothing: so alike are rows that have nothing in common."
        floor = Columns("Quantiles of the cosine", head, rows)
        yield Section("How alike are two random rows?", [floor, told] if full else [floor])
        head = ["measure", "value", "95% interval", "half the rows", "Gaussian"]
        shape = Columns("Each measure with its 95% interval", head, [*map(_reading, self.readings)])
        withheld = [self.withheld] if self.withheld else []
        yield Section("The shape", [shape, *withheld, *_layers(self.layers, full)])
        if self.matches:
            caption = "Thresholds, chosen on one half and measured on the other, with 95% intervals"
            head = ["threshold", "cosine", "percentile", "false matches", "true matches"]
            yield Section("A threshold", [Columns(caption, head, [*map(_match, self.matches)])])
        head = ["before → after, held out", *JUDGED.values(), ""]
        tried = [Columns("Fitted on one half, judged on the other", head, [*map(_remedy, self.remedies)], remarks=True)]
        if self.remedies or self.score:
            yield Section("What would help", [*tried[: len(self.remedies)], self.score])
        if self.next_steps:
            yield Section("What to do next", [Code(self.next_steps)], shown=True)


def stands_out(findings: Sequence[Finding]) -> Section:
    """The findings with the texts they quote."""
    items = [Item(one.severity, f"{one.text} {one.advice}".rstrip(), one.examples) for one in findings]
    return Section("What stands out" if items else "Nothing stands out", items, shown=not items)


def _reading(reading: Reading) -> list[str]:
    interval = f"{fixed(reading.low)} to {fixed(reading.high)}"
    return [reading.name, fixed(reading.value), interval, fixed(reading.fewer), fixed(reading.gaussian)]


def _match(match: Match) -> list[str]:
    rates = [match.false_matches, match.recall]
    shares = [f"{one[0]:.2%} ({one[1]:.1%} to {one[2]:.1%})" if one else "no labels" for one in rates]
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
        cells = [between(r.value, r.low, r.high, 2 if abs(r.value) < 2 else 1) if r else "unsure" for r in read]
        rows.append([f"layer {layer.number}", *cells])
    kept = [row for i, row in enumerate(rows) if i % step == 0 or i == len(rows) - 1]
    kept.append(["Gaussian", *(fixed(usual[name], 2) if name in usual else "unsure" for name in SHOWN)])
    yield Columns(f"By layer, of {layers[0].rows:,} texts, with 95% intervals", ["by layer", *SHOWN.values()], kept)


def _by_layer(layers: Sequence[Layer]) -> Any:
    with needs("Audit.plot", "lab"):
        import altair as alt
        import pandas as pd
    rows = [
        asdict(reading) | {"layer": layer.number, "measure": reading.name}
        for layer in layers
        for reading in layer.readings
        if reading.measure in SHOWN
    ]
    across = alt.X("layer:O", axis=alt.Axis(labelAngle=0))
    base = alt.Chart(width=230, height=150)
    value = alt.Y("value:Q", title=None, scale=alt.Scale(zero=True))
    dots = base.mark_line(point=True).encode(across, value)
    spans = base.mark_rule(strokeWidth=3, opacity=0.5).encode(across, alt.Y("low:Q", title=None), alt.Y2("high:Q"))
    usual = base.mark_line(strokeDash=[5, 3], color="#7f7f7f").encode(across, alt.Y("gaussian:Q", title=None))
    panels = alt.layer(usual, spans, dots, data=pd.DataFrame(rows).round(4))
    facet = alt.Facet("measure:N", title=None, sort=list(SHOWN.values()))
    return panels.facet(facet, columns=2).resolve_scale(y="independent").resolve_axis(x="independent")


def quantile_chart(scale: tuple[float, ...], name: str) -> Any:
    """Percentiles of a cosine as a curve."""
    with needs("plot", "lab"):
        import altair as alt
        import pandas as pd
    last = len(scale) - 1
    rows = pd.DataFrame({"cosine": scale, "percent below": [100 * i / last for i in range(last + 1)]})
    across = alt.X("cosine:Q", title=name, scale=alt.Scale(zero=False))
    return alt.Chart(rows.round(4), width=420, height=220).mark_line().encode(across, alt.Y("percent below:Q"))
